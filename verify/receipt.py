"""The fifth noun. A `Receipt` is one claim's record: what was asked, what was drawn, what was seen, the verdict.

One JSON file each, written whole or not at all. Everything except `cost` is a function of seed, level and code version.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["SCHEMA", "Receipt", "code_version", "read", "versions", "write_atomically"]

SCHEMA = 1
LAYERS = ("theory", "numerics", "empirics", "verify", "assay")


@dataclass(frozen=True)
class Receipt:
    """The stored form of one judged claim; `content` is the JSON object."""

    content: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The claim's id."""
        return self.content["claim"]

    @property
    def verdict(self) -> str:
        """confirmed, refuted, undecided, vacuous or error."""
        return self.content["seen"]["verdict"]

    @property
    def owner(self) -> str:
        """ours or reported."""
        return self.content["owner"]

    def write(self, folder: Path) -> Path:
        """Store under the claim's name in `folder`; whoever reads sees the whole receipt or none."""
        path = folder / file_name(self.id)
        write_atomically(path, json.dumps(self.content, indent=1, sort_keys=True) + "\n")
        return path


def file_name(claim: str) -> str:
    """The receipt's file: the id, with what a file system does not take replaced, and a hash against collisions."""
    safe = "".join(c if c.isalnum() or c in "._-" else "-" for c in claim)[:100]
    return f"{safe}.{hashlib.sha256(claim.encode()).hexdigest()[:8]}.json"


def read(path: Path) -> Receipt | None:
    """The receipt in a file; None if the file is cut short, of another schema, or not a receipt at all."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    needed = ("schema", "claim", "owner", "seen", "asked")
    if not isinstance(content, dict) or any(key not in content for key in needed) or content["schema"] != SCHEMA:
        return None
    seen = content["seen"]
    return Receipt(content) if isinstance(seen, dict) and isinstance(seen.get("verdict"), str) else None


def write_atomically(path: Path, text: str) -> None:
    """Write beside the target, flush to disk, then rename: a kill at any moment leaves the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-", suffix=path.suffix)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@cache
def code_version() -> str:
    """A hash of the installed source of the five packages: a resumed run must be of the same code."""
    digest = hashlib.sha256()
    for layer in LAYERS:
        spec = find_spec(layer)
        for root in spec.submodule_search_locations or [] if spec else []:
            for path in sorted(Path(root).rglob("*.py")):
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def versions() -> Mapping[str, str]:
    """Versions of Python and of the libraries that a result may depend on."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("sympy", "numpy", "scipy", "mpmath", "python-flint", "torch", "hypothesis"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a layer may be used without its heavier neighbours
            found[name] = "absent"
    return found
