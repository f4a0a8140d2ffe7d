"""The Tracy-Widom laws: fluctuations of the largest eigenvalue, and the threshold for outliers that follows."""

from .distribution import CDF, QUANTILE
from .threshold import EDGE_SCALE, THRESHOLD

__all__ = ["FORMULAS"]

FORMULAS = (CDF, QUANTILE, THRESHOLD, EDGE_SCALE)
