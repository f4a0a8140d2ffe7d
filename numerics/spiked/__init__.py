"""Numbers for spiked matrices: importing this package registers the evaluators of every `spiked.*` id."""

from . import covariance, rectangular
from .rectangular import overlaps_of, strength_of

__all__ = ["covariance", "overlaps_of", "rectangular", "strength_of"]
