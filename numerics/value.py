"""The second noun. A `Value` is a number that carries its own error, in decimal, at the digits it was asked for.

`midpoint` and `radius` are decimals, so that what is printed, stored and compared is one and the same thing:

* `exact`: the decimal is the value, radius 0;
* `ball`: the truth lies within `radius` of `midpoint`, rounding to decimal included (rigorous, from ball arithmetic);
* `estimate`: a floating-point result whose radius is an error estimate, not a proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

import flint

__all__ = ["Kind", "Value", "WORST_KIND"]

Kind = Literal["exact", "ball", "estimate"]
WORST_KIND: tuple[Kind, ...] = ("exact", "ball", "estimate")
_UP = Context(prec=3, rounding=ROUND_UP, Emin=-(10**12), Emax=10**12)


@dataclass(frozen=True)
class Value:
    """A number, list or object of numbers with a radius of the same shape.

    A complex number is the object {"re", "im"}.

    >>> Value.exact(Fraction(1, 4))
    Value(0.25, exact)
    >>> third = Value.exact(Fraction(1, 3), digits=5)
    >>> third
    Value(0.33333 +/- 0.00000334, ball)
    >>> third.contains(Fraction(1, 3))
    True
    """

    midpoint: Any
    radius: Any
    kind: Kind
    digits: int = 15

    @classmethod
    def exact(cls, number: Fraction | int | float, digits: int = 15) -> Value:
        """A rational or infinite number. One whose decimal does not end within `digits` is a ball around its rounding."""
        if isinstance(number, float) and math.isinf(number):
            return cls(Decimal(number), Decimal(0), "exact", digits)
        truth = Fraction(number)
        middle = _decimal(truth, digits)
        error = abs(truth - Fraction(middle))
        return cls(middle, _radius(error), "ball" if error else "exact", digits)

    @classmethod
    def ball(cls, ball: flint.arb, digits: int = 15) -> Value:
        """A real ball: its midpoint rounded to `digits`, its radius enlarged by that rounding."""
        if not ball.is_finite():
            raise ArithmeticError(f"the enclosure {ball} is unbounded: the working precision was too low")
        middle, radius = _fraction(ball.mid()), _fraction(ball.rad())
        rounded = _decimal(middle, digits)
        error = radius + abs(middle - Fraction(rounded))
        return cls(rounded, _radius(error), "ball" if error else "exact", digits)

    @classmethod
    def estimate(cls, number: float, error: float, digits: int = 15) -> Value:
        """A floating-point result with an error estimate; NaN is a fault, never a value."""
        if math.isnan(number) or math.isnan(error):
            raise ArithmeticError("a solver returned NaN")
        if math.isinf(number):
            return cls(Decimal(number), Decimal(0), "estimate", digits)
        middle = Decimal(repr(float(number)))
        return cls(
            middle, _radius(Fraction(error)) if math.isfinite(error) else Decimal("Infinity"), "estimate", digits
        )

    @classmethod
    def gather(cls, parts: Sequence[Value] | Mapping[str, Value]) -> Value:
        """A list or object of values; its kind is the least certain one among its parts."""
        members = list(parts.values()) if isinstance(parts, Mapping) else list(parts)
        kind = WORST_KIND[max((WORST_KIND.index(each.kind) for each in members), default=0)]
        digits = min((each.digits for each in members), default=15)
        if isinstance(parts, Mapping):
            return cls(
                {name: each.midpoint for name, each in parts.items()},
                {name: each.radius for name, each in parts.items()},
                kind,
                digits,
            )
        return cls(tuple(each.midpoint for each in members), tuple(each.radius for each in members), kind, digits)

    def __float__(self) -> float:
        return float(self.midpoint)

    def contains(self, truth: Any) -> bool:
        """Whether a scalar truth lies within the radius."""
        if isinstance(truth, float) and math.isinf(truth):
            return self.midpoint == Decimal(truth)
        return abs(Fraction(truth) - Fraction(self.midpoint)) <= Fraction(self.radius)

    def to_dict(self) -> dict[str, Any]:
        """`{"value", "radius", "kind", "digits"}` with numbers as decimal strings."""
        return {
            "value": _strings(self.midpoint, self.digits),
            "radius": _strings(self.radius, 3),
            "kind": self.kind,
            "digits": self.digits,
        }

    def __str__(self) -> str:
        if isinstance(self.midpoint, Decimal):
            text = _string(self.midpoint, self.digits)
            return text if self.kind == "exact" else f"{text} +/- {_string(self.radius, 3)}"
        return str(_strings(self.midpoint, self.digits))

    def __repr__(self) -> str:
        return f"Value({self}, {self.kind})"


def _decimal(number: Fraction, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**12), Emax=10**12)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def _radius(error: Fraction) -> Decimal:
    if not error:
        return Decimal(0)
    return _UP.divide(_UP.plus(Decimal(error.numerator)), Decimal(error.denominator)) * 1


def _fraction(exact: flint.arb) -> Fraction:
    mantissa, exponent = exact.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _string(number: Decimal, digits: int) -> str:
    if number.is_infinite():
        return "inf" if number > 0 else "-inf"
    if number == 0:
        return "0"
    # An estimate keeps the 17 digits that identify its double; a decimal of fewer digits is printed as it is.
    rounded = Context(prec=max(digits, 17), Emin=-(10**12), Emax=10**12).plus(number)
    exponent = rounded.adjusted()
    text = format(rounded, "f") if -6 <= exponent < max(21, digits) else format(rounded, "e")
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".") if len(text) > digits + 12 else text
    return text


def _strings(number: Any, digits: int) -> Any:
    if isinstance(number, Mapping):
        return {name: _strings(each, digits) for name, each in number.items()}
    if isinstance(number, (tuple, list)):
        return [_strings(each, digits) for each in number]
    return _string(number, digits) if isinstance(number, Decimal) else str(number)
