"""Effective sample size and effective dimensions, exact for rational input and certified at any digits."""

from __future__ import annotations

import math
from typing import Any

import flint

from ..certified import certified, sign
from ..evaluate import evaluates
from ..value import Value
from .sample import broadcast, inner, quadratic, reciprocal, trace_product

__all__ = ["bound_from_dimension", "d_2", "d_align", "d_parallel", "n_eff", "n_eff_of", "smaller"]


def n_eff_of(M: Any, K: Any) -> Any:
    """1/(1/M + 1/K + 1/(MK)) over any field; inf when both are."""
    total = reciprocal(M) + reciprocal(K) + reciprocal(M) * reciprocal(K)
    return reciprocal(total) if total != 0 else math.inf


def dimension_of(rho: Any, noise: Any) -> Any:
    """rho^2/noise over any field: 0 without signal (whatever the noise), inf with signal and no noise."""
    if sign(rho) == 0:
        return 0
    return rho * rho / noise if sign(noise) != 0 else math.inf


def smaller(*dimensions: Any) -> Any:
    """The least of several dimensions, some of them inf. Of balls the enclosure of the least: equal ones need no decision."""
    finite = [each for each in dimensions if not isinstance(each, float)]
    if not finite:
        return math.inf
    least = finite[0]
    for each in finite[1:]:
        # In the same-law case two of the three coincide: a comparison of balls would never be decided.
        least = flint.arb(least).min(each) if isinstance(each, flint.arb) else min(least, each)
    return least


def _words(a: list[Any], S: list[Any]) -> tuple[Any, Any, Any]:
    return inner(a, a), quadratic(a, S), trace_product(S, S)


@evaluates("alignment.n_eff")
def n_eff(M: Any, K: Any, *, digits: int = 15) -> Value:
    """MK/(M + K + 1): what M training and K test samples are worth together. Below both; M when K = inf.

    >>> from numerics import predict
    >>> predict("alignment.n_eff", {"M": 1, "K": 1}, digits=5).value
    Value(0.33333 +/- 0.00000334, ball)
    """
    return certified(n_eff_of, M, K, digits=digits)


@evaluates("alignment.d_parallel")
def d_parallel(mu: Any, Sigma: Any, *, digits: int = 15) -> Value:
    """||mu||^4 / mu'Sigma mu, per sample. inf where Sigma mu = 0, 0 where mu = 0. Source: seed 000.

    >>> from numerics import predict
    >>> float(predict("alignment.d_parallel", {"mu": "1,0.5,0", "Sigma": "1,3,0.25"}))
    0.892857142857143
    """
    a, S, *_ = broadcast(mu, Sigma)
    return certified(lambda a, S: dimension_of(*_words(a, S)[:2]), a, S, digits=digits)


@evaluates("alignment.d_2")
def d_2(mu: Any, Sigma: Any, *, digits: int = 15) -> Value:
    """||mu||^4 / tr(Sigma^2), per sample; not (tr Sigma)^2. inf where Sigma = 0, 0 where mu = 0. Source: seed 000.

    >>> from numerics import predict
    >>> float(predict("alignment.d_2", {"mu": "1,0.5,0", "Sigma": "1,3,0.25"}))
    0.15527950310559
    """
    a, S, *_ = broadcast(mu, Sigma)
    return certified(lambda a, S: dimension_of(*_words(a, S)[::2]), a, S, digits=digits)


@evaluates("alignment.d_align")
def d_align(mu: Any, Sigma: Any, *, digits: int = 15) -> Value:
    """The smaller of d_parallel and d_2, per sample. Source: seed 000.

    >>> from numerics import predict
    >>> float(predict("alignment.d_align", {"mu": "0.5", "Sigma": "2"}))
    0.015625
    """

    def formula(a: Any, S: Any) -> Any:
        energy, v, t2 = _words(a, S)
        return smaller(dimension_of(energy, v), dimension_of(energy, t2))

    a, S, *_ = broadcast(mu, Sigma)
    return certified(formula, a, S, digits=digits)


@evaluates("alignment.bound_from_dimension")
def bound_from_dimension(d_align: Any, M: Any, K: Any, *, digits: int = 15) -> Value:
    """1/(1 + n_eff d_align), the misalignment bound when only the dimension is known. Source: seed 000, theorem 1.

    >>> from numerics import predict
    >>> float(predict("alignment.bound_from_dimension", {"d_align": 1, "M": 1, "K": 1}))
    0.75
    """
    return certified(bound_of, d_align, M, K, digits=digits)


def bound_of(d: Any, M: Any, K: Any) -> Any:
    """1/(1 + n_eff d) over any field, its limits at d = 0, d = inf and n_eff = inf included."""
    n = n_eff_of(M, K)
    infinite = [isinstance(each, float) and math.isinf(each) for each in (d, n)]
    if any(infinite):
        return 1 if not infinite[0] and sign(d) == 0 else 0
    return 1 / (1 + n * d)
