"""Real numbers as people write them, kept exact: 0.1 is one tenth, sqrt(2) is sqrt(2), a Python float is its binary value.

A scalar is one of: `Fraction` (any rational), `Surd` (an expression with square roots, evaluated at any precision on
request), float inf, or complex as a pair. Conversions to float and to balls live here, so that no solver parses text.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import flint

from theory import InputError

__all__ = ["Complex", "Surd", "parse", "scalar", "to_ball", "to_float", "to_mpmath", "working_precision"]

MAX_TEXT = 10_000
MAX_EXPONENT = 10_000


@dataclass(frozen=True)
class Surd:
    """A real number given by an expression in + - * / and sqrt over the rationals, as a tree of tuples.

    >>> float(parse("sqrt(2)/2"))
    0.7071067811865476
    """

    tree: Any
    text: str

    def ball(self, bits: int) -> flint.arb:
        """An enclosure computed at `bits` bits."""
        with working_precision(bits):
            return _ball(self.tree)

    def __float__(self) -> float:
        return float(self.ball(120).mid())

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Complex:
    """A complex number with real scalars as parts."""

    re: Fraction | Surd
    im: Fraction | Surd

    def __complex__(self) -> complex:
        return complex(float(self.re), float(self.im))

    def __str__(self) -> str:
        return f"{to_text(self.re)}{'+' if float(self.im) >= 0 else ''}{to_text(self.im)}j"


class working_precision:
    """Set the ball arithmetic's precision for a block and put the old one back."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        self.before = flint.ctx.prec
        flint.ctx.prec = self.bits

    def __exit__(self, *_: object) -> None:
        flint.ctx.prec = self.before


def parse(text: str) -> Fraction | Surd | float | Complex:
    """Read one number: decimals, 1e-3, fractions 1/3, sqrt(2), inf, complex 1+2j, and + - * / of these.

    >>> parse("1/3"), parse("1e-3"), parse("-inf")
    (Fraction(1, 3), Fraction(1, 1000), -inf)
    >>> str(parse("1+2j"))
    '1+2j'
    >>> parse("nan")
    Traceback (most recent call last):
        ...
    theory.formula.InputError: nan is not a number that can be computed with
    """
    stripped = text.strip()
    if stripped.lower() in ("nan", "-nan", "+nan"):
        raise InputError(f"{stripped} is not a number that can be computed with")
    if stripped.lower() in ("inf", "+inf", "-inf"):
        return -math.inf if stripped[0] == "-" else math.inf
    if not stripped or len(stripped) > MAX_TEXT:
        raise InputError("an empty value" if not stripped else f"a number of {len(stripped)} characters is too long")
    try:
        body = ast.parse(stripped, mode="eval").body
        real, imaginary = _parts(body, stripped)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        if isinstance(fault, InputError):
            raise
        raise InputError(
            f"cannot read {stripped[:60]!r} as a number; write decimals, 1e-3, 1/3, sqrt(2), inf or 1+2j"
        ) from None
    except ZeroDivisionError:
        raise InputError(f"{stripped[:60]!r} divides by zero") from None
    value = _close(real, stripped)
    return value if imaginary is None else Complex(value, _close(imaginary, stripped))


def _close(tree: Any, text: str) -> Fraction | Surd:
    if isinstance(tree, Fraction):
        return tree
    surd = Surd(tree, text)
    if not surd.ball(64).is_finite():
        raise InputError(f"{text!r} is not a finite real number")
    return surd


def _parts(node: ast.expr, text: str) -> tuple[Any, Any]:
    """(real tree, imaginary tree or None) of a parsed expression."""
    if isinstance(node, ast.Constant) and type(node.value) is complex:
        return Fraction(0), _literal(ast.unparse(node).rstrip("j"))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _literal(ast.get_source_segment(text, node) or ast.unparse(node)), None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = Fraction(-1 if isinstance(node.op, ast.USub) else 1)
        real, imaginary = _parts(node.operand, text)
        return _combine("*", sign, real), None if imaginary is None else _combine("*", sign, imaginary)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "sqrt"
        and len(node.args) == 1
    ):
        inner, imaginary = _parts(node.args[0], text)
        if imaginary is None:
            return _root(inner), None
    if isinstance(node, ast.BinOp):
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(node.op))
        left, i = _parts(node.left, text)
        right, j = _parts(node.right, text)
        if sign in ("+", "-"):
            zero = Fraction(0)
            imaginary = None if i is None and j is None else _combine(sign, i or zero, j or zero)
            return _combine(sign, left, right), imaginary
        if sign and i is None and j is None:
            return _combine(sign, left, right), None
    raise ValueError(text)


def _literal(text: str) -> Fraction:
    value = Decimal(text.replace("_", ""))
    if not value.is_finite() or (value and abs(value.adjusted()) > MAX_EXPONENT):
        raise InputError(f"{text} has an exponent beyond {MAX_EXPONENT}")
    return Fraction(value)


def _root(tree: Any) -> Any:
    if isinstance(tree, Fraction) and tree >= 0:
        above, below = math.isqrt(tree.numerator), math.isqrt(tree.denominator)
        if above**2 == tree.numerator and below**2 == tree.denominator:
            return Fraction(above, below)
    return ("sqrt", tree)


def _combine(sign: str, left: Any, right: Any) -> Any:
    if not (isinstance(left, Fraction) and isinstance(right, Fraction)):
        return (sign, left, right)
    return {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[sign](right)


def _ball(tree: Any) -> flint.arb:
    if isinstance(tree, Fraction):
        return flint.arb(flint.fmpq(tree.numerator, tree.denominator))
    if tree[0] == "sqrt":
        return _ball(tree[1]).sqrt()
    left, right = _ball(tree[1]), _ball(tree[2])
    return {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[tree[0]](right)


def scalar(value: Any) -> Fraction | Surd | float | Complex:
    """Any number or text as one of the exact scalars; a float is its exact binary value, NaN is refused.

    >>> scalar(0.5), scalar("0.1"), scalar(Decimal("0.1"))
    (Fraction(1, 2), Fraction(1, 10), Fraction(1, 10))
    """
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, (Surd, Complex)):
        return value
    if isinstance(value, bool):
        raise InputError(f"{value} is not a number")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, complex):
        return Complex(Fraction(value.real), Fraction(value.imag))
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    if hasattr(value, "free_symbols"):  # a SymPy number prints as text that parse reads, or is refused by it
        return parse(str(value))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{value!r} is not a number") from None
    if math.isnan(number):
        raise InputError("nan is not a number that can be computed with")
    return number if math.isinf(number) else Fraction(number)


def to_float(value: Fraction | Surd | float) -> float:
    """The nearest double."""
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{to_text(value)[:40]} is beyond the range of floating point") from None


def to_ball(value: Fraction | Surd | float) -> flint.arb:
    """An enclosure at the current working precision."""
    if isinstance(value, Surd):
        return value.ball(flint.ctx.prec)
    if isinstance(value, Fraction):
        return flint.arb(flint.fmpq(value.numerator, value.denominator))
    return flint.arb(value)


def to_mpmath(value: Fraction | Surd | float) -> Any:
    """The number at mpmath's current precision, for the second route."""
    import mpmath

    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    if isinstance(value, Surd):
        return mpmath.mpf(str(value.ball(mpmath.mp.prec + 20).mid().str(mpmath.mp.dps + 5, radius=False)))
    return mpmath.mpf(value)


def to_text(value: Any) -> str:
    """A scalar as it would be typed: decimals where they end, a fraction where they do not."""
    if isinstance(value, Fraction):
        rest = value.denominator
        for prime in (2, 5):
            while rest % prime == 0:
                rest //= prime
        if rest != 1 or value.denominator == 1 or value.denominator > 10**30:
            return str(value)
        text = (
            format(Decimal(value.numerator) / Decimal(value.denominator), "f") if value.denominator < 10**12 else None
        )
        return text if text and Fraction(text) == value else repr(float(value))
    return str(value)
