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
    "certify",
    "diag_path_gram",
    "load_weights",
    "path_condition",
    "weight_spectrum",
]

_LAZY = {
    "alignment_statistics": "empirics.alignment",
    "capture_activation_gradients": "empirics.alignment",
    "certify": "empirics.alignment",
    "diag_path_gram": "empirics.path",
    "load_weights": "empirics.checkpoints",
    "path_condition": "empirics.path",
    "weight_spectrum": "empirics.spectra",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'empirics' has no attribute {name!r}")
