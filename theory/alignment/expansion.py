"""Theorem 2: what an inserted step along the mean training gradient does to the test risk, and with which probability.

Insertion z -> z - eta mu_M at a boundary; r(eta) is the risk on the K test samples, so r'(0) = -mu_M . g_K = -X.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Symbol, diff, expand, solve, sympify

from ..formula import DERIVED_HERE, Assumption, Axiom, Derivation, Domain, Formula, Parameter
from ..words import Word
from . import words as w
from .cantelli import E, V, bound_from_ratio

__all__ = ["EXPANSION_DECREASE", "INTERVENTION_RATIO", "margin", "theorem_2"]

ALIGNMENT = Parameter(
    "alignment", "X = mu_M . g_K, minus the slope of the test risk", Domain("real", low=0), typical=(0.1, 4), latex="X"
)
CURVATURE = Parameter(
    "curvature",
    "beta, the largest curvature of the test risk along the step",
    Domain("real", low=0, open_low=True),
    typical=(0.1, 10),
    latex=r"\beta",
)
MEAN_SQUARED = Parameter(
    "mean_squared",
    "||mu_M||^2, squared norm of the mean training gradient",
    Domain("real", low=0, open_low=True),
    typical=(0.1, 4),
    latex=r"\lVert\mu_M\rVert^2",
)
ETA = Parameter("eta", "step along the mean training gradient", Domain("real", low=0), typical=(0.01, 1), latex=r"\eta")
NEWTON = Parameter(
    "eta_N",
    "Newton step X/(mu_M'H mu_M); negative along a concave direction, inf without curvature",
    Domain("real", infinity=True),
    typical=(1, 8),
    latex=r"\eta_N",
)
X, beta, size, eta, newton = (each.symbol for each in (ALIGNMENT, CURVATURE, MEAN_SQUARED, ETA, NEWTON))

A1 = Assumption("independent_samples", "training and test gradients at the boundary are independent draws, mu != 0")
A2 = Assumption(
    "bounded_curvature",
    "abs(r(eta) - r(0) + eta X) <= beta eta^2 ||mu_M||^2/2 on the steps considered, beta the largest curvature along mu_M",
)
A3 = Assumption(
    "training_gains",
    "training of the expanded network lowers its training risk by at least Delta >= 0 below the step's",
)
A4 = Assumption(
    "generalisation",
    "with probability at least 1 - delta the test risk falls as the training risk does after the step, up to epsilon",
)
SMALL_STEP = Assumption("small_step", "eta is small: the ratio's next term is of order eta^2")

SLOPE = Axiom(
    "slope of the test risk",
    "r'(0) = -X, the inner product of the step with the mean test gradient; the rival has half of it",
    -X,
    -X / 2,
)
REMAINDER = Axiom(
    "bounded curvature",
    "the remainder is at most beta eta^2 ||mu_M||^2/2; the rival forgets the 1/2",
    beta * eta**2 * size / 2,
    beta * eta**2 * size,
)
TAYLOR = Axiom(
    "second order",
    "r(eta) = r(0) + eta r'(0) + eta^2 mu_M'H mu_M/2 + ...; the rival forgets the 1/2",
    sympify(1) / 2,
    sympify(1),
)


def _risk(known: Mapping[str, Any], d: Derivation) -> Expr:
    """The decrease of the test risk that a step guarantees, as a function of eta."""
    slope = d.step("slope of the test risk", Symbol("r'(0)"), known[SLOPE.name])
    rest = d.step("remainder of the expansion, at most", Symbol("R(eta)"), known[REMAINDER.name])
    return d.step("r(0) - r(eta), at least", Symbol("decrease"), -slope * eta - rest)


def _prove_decrease(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    decrease = _risk(known, d)
    best = d.step("stationary step", Symbol("eta*"), solve(diff(decrease, eta), eta)[0])
    d.step("the decrease there", Symbol("decrease"), expand(decrease.subs(eta, best)))
    return d


def theorem_2() -> Derivation:
    """With probability at least 1 - B - delta: r(final) <= r(0) - eta X + beta eta^2 ||mu_M||^2/2 - Delta + epsilon, and X > 0.

    B bounds Pr(X <= 0), delta is that of A4, whose event need not be independent of the samples: the probabilities of the two
    failures add. The last step is that probability, the third from last the bound. eta must not depend on the test sample.
    Under A1 to A4. Derived here.

    >>> steps = theorem_2().steps
    >>> print(steps[-3].equation.rhs)
    -Delta + epsilon - alignment*eta + curvature*eta**2*mean_squared/2 + r(0)
    >>> print(steps[-1].equation.rhs)
    -B - delta + 1
    """
    d = Derivation()
    start, gain, slack = Word("r(0)"), Symbol("Delta", nonnegative=True), Symbol("epsilon", nonnegative=True)
    known = {axiom.name: axiom.value for axiom in (SLOPE, REMAINDER)}
    stepped = d.step("the risk after the step (A2), at most", Symbol("r(step)"), start - _risk(known, d))
    trained = d.step("training risk after training, less that of the step (A3), at most", Symbol("train"), -gain)
    moved = d.step("test risk after training, less that of the step (A4), at most", Symbol("test"), trained + slack)
    d.step("both", Symbol("r(final)"), stepped + moved)
    failures = d.step("one of X > 0 and A4 fails, at most", Symbol("failure"), Symbol("B") + w.DELTA.symbol)
    d.step("all holds with probability at least", Symbol("Pr"), 1 - failures)
    return d


def margin() -> Derivation:
    """The version whose step uses no test data: on {X >= tau E} a decrease of at least tau^2 E^2/(2 beta ||mu_M||^2).

    With 0 <= tau < 1 and eta = tau E/(beta ||mu_M||^2), E the mean of X. The last step is the bound on the probability
    of the complement, 1/(1 + (1-tau)^2 E^2/V), V the variance of X: Cantelli for X - tau E. E that is estimated must come from an
    independent sample. Derived here.

    >>> print(margin().result)
    V/(E**2*(tau - 1)**2 + V)
    """
    d = Derivation()
    tau = Symbol("tau", nonnegative=True)
    known = {axiom.name: axiom.value for axiom in (SLOPE, REMAINDER)}
    decrease = _risk(known, d)
    worst = d.step("on the event X >= tau E, at least", Symbol("decrease"), decrease.subs(X, tau * E))
    best = d.step("stationary step", Symbol("eta"), solve(diff(worst, eta), eta)[0])
    d.step("the decrease there", Symbol("decrease"), worst.subs(eta, best))
    ratio = d.step("Var/(mean)^2 of X - tau E", Symbol("R"), V / ((1 - tau) * E) ** 2)
    d.step("Cantelli: the event fails with probability at most", Symbol("B_tau"), bound_from_ratio(ratio).simplify())
    return d


def _prove_ratio(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    along = Symbol("mu_M'H mu_M")
    slope = d.step("slope of the test risk", Symbol("r'(0)"), known[SLOPE.name])
    realised = d.step(
        "r(0) - r(eta), to second order", Symbol("realised"), -slope * eta - known[TAYLOR.name] * along * eta**2
    )
    ratio = d.step("over the predicted eta X", Symbol("ratio"), (realised / (eta * X)).expand())
    stationary = d.step("the Newton step ends where the slope r'(0) + eta mu_M'H mu_M does", newton, X / along)
    d.step("inserted", Symbol("ratio"), ratio.subs(along, solve(stationary - newton, along)[0]))
    return d


EXPANSION_DECREASE = Formula(
    id="alignment.expansion_decrease",
    title="guaranteed decrease of the test risk at the best step",
    symbol="decrease",
    parameters=(ALIGNMENT, CURVATURE, MEAN_SQUARED),
    assumptions=(A1, A2),
    conventions="of the mean risk of the test sample, at eta = X/(beta ||mu_M||^2), which knows the test gradient: a step fixed "
    "without test data goes by a margin. Where X <= 0 no step against mu_M is guaranteed to help",
    source=DERIVED_HERE,
    state=lambda: X**2 / (2 * beta * size),
    prove=_prove_decrease,
    axioms=(SLOPE, REMAINDER),
    example={"alignment": "0.5", "curvature": "2", "mean_squared": "0.25"},
)
INTERVENTION_RATIO = Formula(
    id="alignment.intervention_ratio",
    title="realised over predicted decrease of the test risk",
    symbol="ratio",
    parameters=(ETA, NEWTON),
    assumptions=(A1, SMALL_STEP),
    conventions="(r(0) - r(eta))/(eta X), to first order in eta; 1/2 at the Newton step, which moves by eta_N mu_M",
    source=DERIVED_HERE,
    state=lambda: 1 - eta / (2 * newton),
    prove=_prove_ratio,
    axioms=(SLOPE, TAYLOR),
    example={"eta": "0.05", "eta_N": "1"},
)
