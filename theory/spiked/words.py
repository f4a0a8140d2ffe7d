"""What the spiked-matrix formulas are made of: strengths, assumptions, and the axioms they start from."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

from ..formula import Assumption, Domain, Parameter, Source
from ..mp.words import RATIO

__all__ = ["COVARIANCE", "COVARIANCE_ASSUMPTIONS", "ELL", "PAPERS", "RECTANGULAR", "RECTANGULAR_ASSUMPTIONS", "THETA"]

PAPERS = {
    "rectangular": Source(
        "The singular values and vectors of low rank perturbations of large rectangular random matrices",
        arxiv="1103.2221",
    ),
    "covariance": Source(
        "Phase transition of the largest eigenvalue for nonnull complex sample covariance matrices",
        arxiv="math/0403022",
    ),
}

THETA = Parameter(
    "theta",
    "singular value of the spike, in units of sigma sqrt(rows)",
    Domain("real", low=0),
    typical=(0.5, 3),
    latex=r"\theta",
)
ELL = Parameter(
    "ell",
    "population eigenvalue of the spike, the others being 1",
    Domain("real", low=0, open_low=True),
    typical=(1, 6),
    latex=r"\ell",
)
RECTANGULAR, COVARIANCE = (THETA, RATIO), (ELL, RATIO)


def _theta_detached(inputs: Mapping[str, Any]) -> bool | None:
    theta, ratio = inputs.get("theta"), inputs.get("ratio")
    return None if theta is None or ratio is None else float(theta) ** 4 > float(ratio)


def _ell_detached(inputs: Mapping[str, Any]) -> bool | None:
    ell, ratio = inputs.get("ell"), inputs.get("ratio")
    return None if ell is None or ratio is None else abs(float(ell) - 1) > sqrt(float(ratio))


_INDEPENDENT = "the spike's directions are independent of the noise (a trained spike need not be)"
_OTHERWISE = "nothing leaves the bulk: the location is its edge, the overlap 0"

RECTANGULAR_ASSUMPTIONS = (
    Assumption("independent_entries", "the noise has independent entries of mean 0 and variance 1/rows"),
    Assumption("independent_spike", _INDEPENDENT),
    Assumption(
        "large_matrix", "rows and columns are many; an outlier fluctuates by order rows^(-1/2) about its location"
    ),
    Assumption("above_threshold", "theta > ratio^(1/4)", _theta_detached, _OTHERWISE),
)
COVARIANCE_ASSUMPTIONS = (
    Assumption("independent_rows", "the rows are independent, of the covariance 1 + (ell - 1) v v'"),
    Assumption(
        "large_matrix", "rows and columns are many; an outlier fluctuates by order rows^(-1/2) about its location"
    ),
    Assumption("above_threshold", "abs(ell - 1) > sqrt(ratio)", _ell_detached, _OTHERWISE),
)
