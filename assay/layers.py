"""Are the four general names `theory`, `numerics`, `empirics`, `verify` assay's own, or a folder's that shadows them?"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["LAYERS", "own_layers", "shadowing"]

LAYERS = ("theory", "numerics", "empirics", "verify")


@cache
def shadowing() -> str | None:
    """The complaint about a layer found elsewhere than beside this package, or None. Nothing is imported for it."""
    home = Path(__file__).resolve().parent.parent
    for layer in LAYERS:
        spec = find_spec(layer)
        origin = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or []), None)
        if origin is None:
            return f"the package {layer} is missing from this installation of assay; install it again"
        found = Path(origin).resolve()
        found = found.parent.parent if found.name == "__init__.py" else found.parent
        if found != home:
            return f"{found / layer} shadows assay's own package {layer}; rename it, or run assay from another folder"
    return None


def own_layers() -> None:
    """Raise ImportError with one message where a layer is not assay's own."""
    complaint = shadowing()
    if complaint is not None:
        raise ImportError(complaint)
