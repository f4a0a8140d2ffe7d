"""Numbers as people type them stay exact, and nothing that is not a number gets through."""

from decimal import Decimal
from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.number import Complex, Surd, parse, scalar, to_ball, to_mpmath, to_text, working_precision
from theory import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-3", Fraction(1, 1000)),
        ("-1.5E2", Fraction(-150)),
        ("1/3", Fraction(1, 3)),
        ("1/3+1/6", Fraction(1, 2)),
        ("sqrt(4)/3", Fraction(2, 3)),
        ("0.1*3", Fraction(3, 10)),
        (" 7 ", Fraction(7)),
    ],
)
def test_rationals_are_exact(text, value):
    assert parse(text) == value


def test_a_decimal_is_not_its_binary_neighbour():
    assert parse("0.1") != Fraction(0.1)
    assert scalar(0.1) == Fraction(0.1)


def test_roots_are_enclosed_at_any_precision():
    surd = parse("sqrt(2)/2+1/3")
    assert isinstance(surd, Surd)
    for bits in (64, 300, 3000):
        ball = surd.ball(bits)
        with working_precision(bits + 64):
            truth = flint.arb(2).sqrt() / 2 + flint.arb(1) / 3
            assert ball.overlaps(truth)
            assert float(ball.rad()) < 2.0 ** (4 - bits) or bits > 1000


def test_working_precision_is_put_back():
    before = flint.ctx.prec
    with pytest.raises(RuntimeError), working_precision(500):
        raise RuntimeError
    assert flint.ctx.prec == before


def test_complex_numbers_keep_their_parts():
    assert parse("1+2j") == Complex(Fraction(1), Fraction(2))
    assert parse("1/2-0.1j") == Complex(Fraction(1, 2), Fraction(-1, 10))
    assert parse("3j") == Complex(Fraction(0), Fraction(3))


@pytest.mark.parametrize(
    "text",
    [
        "", "nan", "-nan", "1/0", "sqrt(-1)", "1e99999", "2**9", "abs(1)", "x", "[1]", "__import__('os').system('true')",
        "(" * 5000 + "1" + ")" * 5000, "1" * 20_000, "1,2", "True", "'1'", "1j*1j",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(InputError):
        parse(text)


@pytest.mark.parametrize("value", [float("nan"), np.nan, None, True, object(), "nan", Decimal("NaN"), [1]])
def test_python_values_that_are_not_numbers(value):
    with pytest.raises(InputError):
        scalar(value)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.int64(3), Fraction(3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (sympy.Rational(2, 7), Fraction(2, 7)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_python_values_are_their_exact_selves(value, exact):
    assert scalar(value) == exact


@given(st.fractions(max_denominator=10**6))
@settings(derandomize=True, deadline=None)
def test_text_and_number_round_trip(number):
    assert parse(to_text(number)) == number


@given(st.fractions(max_denominator=10**9))
@settings(derandomize=True, deadline=None)
def test_conversions_agree(number):
    import mpmath

    with working_precision(200), mpmath.workdps(40):
        assert to_ball(number).contains(flint.fmpq(number.numerator, number.denominator))
        assert abs(to_mpmath(number) * number.denominator - number.numerator) < 1e-25 * max(1, abs(number.numerator))
