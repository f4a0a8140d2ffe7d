"""Certified evaluation of algebraic formulas: exactly where every input is rational, in balls of growing precision else.

A formula is written once, in + - * / and comparisons, over whatever numbers it is given. That same function runs on
rationals here, on mpmath numbers in the tests, and on SymPy symbols against the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from theory import InputError

from .number import Surd, to_ball, working_precision
from .value import Value

__all__ = ["certified", "field_of", "sign"]

GUARD_BITS = 40
MOST_BITS = 200_000


def _rational(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_rational(each) for each in value] if value.ndim > 1 else [_binary(each) for each in value.tolist()]
    if isinstance(value, tuple):
        return [_rational(each) for each in value]
    if isinstance(value, Fraction):
        return flint.fmpq(value.numerator, value.denominator)
    return flint.fmpq(value) if isinstance(value, int) else value


def _binary(number: float) -> flint.fmpq:
    return flint.fmpq(*number.as_integer_ratio())


def _balls(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_balls(each) for each in value] if value.ndim > 1 else [flint.arb(each) for each in value.tolist()]
    if isinstance(value, tuple):
        return [_balls(each) for each in value]
    if isinstance(value, (Fraction, Surd)):
        return to_ball(value)
    return flint.arb(value) if isinstance(value, int) else value


def field_of(*inputs: Any) -> Callable[[Any], Any]:
    """The conversion into the smallest field that holds the inputs: rationals if they all are, balls otherwise."""

    def irrational(value: Any) -> bool:
        return any(map(irrational, value)) if isinstance(value, tuple) else isinstance(value, Surd)

    return _balls if any(map(irrational, inputs)) else _rational


def certified(function: Callable[..., Any], *inputs: Any, digits: int = 15) -> Value:
    """`function(*inputs)` to `digits` significant digits, with a radius that contains the truth.

    `function` sees rationals (python-flint `fmpq`) or real balls (`arb`), vectors and matrices as lists of them, inf
    and None as they are; it may return a number, an `int`, inf, or a list of these. Over balls the precision doubles until
    the relative radius is below 10^-digits; a comparison that no precision decides raises ArithmeticError.

    >>> certified(lambda a, b: a / b, Fraction(1), Fraction(3), digits=20)
    Value(0.33333333333333333333 +/- 3.34e-21, ball)
    """
    convert = field_of(*inputs)
    if convert is _rational:
        return _value(function(*map(_rational, inputs)), digits)
    bits = math.ceil(digits * math.log2(10)) + GUARD_BITS
    while bits <= MOST_BITS:
        with working_precision(bits):
            try:
                value = _value(function(*map(_balls, inputs)), digits)
            except _Undecided:
                bits *= 2
                continue
            if _narrow(value, digits):
                return value
        bits *= 2
    raise ArithmeticError(f"no decision at {MOST_BITS} bits: an exact tie of irrational inputs")


class _Undecided(Exception):
    """A ball that contains zero was asked for its sign."""


def sign(number: Any) -> int:
    """-1, 0 or 1; over balls the working precision rises until the sign is decided."""
    if isinstance(number, flint.arb):
        if number > 0:
            return 1
        if number < 0:
            return -1
        if number.is_zero():
            return 0
        raise _Undecided
    return (number > 0) - (number < 0)


def _value(result: Any, digits: int) -> Value:
    if isinstance(result, (list, tuple)):
        return Value.gather([_value(each, digits) for each in result])
    if isinstance(result, flint.arb):
        if not result.is_finite():
            raise _Undecided
        return Value.ball(result, digits)
    if isinstance(result, flint.fmpq):
        return Value.exact(Fraction(int(result.p), int(result.q)), digits)
    if isinstance(result, (int, float, Fraction)):
        return Value.exact(result, digits)
    raise InputError(f"a formula returned {type(result).__name__}")


def _narrow(value: Value, digits: int) -> bool:
    pairs = (
        zip(value.midpoint, value.radius, strict=True)
        if isinstance(value.midpoint, tuple)
        else [(value.midpoint, value.radius)]
    )
    return all(not radius or abs(radius) <= abs(middle) * 10 * _power(digits) for middle, radius in pairs)


def _power(digits: int) -> Any:
    from decimal import Decimal

    return Decimal(1).scaleb(-digits)
