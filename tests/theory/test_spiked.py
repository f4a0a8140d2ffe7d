"""Spiked-matrix formulas follow from the finite-rank determinant, notice broken axioms, and obey the identities around them."""

from functools import cache

import pytest
from sympy import Rational, Symbol, cancel, limit, oo, simplify, sqrt

from theory import formula, topic

FORMULAS = [each.id for each in topic("spiked")]
BROKEN = [(each.id, axiom.name) for each in topic("spiked") for axiom in each.axioms]
y = formula("spiked.location").parameter("ratio").symbol
theta = formula("spiked.location").parameter("theta").symbol
ell = formula("spiked.covariance_location").parameter("ell").symbol
POINTS = [
    {y: Rational(a, 8), theta: Rational(b, 8), ell: Rational(c, 8)}
    for a, b, c in ((3, 13, 29), (7, 19, 3), (21, 17, 37), (33, 30, 52), (5, 4, 11), (29, 9, 10), (3, 20, 2))
]


@cache
def derived(id, breaking=None):
    return formula(id).derive(breaking).result


def gap(one, other, point):
    a, b = (expression.subs(point).evalf(30) for expression in (one, other))
    return float(abs(a - b) / max(abs(a), abs(b))) if a != b else 0.0


@pytest.mark.parametrize("id", FORMULAS)
def test_the_derivation_arrives_at_the_statement(id):
    """Points above and below the threshold, ratios on both sides of 1."""
    assert max(gap(derived(id), formula(id).statement, point) for point in POINTS) < 1e-25


@pytest.mark.parametrize(("id", "axiom"), BROKEN)
def test_a_broken_axiom_is_noticed(id, axiom):
    assert max(gap(derived(id, axiom), formula(id).statement, point) for point in POINTS[:3]) > 1e-3


def _above(id):
    return formula(id).statement.args[0][0]


def test_everything_is_continuous_at_the_threshold():
    critical = {theta: y ** Rational(1, 4)}
    assert simplify(_above("spiked.location").subs(critical) - (1 + sqrt(y)) ** 2) == 0
    assert simplify(_above("spiked.overlap_rows").subs(critical)) == 0
    assert simplify(_above("spiked.overlap_columns").subs(critical)) == 0
    for side in (1, -1):
        at = {ell: 1 + side * sqrt(y)}
        assert simplify(_above("spiked.covariance_location").subs(at) - (1 + side * sqrt(y)) ** 2) == 0
        assert simplify(_above("spiked.covariance_overlap").subs(at)) == 0


def test_transposing_exchanges_the_overlaps():
    """A' has p rows and variance 1/n = ratio/p: its theta is theta/sqrt(ratio), at ratio 1/ratio."""
    turned = {theta: theta / sqrt(y), y: 1 / y}
    rows, columns = _above("spiked.overlap_rows"), _above("spiked.overlap_columns")
    assert cancel(rows.subs(turned, simultaneous=True) - columns) == 0
    assert cancel(columns.subs(turned, simultaneous=True) - rows) == 0
    location = _above("spiked.location")
    assert cancel(location.subs(turned, simultaneous=True) * y - location) == 0
    assert cancel(rows - columns) != 0


def test_a_strong_spike_is_seen_whole():
    for id in ("spiked.overlap_rows", "spiked.overlap_columns"):
        assert limit(_above(id).subs(y, 2), theta, oo) == 1
    assert limit((_above("spiked.location") / theta**2).subs(y, 2), theta, oo) == 1
    assert limit(_above("spiked.covariance_overlap").subs(y, 2), ell, oo) == 1


def test_a_random_left_vector_makes_a_population_spike():
    """With ell = 1 + theta^2 the two models have the same outlier; the overlap is then that of the columns."""
    assert cancel(_above("spiked.covariance_location").subs(ell, 1 + theta**2) - _above("spiked.location")) == 0
    assert cancel(_above("spiked.covariance_overlap").subs(ell, 1 + theta**2) - _above("spiked.overlap_columns")) == 0


def test_the_d_transform_of_noise_is_the_moment_series():
    """D(z) = z g_rows g_columns is u = z g - 1 itself: why the outlier's equation is u = 1/theta^2."""
    steps = {str(step.equation.lhs): step.equation.rhs for step in formula("spiked.location").derive()}
    assert steps["D"] == Symbol("u")


def test_strengths_below_the_threshold_stay_on_the_bulk():
    assert formula("spiked.location").statement.subs({theta: Rational(1, 2), y: 1}) == 4
    assert formula("spiked.overlap_rows").statement.subs({theta: Rational(1, 2), y: 1}) == 0
    assert (
        formula("spiked.covariance_location").statement.subs({ell: Rational(1, 2), y: Rational(1, 2)})
        == (1 - sqrt(2) / 2) ** 2
    )
    assert formula("spiked.covariance_location").statement.subs({ell: 1, y: Rational(1, 4)}) == Rational(9, 4)
