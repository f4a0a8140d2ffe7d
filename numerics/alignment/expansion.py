"""What an inserted step along the mean training gradient is worth on test data, exact for rational input."""

from __future__ import annotations

from typing import Any

from theory import InputError

from ..certified import certified
from ..evaluate import evaluates
from ..value import Value
from .sample import reciprocal

__all__ = ["expansion_decrease", "intervention_ratio"]


@evaluates("alignment.expansion_decrease")
def expansion_decrease(alignment: Any, curvature: Any, mean_squared: Any, *, digits: int = 15) -> Value:
    """X^2/(2 beta ||mu_M||^2): the test risk falls by at least this at the step eta = X/(beta ||mu_M||^2), X >= 0.

    Exact for rational input. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.expansion_decrease", {"alignment": 3, "curvature": 2, "mean_squared": "0.5"}).value
    Value(4.5, exact)
    """

    return certified(lambda X, beta, size: X * X / (2 * beta * size), alignment, curvature, mean_squared, digits=digits)


@evaluates("alignment.intervention_ratio")
def intervention_ratio(eta: Any, eta_N: Any, *, digits: int = 15) -> Value:
    """1 - eta/(2 eta_N): realised over predicted decrease of the test risk, to first order in the step eta.

    eta_N = X/(mu_M'H mu_M) is the Newton step; negative along a concave direction, where the ratio exceeds 1; inf
    without curvature. InputError for eta_N = 0: then X = 0 and nothing was predicted. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.intervention_ratio", {"eta": "0.05", "eta_N": 1}).value
    Value(0.975, exact)
    """
    if not isinstance(eta_N, float) and eta_N == 0:
        raise InputError(
            "alignment.intervention_ratio: eta_N = 0 means X = 0: no decrease is predicted, and there is no ratio to it"
        )
    return certified(lambda eta, newton: 1 - eta * reciprocal(newton) / 2, eta, eta_N, digits=digits)
