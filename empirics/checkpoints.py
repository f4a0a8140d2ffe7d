"""Weights from a file: .safetensors, .npz or PyTorch, told apart by content. Nothing in a file is ever executed."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from theory import InputError

__all__ = ["load_weights"]

HEADER_LIMIT = 100_000_000
NUMBERS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


def load_weights(path: str | Path) -> dict[str, Any]:
    """The named tensors of a checkpoint, in its order; `module.` before every name is dropped, `state_dict` opened.

    PyTorch files are read with `weights_only=True`: a pickle that wants code is refused, as are arrays of objects. Raises
    InputError for a file that is missing, cut short, of another kind, or without tensors.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "weights.npz")
    >>> np.savez(name, layer=np.eye(2))
    >>> load_weights(name)["layer"].shape
    (2, 2)
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as fault:
        raise InputError(f"cannot read {path}: {fault.strerror}") from None
    try:
        found = _read(path, start)
    except InputError:
        raise
    except Exception as fault:  # a hostile or broken file may fail in any way its reader can
        told = str(fault).strip().split("\n")[0][:160]
        raise InputError(f"cannot read weights from {path}: {type(fault).__name__}: {told}") from None
    weights = {name: each for name, each in _opened(found).items() if hasattr(each, "shape")}
    if not weights:
        raise InputError(f"{path} holds no named tensors")
    prefix = "module." if all(name.startswith("module.") for name in weights) else ""
    return {name[len(prefix) :]: each for name, each in weights.items()}


def _read(path: Path, start: bytes) -> Any:
    if start[:2] == b"PK":
        with zipfile.ZipFile(path) as archive:
            arrays = all(name.endswith(".npy") for name in archive.namelist())
        if arrays:
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
    elif len(start) >= 9 and start[8:9] == b"{":
        return _safetensors(path)
    elif start[:1] != b"\x80":
        raise InputError(f"{path} is neither .safetensors nor .npz nor a PyTorch checkpoint")
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _opened(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        return {}
    for name in ("state_dict", "model_state_dict", "model_state", "model"):
        if isinstance(found.get(name), Mapping):
            return {str(key): each for key, each in found[name].items()}
    return {str(key): each for key, each in found.items()}


def _safetensors(path: Path) -> dict[str, Any]:
    """Eight bytes of length, a JSON header of dtype, shape and offsets, then the numbers, little-endian."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > min(HEADER_LIMIT, size - 8):
            raise InputError(f"{path} is cut short: its header should have {length} bytes")
        header = json.loads(file.read(length))
        data = file.read()
    tensors: dict[str, Any] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        low, high = entry["data_offsets"]
        if not 0 <= low <= high <= len(data):
            raise InputError(f"{path} is cut short: {name} should reach byte {high} of {len(data)}")
        tensors[name] = _tensor(path, name, entry["dtype"], entry["shape"], data[low:high])
    return tensors


def _tensor(path: Path, name: str, dtype: str, shape: list[int], raw: bytes) -> np.ndarray:
    if dtype == "BF16":  # the upper half of a float32
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if dtype not in NUMBERS:
        raise InputError(f"{path}: {name} is of type {dtype}, which is not read here; convert it to float32")
    return np.frombuffer(raw, NUMBERS[dtype]).reshape(shape)
