"""The network to be examined: built in, or the user's own by `--model package.module:function`."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from empirics import Subject
from theory import InputError

__all__ = ["load_subject", "require"]


def load_subject(model: str | None, default: Any, **offered: Any) -> Subject:
    """The subject that `model` names; `default(**offered)` where it names none.

    The working directory is appended to the import path, never prepended: a folder of the user's cannot replace a
    package of assay's. `offered` (width, seed) reaches the function as far as it takes them. Raises InputError for a
    name that cannot be imported or does not return a Subject.
    """
    if model is None:
        return default(**{name: value for name, value in offered.items() if value is not None})
    module, colon, name = model.partition(":")
    if not (colon and module and name):
        raise InputError(f"--model takes package.module:function; got {model!r}")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        function = getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        raise InputError(
            f"--model {model}: there is no module {missing.name!r} on the import path or in {here}"
        ) from None
    except AttributeError:
        raise InputError(f"--model {model}: module {module} has no {name!r}") from None
    takes = inspect.signature(function).parameters
    wanted = {key: value for key, value in offered.items() if value is not None}
    unknown = [key for key in wanted if key not in takes and key != "seed"]
    if unknown:
        raise InputError(
            f"--model {model}: {name} takes no {', '.join(unknown)}; it takes {', '.join(takes) or 'nothing'}"
        )
    subject = function(**{key: value for key, value in wanted.items() if key in takes})
    if not isinstance(subject, Subject):
        raise InputError(
            f"--model {model} returned {type(subject).__name__}; it must return assay.Subject(model, loss, data)"
        )
    return subject


def require(subject: Subject, target: str, *fields: str) -> Mapping[str, Any]:
    """The named fields of a subject; an InputError naming those that a comparison needs and the subject lacks."""
    missing = [name for name in fields if getattr(subject, name) is None]
    if missing:
        raise InputError(f"compare {target} needs {', '.join(missing)} of the Subject; it was made without")
    return {name: getattr(subject, name) for name in fields}
