"""Cantelli's certificate on the misalignment probability, exact for rational input and certified at any digits."""

from __future__ import annotations

from typing import Any

from ..certified import certified, sign
from ..evaluate import evaluates
from ..value import Value
from .dimension import bound_of, dimension_of, smaller
from .moments import variance_words
from .sample import broadcast, inner, quadratic, trace_product

__all__ = ["bound", "bound_exact"]


@evaluates("alignment.bound_exact")
def bound_exact(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """Var X/(Var X + (E X)^2) >= Pr(X <= 0), for any laws with second moments and E X > 0; 1 where E X <= 0.

    Source: seed 000. Reference R2 is 7/19:

    >>> from numerics import predict
    >>> predict("alignment.bound_exact", {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}, digits=18).value
    Value(0.368421052631578947 +/- 3.69e-19, ball)
    """

    def formula(m: Any, k: Any, a: Any, S: Any, b: Any, T: Any) -> Any:
        rho, variance = variance_words(m, k, a, S, b, T)
        return variance / (variance + rho * rho) if sign(rho) > 0 else 1

    return certified(formula, M, K, *broadcast(mu, Sigma, mu_test, Sigma_test), digits=digits)


@evaluates("alignment.bound")
def bound(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """1/(1 + n_eff d_align) >= bound_exact >= Pr(X <= 0), for E X > 0; 1 where E X <= 0.

    With different laws d is the least of (a'b)^2/b'Sb, (a'b)^2/a'Ta and (a'b)^2/tr(ST). At most M + K + 1 times
    `bound_exact`. Source: seed 000, theorem 1. Reference R3:

    >>> from numerics import predict
    >>> predict("alignment.bound", {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}, digits=18).value
    Value(0.714648065948002536 +/- 4.62e-19, ball)
    """

    def formula(m: Any, k: Any, a: Any, S: Any, b: Any, T: Any) -> Any:
        rho = inner(a, b)
        if sign(rho) <= 0:
            return 1
        noises = (quadratic(b, S), quadratic(a, T), trace_product(S, T))
        return bound_of(smaller(*(dimension_of(rho, noise) for noise in noises)), m, k)

    return certified(formula, M, K, *broadcast(mu, Sigma, mu_test, Sigma_test), digits=digits)
