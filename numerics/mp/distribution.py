"""Distribution function and quantile of the Marchenko-Pastur law, and of its singular values, certified at any digits."""

from __future__ import annotations

from typing import Any

import flint

from ..certified import certified, sign
from ..evaluate import evaluates
from ..number import to_float
from ..value import Value
from .balls import edges_of, gap, in_balls, place, square
from .law import MarchenkoPastur

__all__ = ["cdf", "quantile", "singular_cdf", "singular_density"]


def _atom(y: Any) -> Any:
    return 1 - 1 / y if sign(y - 1) > 0 else 0 * y


def _inside(x: flint.arb, y: flint.arb, v: flint.arb) -> flint.arb:
    """F inside the bulk, in arcs of two arguments: an arcsine loses half of the digits at the edges."""
    x, root, apart = x / v, gap(x, y, v).sqrt() / v, abs(1 - y)
    arc = flint.arb.atan2
    arcs = (1 + y) * arc(x - 1 - y, root) - apart * arc((1 + y) * x - apart * apart, apart * root)
    share = 1 / y if sign(y - 1) > 0 else flint.arb(1)
    return _atom(y) + share / 2 + (root + arcs) / (2 * flint.arb.pi() * y)


@evaluates("mp.cdf")
def cdf(x: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """The share of eigenvalues of X'X/n that are at most x: the mass 1 - 1/ratio at 0 included, 0 for x < 0.

    References 2 and 3:

    >>> from numerics import predict
    >>> predict("mp.cdf", {"x": 1, "ratio": "0.25"}, digits=20).value
    Value(0.55339008127533609917 +/- 1.69e-21, ball)
    >>> predict("mp.cdf", {"x": 1, "ratio": 2}, digits=20).value
    Value(0.65915494309189533577 +/- 1.12e-21, ball)
    """
    side = place(x, ratio, variance)
    if x < 0 or side > 0:
        return Value.exact(0 if x < 0 else 1, digits)
    return certified(_atom, ratio, digits=digits) if side < 0 else in_balls(_inside, x, ratio, variance, digits=digits)


@evaluates("mp.quantile")
def quantile(probability: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """The least x with F(x) >= probability: 0 up to the mass at 0, the lower edge at probability 0 of a law without it.

    A root of F(x) = probability, enclosed by the signs of F - probability on both sides of it. Reference 8:

    >>> from numerics import predict
    >>> predict("mp.quantile", {"probability": "0.5", "ratio": "0.5"}, digits=20).value
    Value(0.83046588158136355008 +/- 2.91e-21, ball)
    """
    above = certified(lambda p, y: sign(p - _atom(y)), probability, ratio)
    if above.midpoint <= 0 and ratio >= 1:
        return Value.exact(0, digits)
    if probability <= 0 or probability >= 1:
        return in_balls(lambda y, v: edges_of(y, v)[1 if probability >= 1 else 0], ratio, variance, digits=digits)
    start = MarchenkoPastur(to_float(ratio)).quantile(to_float(probability))

    def formula(p: flint.arb, y: flint.arb, v: flint.arb) -> flint.arb:
        return v * _root(p, y, start, digits)

    return in_balls(formula, probability, ratio, variance, digits=digits)


def _root(p: flint.arb, y: flint.arb, start: float, digits: int) -> flint.arb:
    """An enclosure of the root of F(x) = p at variance 1: Newton within a bracket, then F - p seen to change its sign."""
    one = flint.arb(1)
    lower, upper = (edge.mid() for edge in edges_of(y, one))
    low, high, x = lower, upper, flint.arb(start)
    tolerance = flint.arb(10) ** -(digits + 3)
    for _ in range(8 * flint.ctx.prec):
        if not (low < x < high):
            x = ((low + high) / 2).mid()
        step = (_below(x, y) - p) / (gap(x, y, one).sqrt() / (2 * flint.arb.pi() * y * x))
        low, high = (low, x) if step > 0 else (x, high)
        x = (x - step).mid()
        if not abs(step.mid()) > x * tolerance:
            break
    left, right = (x * (1 - tolerance)).mid(), (x * (1 + tolerance)).mid()
    if _below(left, y) < p and _below(right, y) > p:
        return left.union(right)
    return flint.arb.nan()  # not decided at this precision: `certified` asks again with more


def _below(x: flint.arb, y: flint.arb) -> flint.arb:
    lower, upper = edges_of(y, flint.arb(1))
    if not x > lower:
        return flint.arb(0) + _atom(y)
    return flint.arb(1) if not x < upper else _inside(x, y, flint.arb(1))


@evaluates("mp.singular_cdf")
def singular_cdf(s: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """The share of singular values of X/sqrt(n) that are at most s, per column: F(s^2). Reference 9, the quarter circle:

    >>> from numerics import predict
    >>> predict("mp.singular_cdf", {"s": 1, "ratio": 1}, digits=20).value
    Value(0.60899778104422935809 +/- 1.01e-21, ball)
    """
    return Value.exact(0, digits) if s < 0 else cdf(square(s), ratio, variance, digits=digits)


@evaluates("mp.singular_density")
def singular_density(s: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """sqrt((b-s^2)(s^2-a))/(pi variance ratio s) for singular values of X/sqrt(n); sqrt(4-s^2)/pi at ratio 1.

    At s = 0 and ratio 1, where it jumps, the limit from the right.

    >>> from numerics import predict
    >>> predict("mp.singular_density", {"s": 1, "ratio": 1}, digits=20).value        # sqrt(3)/pi
    Value(0.55132889542179204951 +/- 1.34e-21, ball)
    """
    if s == 0 and ratio == 1:
        return in_balls(lambda v: 1 / (flint.arb.pi() * v.sqrt()), variance, digits=digits)
    if s <= 0 or place(square(s), ratio, variance) != 0:
        return Value.exact(0, digits)

    def formula(s: flint.arb, y: flint.arb, v: flint.arb) -> flint.arb:
        return gap(s * s, y, v).sqrt() / (flint.arb.pi() * v * y * s)

    return in_balls(formula, s, ratio, variance, digits=digits)
