"""Moments and free transforms of the Marchenko-Pastur law: rational functions, exact for rational input."""

from __future__ import annotations

import math
from typing import Any

from theory import InputError

from ..certified import certified, sign
from ..evaluate import evaluates
from ..value import Value

__all__ = ["moment", "r_transform", "s_transform"]


@evaluates("mp.moment")
def moment(order: int, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """E x^k = variance^k sum_{r<k} C(k,r) C(k-1,r) ratio^r/(r+1), over all columns, the mass at 0 included. Reference 4:

    >>> from numerics import predict
    >>> predict("mp.moment", {"order": 6, "ratio": "0.3"}).value
    Value(11.47393, exact)
    """
    if order == 0:
        return Value.exact(1, digits)

    def formula(y: Any, v: Any) -> Any:
        total = 0 * y
        for r in reversed(range(order)):
            total = total * y + math.comb(order, r) * math.comb(order - 1, r) // (r + 1)
        return v**order * total

    return certified(formula, ratio, variance, digits=digits)


@evaluates("mp.r_transform")
def r_transform(g: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """R(g) = variance/(1 - variance ratio g), with g = int rho/(z-x); refuses the pole.

    >>> from numerics import predict
    >>> predict("mp.r_transform", {"g": "0.5", "ratio": "0.4"}).value
    Value(1.25, exact)
    """
    return _simple_pole("mp.r_transform", "g", lambda g, y, v: (v, 1 - v * y * g), g, ratio, variance, digits)


@evaluates("mp.s_transform")
def s_transform(psi: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """S(psi) = 1/(variance (1 + ratio psi)); refuses the pole.

    >>> from numerics import predict
    >>> predict("mp.s_transform", {"psi": 1, "ratio": "0.25"}).value
    Value(0.8, exact)
    """
    return _simple_pole("mp.s_transform", "psi", lambda psi, y, v: (1, v * (1 + y * psi)), psi, ratio, variance, digits)


def _simple_pole(id: str, name: str, parts: Any, argument: Any, ratio: Any, variance: Any, digits: int) -> Value:
    def formula(*inputs: Any) -> Any:
        above, below = parts(*inputs)
        if sign(below) == 0:
            raise InputError(
                f"{id} has a pole at {name} = {argument} for ratio {ratio} and variance {variance}: ask beside it"
            )
        return above / below

    return certified(formula, argument, ratio, variance, digits=digits)
