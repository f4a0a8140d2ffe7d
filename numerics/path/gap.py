"""The gap of a diagonal, and the condition number that it allows."""

from __future__ import annotations

from typing import Any

from theory import InputError

from ..evaluate import evaluates
from ..value import Value
from .balls import enclosed, real

__all__ = ["condition_bound", "gap"]

LARGEST_LOG = 20_000


@evaluates("path.gap")
def gap(diagonal: Any, *, digits: int = 15) -> Value:
    """log(AM/GM) of positive numbers, natural logarithm: 0 only where all are equal. A ball. Derived here.

    >>> from numerics import predict
    >>> round(float(predict("path.gap", {"diagonal": "4,1"}).value), 12)  # log(5/4)
    0.223143551314
    """

    def formula() -> list[Any]:
        g = [real(each) for each in diagonal]
        return [(sum(g, real(0)) / len(g)).log() - sum((each.log() for each in g), real(0)) / len(g)]

    return enclosed(formula, digits)[0]


@evaluates("path.condition_bound")
def condition_bound(gap: Any, parameters: int, *, digits: int = 15) -> Value:
    """(sqrt K + sqrt(K-1))^2 with K = e^(n gap): no n positive numbers of that gap have a larger ratio. A ball.

    Refused where n gap is above 20,000: a bound of that size says nothing. Derived here.

    >>> from numerics import predict
    >>> round(float(predict("path.condition_bound", {"gap": "0", "parameters": 5}).value), 12)
    1.0
    """
    if float(gap) * parameters > LARGEST_LOG:
        raise InputError(f"path.condition_bound: e^(n gap) with n gap = {float(gap) * parameters:.3g} bounds nothing")

    def formula() -> list[Any]:
        # K - 1 by expm1: for a small gap the difference is all that counts.
        exponent = real(gap) * parameters
        return [((exponent / 2).exp() + exponent.expm1().sqrt()) ** 2]

    return enclosed(formula, digits)[0]
