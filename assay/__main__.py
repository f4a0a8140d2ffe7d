"""`python -m assay` and the `assay` command."""

from __future__ import annotations

import sys

from .layers import shadowing


def main() -> int:
    """The command line's exit status; 2 with one message where another folder's package shadows one of the layers."""
    complaint = shadowing()
    if complaint is not None:
        print(f"assay: {complaint}", file=sys.stderr)
        return 2
    from verify.command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
