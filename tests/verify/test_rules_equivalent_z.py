"""Equivalent normal deviates against mpmath, far into the tails."""

import math
from importlib import import_module

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import InputError
from verify.rules import fisher_z, student_z
from verify.rules.incomplete_beta import SMALLEST, log_betainc

DEGREES = [1, 2.5, 3, 15, 63, 1000, 1e5]


def log_tail(a, b, x):
    """log I_x(a, b) by the hypergeometric series at 40 digits: all its terms are positive."""
    a, b, x = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(x)
    series = mpmath.hyp2f1(a + b, 1, a + 1, x, maxterms=10**6)
    beta = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return mpmath.log(series) + a * mpmath.log(x) + b * mpmath.log1p(-x) - mpmath.log(a) - beta


def log_two_sided(z):
    return mpmath.log(mpmath.erfc(mpmath.mpf(z) / mpmath.sqrt(2)))


@pytest.mark.parametrize("degrees", DEGREES)
def test_student_has_the_same_two_sided_p_value(degrees):
    """Kills one-sided p-values, n for n - 1 degrees, and saturation at z = 38."""
    with mpmath.workdps(40):
        for t in (0.01, 1.0, 3.29, 4.15, 8.0, 45.0, 1e6, 1e160):
            truth = log_tail(degrees / 2, 0.5, degrees / (mpmath.mpf(degrees) + mpmath.mpf(t) ** 2))
            z = student_z(t, degrees)
            assert float(abs(log_two_sided(z) - truth)) < 1e-11 * max(1, abs(float(truth))), (t, z)
            assert student_z(-t, degrees) == -z


def test_student_at_its_ends():
    assert student_z(0.0, 3) == 0
    assert student_z(math.inf, 3) == math.inf
    assert student_z(-5.5, math.inf) == -5.5
    assert student_z(5.5, 1e12) == pytest.approx(5.5, abs=1e-9)
    assert student_z(1e300, 1) > student_z(1e200, 1) > 30
    with pytest.raises(ArithmeticError, match="NaN"):
        student_z(math.nan, 3)
    for degrees in (0, -1, math.nan):
        with pytest.raises(InputError, match="more than 0 degrees"):
            student_z(1.0, degrees)


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_square_of_t_is_f_with_one_degree(degrees):
    for t in (0.3, 3.0, 30.0):
        assert fisher_z(t**2, 1, degrees) == pytest.approx(student_z(t, degrees), rel=1e-12)


@pytest.mark.parametrize("free", [1, 2, 5, 20])
def test_fisher_against_the_series_and_the_chi2_limit(free):
    """Kills f taken for a sum of squares, numerator and denominator swapped, and a lower tail."""
    with mpmath.workdps(40):
        for f in (1.5, 10.0, 300.0):
            x = mpmath.mpf(12) / (12 + free * mpmath.mpf(f))
            truth = log_tail(6, mpmath.mpf(free) / 2, x)
            assert float(abs(log_two_sided(fisher_z(f, free, 12)) - truth)) < 1e-11 * max(1, abs(float(truth)))
            chi2 = mpmath.log(mpmath.gammainc(mpmath.mpf(free) / 2, free * mpmath.mpf(f) / 2, regularized=True))
            shift = (free * f) ** 2 / 4e12
            assert float(abs(log_two_sided(fisher_z(f, free, math.inf)) - chi2)) < 2 * shift + 1e-9


def test_fisher_at_its_ends():
    assert fisher_z(0.0, 3, 5) == 0
    assert fisher_z(1e-9, 3, 5) < 1e-9
    assert fisher_z(math.inf, 3, 5) == math.inf
    for arguments in ((-1.0, 1, 1), (math.nan, 1, 1), (1.0, 0, 1), (1.0, 1, 0)):
        with pytest.raises(InputError, match="no F statistic"):
            fisher_z(*arguments)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.floats(-1, 4), st.floats(-1, 4), st.floats(-12, 12))
def test_the_two_sides_of_the_beta_law_add_up_to_one(log_a, log_b, logit):
    a, b = 10**log_a, 10**log_b
    logs = -float(np.logaddexp(0, -logit)), -float(np.logaddexp(0, logit))
    below, above = log_betainc(a, b, *logs), log_betainc(b, a, *logs[::-1])
    assert math.exp(below) + math.exp(above) == pytest.approx(1, abs=1e-12)


def test_the_tail_continues_where_the_function_underflows():
    """On both sides of the switch to the continued fraction, against the series."""
    deep = 0
    with mpmath.workdps(40):
        for a, b in (
            (40, 0.5),
            (500, 0.5),
            (3e4, 0.5),
            (3e5, 0.5),
            (2000, 300),
            (5000, 5000),
            (20000, 9000),
            (300, 30000),
        ):
            for odds in (0.02, 0.2, 0.5, 0.8, 0.93, 0.97):
                x = mpmath.mpf(odds * a / b) / (1 + mpmath.mpf(odds * a / b))
                truth = log_tail(a, b, x)
                logs = float(mpmath.log(x)), float(mpmath.log1p(-x))
                assert float(abs(log_betainc(a, b, *logs) - truth)) < 1e-12 * max(1, abs(float(truth))), (a, b, odds)
                deep += truth < math.log(SMALLEST)
    assert deep >= 7


def test_a_fraction_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(import_module("verify.rules.incomplete_beta"), "TERMS", 3)
    with pytest.raises(ArithmeticError, match="did not converge"):
        log_betainc(20000.0, 9000.0, math.log(0.5), math.log(0.5))
