"""What the certified Marchenko-Pastur values share: balls for transcendental formulas, and exact places on the axis."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint

from ..certified import certified, sign
from ..number import Surd, to_text
from ..value import Value

__all__ = ["edges_of", "gap", "in_balls", "place", "square"]


def in_balls(function: Callable[..., Any], *inputs: Any, digits: int) -> Value:
    """`certified`, with balls for rational inputs as well: the function may take roots, logarithms and arcs.

    >>> in_balls(lambda a: a.sqrt(), Fraction(2), digits=10)
    Value(1.414213562 +/- 3.75e-10, ball)
    """
    return certified(
        function, *(Surd(each, to_text(each)) if isinstance(each, Fraction) else each for each in inputs), digits=digits
    )


def gap(x: Any, y: Any, v: Any) -> Any:
    """(b - x)(x - a), over any field: positive inside the bulk alone."""
    off_centre = x - v * (1 + y)
    return 4 * y * v * v - off_centre * off_centre


def place(x: Any, ratio: Any, variance: Any) -> int:
    """-1 at or below the lower edge, 0 inside the bulk, 1 at or above the upper edge; decided exactly for rational inputs."""

    def side(x: Any, y: Any, v: Any) -> int:
        return 0 if sign(gap(x, y, v)) > 0 else sign(x - v * (1 + y))

    return int(certified(side, x, ratio, variance).midpoint)


def edges_of(y: flint.arb, v: flint.arb) -> tuple[flint.arb, flint.arb]:
    """v (1 -+ sqrt y)^2."""
    root = y.sqrt()
    return v * (1 - root) * (1 - root), v * (1 + root) * (1 + root)


def square(number: Any) -> Any:
    """The square of an admitted real number, exact."""
    return (
        Surd(("*", number.tree, number.tree), f"({number})*({number})") if isinstance(number, Surd) else number * number
    )
