"""Tracy-Widom numbers: references, determinants in balls, Painleve's equation, tails, thresholds on simulated noise."""

from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest

from numerics import admit, predict
from numerics.number import working_precision
from numerics.statement import evaluate_statement
from numerics.tracy_widom import TracyWidom, centre_and_scale, determinants
from theory import InputError, formula


def number(id, **inputs):
    return float(predict(id, inputs))


def test_reference_quantiles():
    assert number("tracy_widom.quantile", probability="0.95") == pytest.approx(0.97931605346955, abs=2e-13)
    assert number("tracy_widom.quantile", probability="0.95", beta=2) == pytest.approx(-0.23247446976402, abs=2e-13)


@pytest.mark.parametrize("s", [-7.0, -3.9, -1.25, 0.5, 4.0])
def test_distribution_function_against_determinants_in_balls(s):
    """Same operator, nothing else shared: 30 digits, LU, 70 nodes on a longer interval. 13 digits, and the radius holds."""
    minus, plus = (Fraction(ball.mid().str(30, radius=False)) for ball in determinants(s, 30))
    for beta, truth in ((1, minus), (2, minus * plus)):
        found = predict("tracy_widom.cdf", {"s": s, "beta": beta}).value
        assert found.contains(truth)
        assert found.radius < 1e-13
        assert abs(Fraction(float(TracyWidom(beta).cdf(s))) - truth) < 4e-15
        if s > -4:
            above = 1 - truth
            assert abs(Fraction(float(TracyWidom(beta).survival(s))) / above - 1) < 1e-14


@pytest.mark.parametrize("s", [8.0, 20.0])
def test_upper_tail_has_relative_accuracy(s):
    """1e-8 and 1e-29 for beta = 1, their squares or so for beta = 2; against 60-digit determinants."""
    minus, plus = determinants(s, 60, nodes=90)
    with working_precision(260):
        for beta, ball in ((1, 1 - minus), (2, 1 - minus * plus)):
            error = flint.arb(float(TracyWidom(beta).survival(s))) / ball - 1
            assert abs(float(error.mid())) < 2e-14


def test_distribution_functions_against_painleve():
    """q'' = s q + 2 q^3, q ~ Ai: F_2 = exp(-int (x-s) q^2), F_1 = (F_2)^(1/2) exp(-int q/2).

    Tolerance: 1e3 times that of the integrator.
    """
    from scipy.integrate import solve_ivp
    from scipy.special import airy

    ai, slope, _, _ = airy(9.0)

    def step(s, state):
        q, dq, square, _, _ = state
        return [dq, s * q + 2 * q**3, -(q**2), -square, -q]

    at = np.array([2.0, 0.0, -1.0, -2.0, -3.0])
    start = [ai, slope, 0.0, 0.0, float(mpmath.quad(mpmath.airyai, [9, 20]))]  # squares: 1e-19
    solved = solve_ivp(step, (9.0, -3.0), start, t_eval=at, rtol=1e-13, atol=1e-22, method="DOP853").y
    second = np.exp(-solved[3])
    np.testing.assert_allclose(TracyWidom(2).cdf(at), second, rtol=1e-10)
    np.testing.assert_allclose(TracyWidom(1).cdf(at), np.sqrt(second) * np.exp(-solved[4] / 2), rtol=1e-10)


def test_statement_and_number_agree():
    for beta in (1, 2):
        for s in ("-2.5", "1/3"):
            known = formula("tracy_widom.cdf")
            inputs = {"s": s, "beta": beta}
            other = Fraction(str(evaluate_statement(known, admit(known, inputs)[0], digits=20)))
            assert predict("tracy_widom.cdf", inputs).value.contains(other)
        known = formula("tracy_widom.quantile")
        inputs = {"probability": "0.3", "beta": beta}
        assert abs(float(evaluate_statement(known, admit(known, inputs)[0], digits=20))) < 1e-13
    known = formula("tracy_widom.threshold")
    inputs = {"rows": 200, "columns": 100, "level": "0.01", "variance": "2.5"}
    other = float(evaluate_statement(known, admit(known, inputs)[0], digits=20))
    assert number("tracy_widom.threshold", **inputs) == pytest.approx(other, rel=1e-10)  # its quantile: one secant step


def test_moments():
    """Mean and standard deviation of TW_1 by integrating the distribution function: -1.2065335746, 1.26798."""
    law = TracyWidom(1)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    survival = law.survival(9 * nodes)  # beyond -9 and 9 lie 1e-9
    mean = -9 + 9 * (weights * survival).sum()
    square = 81 + 9 * (weights * 18 * nodes * survival).sum()
    assert mean == pytest.approx(-1.2065335746, abs=1e-8)
    assert square - mean**2 == pytest.approx(1.6077810346, abs=1e-7)


@pytest.mark.parametrize("beta", [1, 2])
def test_quantiles_invert_both_ends(beta):
    law = TracyWidom(beta)
    for p in (1e-6, 0.05, 0.5, 0.999):
        assert law.cdf(law.quantile(p)) == pytest.approx(p, rel=1e-8 if p < 1e-3 else 1e-13)
    for level in (0.05, 1e-10, 1e-60):
        assert law.survival(law.isf(level)) == pytest.approx(level, rel=1e-12)
    # 1 - p is formed before rounding: 25 nines are no 1.0
    assert number("tracy_widom.quantile", probability="0." + 25 * "9", beta=beta) == pytest.approx(
        law.isf(1e-25), rel=1e-12
    )
    assert law.cdf(np.array([-30.0, 200.0])).tolist() == [0.0, 1.0]
    assert np.isnan(law.cdf(np.nan))


@pytest.mark.parametrize(("rows", "columns"), [(200, 100), (50, 20), (60, 240)])
def test_false_alarm_rate_of_the_threshold(rows, columns):
    """Field report 14: 5 % means 5 %, and the bare edge fires far too often; 1200 matrices, 4 standard errors."""
    rng = np.random.default_rng(8)
    count = 1200
    small = min(rows, columns)
    top = np.empty(count)
    for i in range(count):
        X = rng.normal(size=(max(rows, columns), small))
        top[i] = np.linalg.eigvalsh(X.T @ X)[-1]
    threshold = number("tracy_widom.threshold", rows=rows, columns=columns, level="0.05")
    assert abs((top > threshold).mean() - 0.05) < 4 * (0.05 * 0.95 / count) ** 0.5
    edge = (rows**0.5 + columns**0.5) ** 2
    assert (top > edge).mean() > 0.1
    mu, sigma = centre_and_scale(rows, columns)
    assert ((top - mu) / sigma).mean() == pytest.approx(-1.2065, abs=4 * 1.268 / count**0.5 + small**-0.667 / 2)


def test_threshold_conventions():
    one = number("tracy_widom.threshold", rows=200, columns=100, level="0.01")
    assert number("tracy_widom.threshold", rows=100, columns=200, level="0.01") == pytest.approx(one, rel=1e-14)
    assert number("tracy_widom.threshold", rows=200, columns=100, level="0.01", variance=3) == pytest.approx(
        3 * one, rel=1e-14
    )
    assert number("tracy_widom.threshold", rows=200, columns=100, level="0.2") < one  # level is the false-alarm rate
    assert one / 200 == pytest.approx((1 + 0.5**0.5) ** 2, rel=0.05)  # of X'X, not of X'X/rows


def test_edge_scale_reproduces_the_edge_of_noise():
    """a = ratio^(1/4)/(ratio b): Johnstone's sigma/rows, up to the halves. Reference 12: D = 300, a = .0696."""
    ratio, rows = 0.5, 20000
    b = (1 + ratio**0.5) ** 2
    scale = number("tracy_widom.edge_scale", dimension=ratio * rows, coefficient=ratio**0.25 / (ratio * b))
    assert scale == pytest.approx(centre_and_scale(rows, int(ratio * rows))[1] / rows, rel=1e-4)
    scale = number("tracy_widom.edge_scale", dimension=300, coefficient="0.06960605803646757336252291")
    assert scale == pytest.approx(0.1318725701944976, rel=1e-14)


@pytest.mark.parametrize(
    ("id", "inputs", "message"),
    [
        ("tracy_widom.cdf", {"s": 0, "beta": 4}, "beta must be an integer >= 1 and <= 2"),
        ("tracy_widom.quantile", {"probability": 1}, "probability must be a real number > 0 and < 1"),
        ("tracy_widom.quantile", {"probability": "1e-30"}, "found for 1e-20 < probability"),
        ("tracy_widom.threshold", {"rows": 10, "columns": 1, "level": "0.05"}, "columns must be an integer >= 2"),
        ("tracy_widom.threshold", {"rows": 10, "columns": 5, "level": 0}, "level must be a real number > 0"),
    ],
)
def test_refusals(id, inputs, message):
    with pytest.raises(InputError, match=message):
        predict(id, inputs)


def test_no_more_digits_than_there_are():
    with pytest.raises(InputError, match="between 1 and 15 digits"):
        predict("tracy_widom.cdf", {"s": 0}, digits=30)
    with pytest.raises(InputError, match="beta must be 1 or 2"):
        TracyWidom(4)
