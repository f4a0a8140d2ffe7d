"""Numbers for finite-sample alignment: importing this package registers the evaluators of every `alignment.*` id."""

from . import cantelli, dimension, moments, sample_size
from .words import words

__all__ = ["cantelli", "dimension", "moments", "sample_size", "words"]
