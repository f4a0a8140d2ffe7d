"""Balls for the path values: precision that grows until the radius is small, and zeros that are told as such."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint

from ..number import to_ball, working_precision
from ..value import Value

__all__ = ["TooCoarse", "enclosed", "real"]

GUARD_BITS = 60
MOST_BITS = 100_000


class TooCoarse(Exception):
    """The working precision does not decide; the next one may."""


def real(number: Any) -> flint.arb:
    """An admitted number as a ball at the working precision; an entry of an array is its exact binary value."""
    return to_ball(Fraction(float(number)) if hasattr(number, "dtype") else number)


def enclosed(function: Callable[[], list[flint.arb]], digits: int) -> list[Value]:
    """What the function returns at the working precision, each to a relative radius of 10^-digits.

    Where a ball is within 10^-(2 digits + 20) of zero and still contains it, it is given as 0 with that radius: a gap that is
    exactly 0 has no relative precision.

    >>> enclosed(lambda: [flint.arb(2).log() - flint.arb(4).log() / 2], 15)[0].midpoint
    Decimal('0')
    """
    bits = math.ceil(3 * digits * math.log2(10)) + GUARD_BITS
    while bits <= MOST_BITS:
        with working_precision(bits):
            try:
                balls = function()
            except TooCoarse:
                balls = [flint.arb("nan")]
            least = flint.arb(10) ** (-2 * digits - 20)
            zero = [not _narrow(ball, digits) and ball.is_finite() and ball.abs_upper() < least for ball in balls]
            if all(known or _narrow(ball, digits) for known, ball in zip(zero, balls, strict=True)):
                found = zip(zero, balls, strict=True)
                return [Value.ball(flint.arb(0, ball.abs_upper()) if known else ball, digits) for known, ball in found]
        bits *= 2
    raise ArithmeticError(f"no enclosure to {digits} digits within {MOST_BITS} bits")


def _narrow(ball: flint.arb, digits: int) -> bool:
    return ball.is_finite() and ball.rel_accuracy_bits() > digits * math.log2(10)
