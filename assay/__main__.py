"""`python -m assay` and the `assay` command. Checks first that the layers are assay's own and not a folder's that shadows them."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

LAYERS = ("theory", "numerics", "empirics", "verify")


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


def main() -> int:
    """The command line's exit status."""
    complaint = shadowing()
    if complaint is not None:
        print(f"assay: {complaint}", file=sys.stderr)
        return 2
    from verify.command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
