"""Networks: the same quantities, measured on PyTorch models. Names are loaded when first used, torch with them."""

from importlib import import_module
from typing import Any

from .measurement import Measurement
from .subject import Subject

__all__ = [
    "Measurement",
    "Subject",
    "alignment_statistics",
    "capture_activation_gradients",
]

_LAZY = {
    "alignment_statistics": "empirics.alignment",
    "capture_activation_gradients": "empirics.alignment",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'empirics' has no attribute {name!r}")
