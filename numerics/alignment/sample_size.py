"""Inverse problems of the misalignment bound: least sample sizes and least dimension, in exact integer arithmetic."""

from __future__ import annotations

import math
from typing import Any

import flint

from ..certified import certified, sign
from ..evaluate import evaluates
from ..value import Value
from .dimension import n_eff_of
from .sample import reciprocal

__all__ = ["dimension_needed", "samples_needed", "test_samples_needed"]


@evaluates("alignment.samples_needed")
def samples_needed(d_align: Any, delta: Any, *, digits: int = 15) -> Value:
    """The least M = K with 1/(1 + n_eff d_align) <= delta: ceil(n* + sqrt(n*^2 + n*)), n* = (1-delta)/(delta d_align).

    inf where d_align = 0, 1 where it is inf. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.samples_needed", {"d_align": "3.9", "delta": "0.05"}).value
    Value(11, exact)
    """

    def formula(d: Any, delta: Any) -> Any:
        n = _needed(d, delta)
        if isinstance(n, float):
            return math.inf
        guess = _floor(n + _root(n * n + n))
        return _least(guess, lambda count: sign(n * (2 * count + 1) - count * count) <= 0)

    return certified(formula, d_align, delta, digits=digits)


@evaluates("alignment.test_samples_needed")
def test_samples_needed(d_align: Any, delta: Any, M: Any, *, digits: int = 15) -> Value:
    """The least K with 1/(1 + n_eff d_align) <= delta, given M: ceil(n* (M+1)/(M - n*)); inf unless M > n*.

    Derived here.

    >>> from numerics import predict
    >>> predict("alignment.test_samples_needed", {"d_align": "3.9", "delta": "0.05", "M": 16}).value
    Value(8, exact)
    >>> predict("alignment.test_samples_needed", {"d_align": "3.9", "delta": "0.05", "M": 4}).value
    Value(inf, exact)
    """

    def formula(d: Any, delta: Any, m: Any) -> Any:
        n = _needed(d, delta)
        if isinstance(n, float) or (not isinstance(m, float) and sign(m - n) <= 0):
            return math.inf
        over_m = reciprocal(m)
        root = n * (1 + over_m) / (1 - n * over_m)
        return _least(_floor(root), lambda count: sign(root - count) <= 0)

    return certified(formula, d_align, delta, M, digits=digits)


@evaluates("alignment.dimension_needed")
def dimension_needed(delta: Any, M: Any, K: Any, *, digits: int = 15) -> Value:
    """The least d_align with 1/(1 + n_eff d_align) <= delta: (1-delta)/(delta n_eff); 0 in the limit n_eff = inf.

    Derived here.

    >>> from numerics import predict
    >>> float(predict("alignment.dimension_needed", {"delta": "0.25", "M": 1, "K": 1}))
    9.0
    """

    def formula(delta: Any, m: Any, k: Any) -> Any:
        return (1 - delta) / delta * reciprocal(n_eff_of(m, k))

    return certified(formula, delta, M, K, digits=digits)


def _needed(d: Any, delta: Any) -> Any:
    """n* = (1-delta)/(delta d), the effective sample size that is needed; inf where d = 0."""
    if isinstance(d, float):
        return delta * 0
    return math.inf if sign(d) == 0 else (1 - delta) / (delta * d)


def _root(number: Any) -> Any:
    """A square root good enough to start from: the candidates around it are tested exactly."""
    if isinstance(number, flint.fmpq):
        return flint.fmpq(math.isqrt(int(number.p) // int(number.q)))
    return number.sqrt()


def _floor(number: Any) -> int:
    if isinstance(number, flint.fmpq):
        return int(number.p) // int(number.q)
    return int(number.mid().floor().unique_fmpz())


def _least(guess: int, enough: Any) -> int:
    """The least count >= 1 that is enough, from a guess at most a few steps off."""
    count = max(1, guess - 2)
    while count > 1 and enough(count):
        count -= 1
    while not enough(count):
        count += 1
    return count
