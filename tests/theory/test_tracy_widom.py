"""The Tracy-Widom statements follow from Airy's operator, the threshold from Laguerre's equation; broken axioms are noticed."""

from functools import cache

import pytest
from sympy import Rational, Symbol, diff, oo, series, simplify, sqrt

from theory import formula, topic

FORMULAS = [each.id for each in topic("tracy_widom")]
BROKEN = [(each.id, axiom.name) for each in topic("tracy_widom") for axiom in each.axioms]


@cache
def derived(id, breaking=None):
    return formula(id).derive(breaking).result


def gap(one, other, beta):
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    values = {w: beta if w.name == "beta" else Rational(17 + 5 * i, 7) for i, w in enumerate(symbols)}
    a, b = (expression.subs(values).evalf(30) for expression in (one, other))
    return float(abs(a - b) / max(abs(a), abs(b)))


@pytest.mark.parametrize("beta", [1, 2])
@pytest.mark.parametrize("id", FORMULAS)
def test_the_derivation_arrives_at_the_statement(id, beta):
    assert gap(derived(id), formula(id).statement, beta) < 1e-25


@pytest.mark.parametrize(("id", "axiom"), BROKEN)
def test_a_broken_axiom_is_noticed(id, axiom):
    assert max(gap(derived(id, axiom), formula(id).statement, beta) for beta in (1, 2)) > 1e-3


def test_the_airy_kernel_is_a_square():
    """(d/dx + d/dy) K = -Ai(x) Ai(y), with SymPy's own Airy function."""
    from sympy import airyai, airyaiprime, symbols

    x, y = symbols("x y")
    kernel = (airyai(x) * airyaiprime(y) - airyaiprime(x) * airyai(y)) / (x - y)
    assert simplify(diff(kernel, x) + diff(kernel, y) + airyai(x) * airyai(y)) == 0


def test_the_threshold_is_symmetric_and_scales_with_the_variance():
    law = formula("tracy_widom.threshold")
    n, p, v = (law.parameter(name).symbol for name in ("rows", "columns", "variance"))
    assert law.statement.subs({n: p, p: n}, simultaneous=True) == law.statement
    assert simplify(law.statement.subs(v, 4) - 4 * law.statement.subs(v, 1)) == 0


def test_the_threshold_tends_to_the_edge_of_marchenko_pastur():
    """mu/n -> (1 + sqrt(ratio))^2, and sigma/n is (p a)^(-2/3) for the coefficient a = ratio^(1/4)/(ratio b) of that density."""
    law = formula("tracy_widom.threshold")
    n, p, v = (law.parameter(name).symbol for name in ("rows", "columns", "variance"))
    q = next(symbol for symbol in law.statement.free_symbols if symbol.name == "q")
    t = Symbol("t", positive=True)
    at = {n: 1 / t**3, p: Rational(9, 4) / t**3, v: 1}
    b = (1 + sqrt(Rational(9, 4))) ** 2
    mu = law.statement.subs(q, 0).subs(at) * t**3
    assert series(mu, t, 0, 2).removeO() == b
    sigma = diff(law.statement, q).subs(at) * t**3
    scale = formula("tracy_widom.edge_scale")
    a = Rational(9, 4) ** Rational(1, 4) / (Rational(9, 4) * b)
    expected = scale.statement.subs(
        {scale.parameter("dimension").symbol: Rational(9, 4) / t**3, scale.parameter("coefficient").symbol: a}
    )
    assert abs((sigma / expected).subs(t, Rational(1, 10**4)).evalf(20) - 1) < 1e-9


def test_the_density_of_marchenko_pastur_has_that_coefficient():
    law = formula("mp.density")
    x, y, v = (law.parameter(name).symbol for name in ("x", "ratio", "variance"))
    from sympy import limit, pi

    ratio = Rational(9, 4)
    b = (1 + sqrt(ratio)) ** 2
    inside = law.statement.args[0][0].subs({y: ratio, v: 1})
    t = Symbol("t", positive=True)
    a = limit(inside.subs(x, b - t) * pi / sqrt(t), t, 0)
    assert simplify(a - ratio ** Rational(1, 4) / (ratio * b)) == 0
    assert oo > a > 0
