"""Numbers for finite-sample alignment: importing this package registers the evaluators of every `alignment.*` id."""

from . import (
    cantelli,
    certificate,
    dimension,
    expansion,
    gaussian,
    moments,
    sample_size,
    tail_bounds,
    width,
)
from .words import words

__all__ = [
    "cantelli",
    "certificate",
    "dimension",
    "expansion",
    "gaussian",
    "moments",
    "sample_size",
    "tail_bounds",
    "width",
    "words",
]
