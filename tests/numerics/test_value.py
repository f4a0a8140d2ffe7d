"""A value's radius contains the truth, rounding to decimal included, and its JSON reads back."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.number import working_precision
from numerics.value import Value

rationals = st.fractions(max_denominator=10**12)


@given(rationals, st.integers(1, 60))
@settings(derandomize=True, deadline=None)
def test_the_printed_decimal_and_radius_contain_a_rational(number, digits):
    shown = Value.exact(number, digits).to_dict()
    assert abs(Fraction(shown["value"]) - number) <= Fraction(shown["radius"])
    assert shown["kind"] == ("exact" if Fraction(shown["radius"]) == 0 else "ball")


def test_a_radius_is_never_rounded_down():
    """A radius printed with its third digit rounded to nearest would lose the truth here."""
    value = Value.exact(Fraction(1, 3), 5)
    assert Fraction(value.radius) >= abs(Fraction(1, 3) - Fraction(value.midpoint))
    assert Fraction(value.radius) < Fraction(34, 10**7)


@given(rationals, st.integers(5, 40))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_a_ball_stays_a_ball(number, digits):
    with working_precision(200):
        ball = flint.arb(flint.fmpq(number.numerator, number.denominator)) + flint.arb(0, 1e-12)
        shown = Value.ball(ball, digits)
    assert shown.contains(number)
    assert Fraction(shown.radius) >= Fraction(10) ** -12 * Fraction(99, 100)


def test_an_unbounded_ball_and_nan_are_faults():
    with pytest.raises(ArithmeticError):
        Value.ball(flint.arb("nan"))
    with pytest.raises(ArithmeticError):
        Value.estimate(math.nan, 0.0)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(derandomize=True, deadline=None)
def test_an_estimate_prints_its_double(number):
    shown = json.loads(json.dumps(Value.estimate(number, 0.0).to_dict()))
    assert float(shown["value"]) == number


@pytest.mark.parametrize(
    ("number", "text"), [(math.inf, "inf"), (-math.inf, "-inf"), (3, "3"), (Fraction(1, 4), "0.25")]
)
def test_exact_values_print_as_they_are(number, text):
    assert Value.exact(number).to_dict()["value"] == text
    assert Value.exact(number).kind == "exact"


def test_a_list_is_as_certain_as_its_least_certain_member():
    gathered = Value.gather([Value.exact(1), Value.estimate(0.5, 1e-9)])
    assert gathered.kind == "estimate"
    assert gathered.to_dict()["value"] == ["1", "0.5"]
    assert len(gathered.to_dict()["radius"]) == 2


def test_an_object_keeps_its_names():
    gathered = Value.gather({"a": Value.exact(1), "b": Value.exact(Fraction(1, 3), 4)})
    assert gathered.to_dict()["value"] == {"a": "1", "b": "0.3333"}
    assert gathered.kind == "ball"


def test_midpoints_are_decimals():
    assert isinstance(Value.exact(Fraction(1, 3)).midpoint, Decimal)
    assert float(Value.exact(Fraction(1, 4))) == 0.25
