"""The Marchenko-Pastur law: eigenvalues of X'X/n for a matrix of independent entries, in the order in which one would read it."""

from .distribution import CDF, QUANTILE, SINGULAR_CDF, SINGULAR_DENSITY
from .moments import MOMENT, R_TRANSFORM, S_TRANSFORM
from .potential import ENTROPY, LOG_MOMENT
from .resolvent import DENSITY, EDGES, STIELTJES

__all__ = ["FORMULAS"]

FORMULAS = (
    STIELTJES,
    EDGES,
    DENSITY,
    CDF,
    QUANTILE,
    MOMENT,
    R_TRANSFORM,
    S_TRANSFORM,
    LOG_MOMENT,
    ENTROPY,
    SINGULAR_DENSITY,
    SINGULAR_CDF,
)
