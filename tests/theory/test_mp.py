"""Every Marchenko-Pastur formula follows from its axioms, notices when one is broken, and obeys the identities around it."""

from functools import cache
from random import Random

import pytest
from sympy import (
    I,
    Rational,
    Symbol,
    Tuple,
    binomial,
    diff,
    expand,
    limit,
    log,
    oo,
    pi,
    re,
    series,
    simplify,
    solve,
    sqrt,
    symbols,
)

from theory import formula, topic

FORMULAS = [each.id for each in topic("mp")]
BROKEN = [(each.id, axiom.name) for each in topic("mp") for axiom in each.axioms]
DIGITS = 25
y, v, x, s, z = (
    formula("mp.cdf").parameter("ratio").symbol,
    formula("mp.cdf").parameter("variance").symbol,
    formula("mp.cdf").parameter("x").symbol,
    formula("mp.singular_cdf").parameter("s").symbol,
    Symbol("z"),
)


@cache
def derived(id, breaking=None):
    return formula(id).derive(breaking).result


def points(id, count=4):
    """Rational points inside the bulk of ratios on both sides of 1 (at most 1 for the entropy), variance never 1."""
    rng = Random(0)
    for number in range(count):
        ratio = (
            Rational(rng.randint(4, 15), 16) if id == "mp.entropy" or number % 2 else Rational(rng.randint(17, 60), 16)
        )
        variance = Rational(rng.choice([3, 5, 7, 11]), 8)
        root = sqrt(ratio).evalf(20)
        inside = (1 + ratio - 2 * root * Rational(rng.randint(-13, 13), 16)) * variance
        eigenvalue = Rational(int(inside * 1024), 1024)
        yield {
            "ratio": ratio,
            "variance": variance,
            "x": eigenvalue,
            "Q": eigenvalue,
            "s": Rational(int(sqrt(eigenvalue).evalf(20) * 1024), 1024),
            "z": Rational(rng.randint(-40, 40), 16) + I * Rational(rng.choice([-9, -3, 3, 9]), 8),
            "probability": Rational(rng.randint(1, 15), 16),
            "order": rng.randint(2, 8),
            "g": Rational(rng.randint(-30, 30), 64) if id == "mp.r_transform" else Rational(rng.randint(1, 60), 16),
            "psi": Rational(rng.randint(1, 60), 16),
        }


def at(expression, point):
    parts = expression if isinstance(expression, (tuple, Tuple)) else (expression,)
    return [part.subs({w: point[w.name] for w in part.free_symbols}).evalf(DIGITS) for part in parts]


def gap(one, other, point):
    pairs = zip(at(one, point), at(other, point), strict=True)
    return max(float(abs(a - b) / max(abs(a), abs(b))) if a != b else 0.0 for a, b in pairs)


@pytest.mark.parametrize("id", FORMULAS)
def test_the_derivation_arrives_at_the_statement(id):
    for point in points(id):
        assert gap(derived(id), formula(id).statement, point) < 1e-21, point


@pytest.mark.parametrize(("id", "axiom"), BROKEN)
def test_a_broken_axiom_is_noticed(id, axiom):
    assert max(gap(derived(id, axiom), formula(id).statement, point) for point in points(id, 2)) > 1e-3


def test_outside_the_bulk_derivation_and_statement_agree():
    for id, at_point in (("mp.cdf", "x"), ("mp.density", "x"), ("mp.singular_cdf", "s"), ("mp.singular_density", "s")):
        for value in (Rational(-1), Rational(1, 512), Rational(40)):
            for ratio in (Rational(1, 4), Rational(4)):
                point = {"ratio": ratio, "variance": Rational(3), at_point: value}
                assert gap(derived(id), formula(id).statement, point) < 1e-21
    law = formula("mp.cdf").statement.subs({v: 1, y: 2})
    assert [law.subs(x, value) for value in (-1, 0, Rational(1, 10), 6)] == [0, Rational(1, 2), Rational(1, 2), 1]


@pytest.mark.parametrize("ratio", [Rational(1, 3), Rational(1), Rational(5, 2)])
def test_the_density_is_the_derivative_of_the_distribution_function(ratio):
    inside = formula("mp.cdf").statement.args[2][0]
    slope = diff(inside, x).subs({y: ratio, v: Rational(3, 2)})
    density = formula("mp.density").statement.subs({y: ratio, v: Rational(3, 2)})
    for value in (Rational(3, 2), Rational(5, 4)):
        assert abs((slope - density).subs(x, value).evalf(DIGITS)) < 1e-21


def test_the_stieltjes_transform_solves_its_equation_on_the_sheet_of_mass_one():
    m = formula("mp.stieltjes").statement
    w = next(symbol for symbol in m.free_symbols if symbol.name == "z")
    assert simplify(expand(y * v * w * m**2 + (w + y * v - v) * m + 1)) == 0
    assert limit((w * m).subs({y: Rational(2), v: 1}), w, oo) == -1
    left = m.subs({y: Rational(1, 4), v: 1, w: -3})  # the root of the product would have the other sign here
    assert 0 < left.evalf() < Rational(1, 3)


def test_moments_are_those_of_the_fixed_point_series():
    t, ratio = symbols("t y", positive=True)
    psi = t
    for _ in range(6):
        psi = series(expand(t * (1 + psi) * (1 + ratio * psi)), t, 0, 7).removeO()
    moment = formula("mp.moment").statement
    order = formula("mp.moment").parameter("order").symbol
    for k in range(1, 7):
        assert expand(psi.coeff(t, k) - moment.subs({order: k, v: 1, y: ratio}).doit()) == 0
    assert moment.subs(order, 0) == 1


def test_r_transform_generates_the_free_cumulants():
    """kappa_2 = m_2 - m_1^2 and kappa_3 = m_3 - 3 m_1 m_2 + 2 m_1^3."""
    order, g = formula("mp.moment").parameter("order").symbol, formula("mp.r_transform").parameter("g").symbol
    m1, m2, m3 = (formula("mp.moment").statement.subs(order, k).doit() for k in (1, 2, 3))
    cumulants = series(formula("mp.r_transform").statement, g, 0, 3).removeO()
    expected = (m1, m2 - m1**2, m3 - 3 * m1 * m2 + 2 * m1**3)
    assert [simplify(cumulants.coeff(g, k) - kappa) for k, kappa in enumerate(expected)] == [0, 0, 0]


def test_s_transform_inverts_the_moment_series():
    order, psi = formula("mp.moment").parameter("order").symbol, formula("mp.s_transform").parameter("psi").symbol
    t = psi / (1 + psi) * formula("mp.s_transform").statement
    moments = sum(formula("mp.moment").statement.subs(order, k).doit() * t**k for k in range(1, 5))
    composed = series(moments, psi, 0, 5).removeO()
    assert [simplify(composed.coeff(psi, k)) for k in range(1, 5)] == [1, 0, 0, 0]


def test_the_log_moment_has_the_right_slope_in_g():
    """d/dg E log(1 + g x) = E x/(1 + g x) = (1 - m(-1/g)/g)/g."""
    g = formula("mp.log_moment").parameter("g").symbol
    m = formula("mp.stieltjes").statement
    w = next(symbol for symbol in m.free_symbols if symbol.name == "z")
    expected = (1 - m.subs(w, -1 / g) / g) / g
    for ratio in (Rational(1, 3), Rational(5, 2)):
        point = {y: ratio, v: Rational(3, 2), g: Rational(7, 4)}
        gap = (diff(formula("mp.log_moment").statement, g) - expected).subs(point).evalf(DIGITS)
        assert abs(gap) < 1e-21
    assert limit(formula("mp.log_moment").statement.subs({y: Rational(1, 4), v: 1}), g, 0) == 0


def test_entropy_obeys_the_classical_values():
    """log 2 pi - 1 at ratio 1; for ratio -> 0 a semicircle of variance ratio: log(2 pi sqrt(ratio)) - 1/2."""
    ratio, entropy = formula("mp.entropy").parameter("ratio").symbol, formula("mp.entropy").statement.subs(v, 1)
    assert simplify(entropy.subs(ratio, 1) - log(2 * pi) + 1) == 0
    small = Rational(1, 10**6)
    assert abs((entropy.subs(ratio, small) - log(2 * pi * sqrt(small)) + Rational(1, 2)).evalf()) < small


def test_square_matrices_have_a_quarter_circle():
    density = formula("mp.singular_density").statement.args[0][0].subs({y: 1, v: 1})
    assert simplify(density**2 - (4 - s**2) / pi**2) == 0
    assert (
        simplify(re(formula("mp.singular_cdf").statement.subs({y: 1, v: 1, s: 1})) - (sqrt(3) / 2 + pi / 3) / pi) == 0
    )


def test_edges_are_where_the_discriminant_vanishes():
    low, high = formula("mp.edges").statement
    assert expand(low + high - 2 * v * (1 + y)) == 0
    assert simplify(low * high - v**2 * (1 - y) ** 2) == 0
    assert (low - high).subs({y: 4, v: 1}) == -8
    assert solve((z - 1 - 4) ** 2 - 16, z) == [low.subs({y: 4, v: 1}), high.subs({y: 4, v: 1})]


def test_narayana_numbers_are_integers():
    """C(k, r) C(k-1, r)/(r+1) counts non-crossing partitions of k points with k - r blocks: 1, 10, 20, 10, 1 for k = 5."""
    counts = [binomial(5, r) * binomial(4, r) / (r + 1) for r in range(5)]
    order = formula("mp.moment").parameter("order").symbol
    assert counts == [1, 10, 20, 10, 1]
    assert formula("mp.moment").statement.subs({order: 5, v: 1, y: 1}).doit() == 42
