"""The claims, suite by suite. A suite is a module or package with claims at its top level; it is imported when asked for."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from theory import InputError

from ..claim import Claim, collect

__all__ = ["SUITES", "find"]

SUITES: dict[str, tuple[str, ...]] = {
    "alignment": (
        "verify.suites.alignment.identities",
        "verify.suites.alignment.moments",
        "verify.suites.alignment.bounds",
        "verify.suites.alignment.gaussian",
        "verify.suites.alignment.statistics",
        "verify.suites.alignment.certificate",
        "verify.suites.alignment.network",
    ),
    "mp": ("verify.suites.mp",),
    "spiked": ("verify.suites.spiked",),
    "mlp": ("verify.suites.mlp",),
    "path": ("verify.suites.path",),
    "tracy_widom": ("verify.suites.tracy_widom",),
}
"""Suite name -> the modules that hold its claims."""


@cache
def _suite(name: str) -> tuple[Claim, ...]:
    return tuple(claim for module in SUITES[name] for claim in collect(import_module(module)))


def find(selection: Sequence[str], files: Sequence[str] = ()) -> list[Claim]:
    """The claims of the named suites and ids; of the user's files, or of every suite, where nothing is named.

    A selection is a suite, a claim id, or an id without its case; a user's claims come before the built-in ones of that
    name. Raises InputError with the near miss.
    """
    mine = [claim for name in files for claim in collect(_load(str(Path(name).resolve())))]
    twice = [claim.id for k, claim in enumerate(mine) if claim.id in {each.id for each in mine[:k]}]
    if twice:
        raise InputError(f"two of the files define a claim {twice[0]!r}: rename one, or give it another suite")
    if not selection:
        return mine if files else [claim for name in SUITES for claim in _suite(name)]
    found: dict[str, Claim] = {}
    for name in selection:
        for claim in _matching(name, mine) or _built_in(name):
            found.setdefault(claim.id, claim)
    return list(found.values())


def _matching(name: str, claims: Sequence[Claim]) -> list[Claim]:
    return [c for c in claims if name in (c.suite, c.id, c.id.split("/", 1)[0])]


def _built_in(name: str) -> list[Claim]:
    suite = name.split(".", 1)[0]
    if suite not in SUITES:
        near = get_close_matches(suite, SUITES, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"there is no suite or claim {name!r}; the suites are {', '.join(SUITES)}.{hint}")
    chosen = _matching(name, _suite(suite))
    if not chosen:
        near = get_close_matches(name, [c.id for c in _suite(suite)], n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"suite {suite} has no claim {name!r}.{hint}")
    return chosen


@cache
def _load(path: str) -> ModuleType:
    """A user's claim file as a module. It is the user's own code and runs as such."""
    spec = importlib.util.spec_from_file_location(f"claims_{Path(path).stem}", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise InputError(f"cannot read claims from {path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except InputError:
        raise
    except Exception as fault:
        raise InputError(f"{path} could not be imported: {type(fault).__name__}: {fault}") from fault
    if not collect(module):
        raise InputError(f"{path} defines no claims; see CONTRIBUTING.md for an example of one")
    return module
