"""Averages of logarithms over the Marchenko-Pastur law, certified at any digits."""

from __future__ import annotations

from typing import Any

import flint

from ..evaluate import evaluates
from ..value import Value
from .balls import edges_of, in_balls

__all__ = ["entropy", "log_moment"]


@evaluates("mp.log_moment")
def log_moment(g: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """E log(1 + g x) in nats: -log(1-q) - log(1 - ratio q)/ratio - q, q = 4g/(sqrt(1+ga) + sqrt(1+gb))^2. Reference 5:

    >>> from numerics import predict
    >>> predict("mp.log_moment", {"g": 3, "ratio": "0.5"}, digits=20).value
    Value(1.2428758382177717887 +/- 1.55e-20, ball)
    """
    if g == 0:
        return Value.exact(0, digits)

    def formula(g: flint.arb, y: flint.arb, v: flint.arb) -> flint.arb:
        lower, upper = edges_of(y, v)
        roots = (1 + g * lower).sqrt() + (1 + g * upper).sqrt()
        q = 4 * g * v / (roots * roots)
        return -(-q).log1p() - (-y * q).log1p() / y - q

    return in_balls(formula, g, ratio, variance, digits=digits)


@evaluates("mp.entropy")
def entropy(ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """-int rho log rho = log(4 pi^2 ratio variance^2)/2 - 1 - (1-ratio)/(2 ratio) log(1-ratio), in nats, ratio <= 1. Reference 6:

    >>> from numerics import predict
    >>> predict("mp.entropy", {"ratio": "0.25"}, digits=19).value
    Value(0.5762529945270715653 +/- 2.28e-21, ball)
    """

    def formula(y: flint.arb, v: flint.arb) -> flint.arb:
        last = 0 if ratio == 1 else (1 - y) / (2 * y) * (-y).log1p()
        return (2 * flint.arb.pi() * v).log() + y.log() / 2 - 1 - last

    return in_balls(formula, ratio, variance, digits=digits)
