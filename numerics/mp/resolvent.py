"""Edges, Stieltjes transform and density of the Marchenko-Pastur law, certified at any digits."""

from __future__ import annotations

import math
from typing import Any

import flint

from theory import InputError

from ..certified import certified, sign
from ..evaluate import evaluates
from ..value import Value
from .balls import edges_of, gap, in_balls, place

__all__ = ["density", "edges", "stieltjes"]


@evaluates("mp.edges")
def edges(ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """(a, b) = variance (1 -+ sqrt ratio)^2, ascending; the mass at 0 of a law with ratio > 1 is no edge.

    >>> from numerics import predict
    >>> predict("mp.edges", {"ratio": "0.25"}).value.midpoint
    (Decimal('0.25'), Decimal('2.25'))
    """
    return in_balls(edges_of, ratio, variance, digits=digits)


@evaluates("mp.density")
def density(x: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """sqrt((b-x)(x-a))/(2 pi variance ratio x) inside the bulk, 0 elsewhere; inf at 0 for ratio 1, where it is unbounded.

    Its integral is min(1, 1/ratio). Reference 1:

    >>> from numerics import predict
    >>> predict("mp.density", {"x": 1, "ratio": "0.25"}, digits=20).value
    Value(0.61640444406149980556 +/- 4.99e-21, ball)
    """
    if place(x, ratio, variance) != 0:
        return Value.exact(math.inf if x == 0 and ratio == 1 else 0, digits)

    def formula(x: flint.arb, y: flint.arb, v: flint.arb) -> flint.arb:
        return gap(x, y, v).sqrt() / (2 * flint.arb.pi() * v * y * x)

    return in_balls(formula, x, ratio, variance, digits=digits)


@evaluates("mp.stieltjes")
def stieltjes(z: Any, ratio: Any, variance: Any, *, digits: int = 15) -> Value:
    """m(z) = int rho/(x-z) = 2/(variance (1-ratio) - z - sqrt(z-a) sqrt(z-b)), as an object of re and im.

    Principal roots, taken separately: the root of the product has its sign wrong left of the middle of the bulk. Refuses
    z on the bulk, where the limits from above and below differ, and at the pole 0 of a law with mass there. Reference 7:

    >>> from numerics import predict
    >>> predict("mp.stieltjes", {"z": "1+1j", "ratio": "0.25"}, digits=20).to_dict()["value"]
    {'re': '-0.024856610760289326644', 'im': '0.83144754076692825800'}
    """
    parts = _real if z.im == 0 else _complex
    if z.im == 0:
        on_bulk = certified(lambda *point: sign(gap(*point)) >= 0, z.re, ratio, variance)
        if on_bulk.midpoint or (z.re == 0 and ratio >= 1):
            raise InputError(
                f"mp.stieltjes: z = {z} lies on the spectrum of the law with ratio {ratio} and variance {variance}, where the "
                "transform has no value; give z an imaginary part, or ask for mp.density"
            )
    re, im = (
        in_balls(lambda *inputs, part=part: parts(*inputs)[part], z.re, z.im, ratio, variance, digits=digits)
        for part in (0, 1)
    )
    return Value.gather({"re": re, "im": im})


def _real(x: flint.arb, _: Any, y: flint.arb, v: flint.arb) -> tuple[Any, Any]:
    root = (-gap(x, y, v)).sqrt() * sign(x - v * (1 + y))
    return 2 / (v * (1 - y) - x - root), 0


def _complex(re: flint.arb, im: flint.arb, y: flint.arb, v: flint.arb) -> tuple[Any, Any]:
    z = flint.acb(re, im)
    lower, upper = edges_of(y, v)
    m = 2 / (v * (1 - y) - z - (z - lower).sqrt() * (z - upper).sqrt())
    return m.real, m.imag
