"""Spiked random matrices: where a planted direction lands in the spectrum, from when on, and how much of it is seen."""

from .covariance import COVARIANCE_LOCATION, COVARIANCE_OVERLAP, COVARIANCE_THRESHOLD
from .rectangular import LOCATION, OVERLAP_COLUMNS, OVERLAP_ROWS, THRESHOLD

__all__ = ["FORMULAS"]

FORMULAS = (
    THRESHOLD,
    LOCATION,
    OVERLAP_ROWS,
    OVERLAP_COLUMNS,
    COVARIANCE_THRESHOLD,
    COVARIANCE_LOCATION,
    COVARIANCE_OVERLAP,
)
