"""Theorem 2 on risks that are exactly quadratic, where every inequality can be attained, and on a cubic one."""

from random import Random

import pytest
from sympy import Rational, Symbol, series, solve, symbols

from theory import formula
from theory.alignment.cantelli import E, V
from theory.alignment.expansion import A1, A2, A3, A4, margin, theorem_2

DECREASE, RATIO = formula("alignment.expansion_decrease"), formula("alignment.intervention_ratio")
X, beta, size = (each.symbol for each in DECREASE.parameters)
eta, newton = (each.symbol for each in RATIO.parameters)


def numbers(count, seed):
    rng = Random(seed)
    return [[Rational(rng.randint(1, 64), 16) for _ in range(4)] for _ in range(count)]


def test_a_quadratic_risk_attains_the_guaranteed_decrease():
    """r(eta) = r - eta X + eta^2 h/2 with h = beta ||mu_M||^2 falls by exactly X^2/(2h) at its minimum, and no more."""
    for x, b, m, _ in numbers(20, 1):
        step, h = Symbol("step"), b * m
        fall = step * x - h * step**2 / 2
        best = solve(fall.diff(step), step)[0]
        assert fall.subs(step, best) == DECREASE.statement.subs({X: x, beta: b, size: m})
        assert fall.subs(step, best + Rational(1, 8)) < fall.subs(step, best)


def test_less_curvature_falls_further():
    for x, b, m, share in numbers(20, 2):
        h = b * m * share / 5  # share <= 4: the curvature along the step is below beta ||mu_M||^2
        step = x / (b * m)
        assert step * x - h * step**2 / 2 > DECREASE.statement.subs({X: x, beta: b, size: m})


def test_the_ratio_is_exact_on_a_quadratic_and_first_order_on_a_cubic():
    h, third, x = symbols("h third x", positive=True)
    fall = eta * x - h * eta**2 / 2 - third * eta**3 / 6
    ratio = (fall / (eta * x)).expand()
    stated = RATIO.statement.subs(newton, x / h)
    assert (ratio.subs(third, 0) - stated).expand() == 0
    assert series(ratio - stated, eta, 0, 3).removeO() == -third * eta**2 / (6 * x)


@pytest.mark.parametrize(
    ("fraction", "ratio"), [("1/50", "0.99"), ("1/20", "0.975"), ("1/10", "0.95"), ("1", "0.5"), ("2", "0")]
)
def test_fractions_of_the_newton_step(fraction, ratio):
    assert RATIO.statement.subs({eta: Rational(fraction) * 3, newton: 3}) == Rational(ratio)


def test_a_concave_direction_gains_more_than_predicted():
    assert RATIO.statement.subs({eta: 1, newton: -2}) == Rational(5, 4)


def test_theorem_2_is_the_sum_of_its_parts():
    steps = [step.equation.rhs for step in theorem_2()]
    Delta, epsilon = (Symbol(name, nonnegative=True) for name in ("Delta", "epsilon"))
    bound = next(each for each in steps if each.has(Delta) and each.has(X))
    named = {each.name: each for each in bound.free_symbols}
    expected = named["r(0)"] - eta * X + beta * size * eta**2 / 2 - Delta + epsilon
    assert (bound - expected).expand() == 0
    # Strictly improving exactly when eta X - beta eta^2 ||mu_M||^2/2 + Delta > epsilon.
    gain = eta * X - beta * eta**2 * size / 2 + Delta - epsilon
    assert (named["r(0)"] - bound - gain).expand() == 0
    probability = theorem_2().result
    assert probability.subs({each: Rational(1, 8) for each in probability.free_symbols}) == Rational(3, 4)


def test_the_union_bound_is_attained_by_disjoint_failures():
    """On 8 equally likely outcomes misalignment is one and the failure of A4 another: 6 are left, not 8 (7/8)^2."""
    failures = ({0}, {1})
    left = Rational(8 - len(set.union(*failures)), 8)
    probability = theorem_2().result
    assert probability.subs({each: Rational(1, 8) for each in probability.free_symbols}) == left


def test_the_margin_version():
    """At tau = 0 the event is misalignment and the bound Cantelli's; the decrease is the least over X >= tau E."""
    tau = Symbol("tau", nonnegative=True)
    bound = margin().result
    assert (bound.subs(tau, 0) - V / (V + E**2)).simplify() == 0
    assert bound.subs({tau: Rational(1, 2), E: 2, V: 3}) == Rational(3, 4)
    decrease = next(step.equation.rhs for step in margin() if step.why == "the decrease there")
    assert (decrease - tau**2 * E**2 / (2 * beta * size)).expand() == 0
    assert (decrease - DECREASE.statement.subs(X, tau * E)).expand() == 0


def test_assumptions_are_objects_with_names_of_their_own():
    assert len({each.name for each in (A1, A2, A3, A4)}) == 4
    assert A2 in DECREASE.assumptions
    assert all(each.holds({}) is None for each in (A1, A2, A3, A4))
