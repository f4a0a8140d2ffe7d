"""The distribution function of the Marchenko-Pastur law, integrated in the half-angle in which its density is rational."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Abs,
    And,
    Expr,
    Max,
    Piecewise,
    Symbol,
    apart,
    atan,
    atan2,
    cancel,
    diff,
    expand,
    factor,
    integrate,
    pi,
    sign,
    sqrt,
)

from ..formula import DERIVED_HERE, Axiom, Derivation, Domain, Formula, Parameter
from ..words import Word
from .resolvent import X, edges_of, support
from .words import ASSUMPTIONS, CAVITY, CONVENTIONS, INVERSION, LAW, PAPER, v, y, z

__all__ = ["CDF", "QUANTILE", "SINGULAR_CDF", "SINGULAR_DENSITY"]

PROBABILITY = Parameter(
    "probability", "share of the eigenvalues below", Domain("real", 0, 1), typical=(0, 1), latex="p"
)
S = Parameter("s", "singular value of X/sqrt(n)", Domain("real"), typical=(0, 3))
x, p, s = X.symbol, PROBABILITY.symbol, S.symbol
t, r = Symbol("t", positive=True), Symbol("r", positive=True)
Q = Word("Q", positive=True)
"""The quantile, a root of its equation."""

SQUARED = Axiom(
    "eigenvalues are squares",
    "a singular value s is an eigenvalue s^2; the rival takes one for the other",
    lambda s: s**2,
    lambda s: s,
)


def _antiderivative(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr, Expr]:
    """(primitive of the density in t, lower edge, upper edge), where t^2 = (x - a)/(b - x)."""
    quadratic, lower, upper = support(d, known)
    # With r for sqrt(ratio) everything is rational: SymPy's simplifications stall on the root itself.
    rational: list[Any] = [each.subs(y, r**2) for each in (lower, upper, quadratic.LC())]
    low, high, leading = rational
    at = d.step("t runs from 0 to infinity while x runs from a to b", x, (low + t**2 * high) / (1 + t**2))
    root = d.step("the root of (b - x)(x - a)", Symbol("R"), (high - low) * t / (1 + t**2))
    imaginary = root / (2 * leading.subs(z, at))
    integrand = factor(known[INVERSION.name](imaginary) * diff(at, t))
    d.step("rho dx = w dt, rational in t", Symbol("w"), integrand)
    primitive = sum((integrate(part, t) for part in apart(integrand, t).as_ordered_terms()), 0 * t)
    d.step("integrated term by term in partial fractions", Symbol("W"), primitive)
    d.step("which differentiated gives w", 0, cancel(diff(primitive, t) - integrand))
    return primitive, lower, upper


def _distribution(d: Derivation, known: Mapping[str, Any], point: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """(mass at 0, F inside the bulk, lower edge, upper edge), at `point`."""
    primitive, lower, upper = _antiderivative(d, known)
    # Each atan(c t) of the primitive tends to sign(c) pi/2; what is rational in t vanishes.
    at_infinity = primitive.replace(atan, lambda angle: pi / 2 * sign(angle / t))
    mass = d.step(
        "the mass of the bulk, as t -> infinity",
        Symbol("W(oo)"),
        factor(expand(at_infinity.subs(t, 1 / t)).subs(t, 0).subs(r, sqrt(y))),
    )
    atom = d.step("the rest lies at 0", Symbol("F(0)"), 1 - mass)
    half_angle = sqrt((point - lower) / (upper - point))
    inside = atom + primitive.subs(t, half_angle).subs(r, sqrt(y))
    d.step("from a to x", Symbol("F"), inside)
    return atom, inside, lower, upper


def _whole(d: Derivation, known: Mapping[str, Any], point: Expr, origin: Expr) -> Expr:
    atom, inside, lower, upper = _distribution(d, known, point)
    return Piecewise((0, origin < 0), (atom, point <= lower), (inside, point < upper), (1, True))


def _prove_cdf(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    d.step("over the whole axis", Symbol("F"), _whole(d, known, x, x))
    return d


def _prove_quantile(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    _, inside, lower, upper = _distribution(d, known, Q)
    d.step(
        "F(Q) - p vanishes at the quantile Q, inside the bulk",
        0,
        Piecewise((inside - p, And(lower < Q, upper > Q)), (0, True)),
    )
    return d


def _prove_singular_cdf(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    point = d.step("the eigenvalue of a singular value", x, known[SQUARED.name](s))
    d.step("F there, 0 below 0", Symbol("F"), _whole(d, known, point, s))
    return d


def _prove_singular_density(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    quadratic, lower, upper = support(d, known)
    point = d.step("the eigenvalue of a singular value", x, known[SQUARED.name](s))
    imaginary = sqrt((upper - point) * (point - lower)) / (2 * quadratic.LC().subs(z, point))
    inside = d.step("the density there times dx/ds", Symbol("rho"), known[INVERSION.name](imaginary) * diff(point, s))
    d.step("s >= 0", Symbol("rho"), Piecewise((inside, And(s > 0, lower < point, point < upper)), (0, True)))
    return d


def _inside(point: Expr) -> Expr:
    lower, upper = edges_of(y, v)
    left, right = sqrt(point - lower), sqrt(upper - point)
    turn = (1 + y) * atan2(left, right) - Abs(1 - y) * atan2((1 + sqrt(y)) * left, Abs(1 - sqrt(y)) * right)
    return Max(0, 1 - 1 / y) + (left * right / v + 2 * turn) / (2 * pi * y)


def _cdf(point: Expr, origin: Expr) -> Expr:
    lower, upper = edges_of(y, v)
    return Piecewise((0, origin < 0), (Max(0, 1 - 1 / y), point <= lower), (_inside(point), point < upper), (1, True))


def _quantile() -> Expr:
    lower, upper = edges_of(y, v)
    return Piecewise((_inside(Q) - p, And(lower < Q, upper > Q)), (0, True))


def _singular_density() -> Expr:
    lower, upper = edges_of(y, v)
    inside = sqrt((upper - s**2) * (s**2 - lower)) / (pi * v * y * s)
    return Piecewise((inside, And(s > 0, lower < s**2, s**2 < upper)), (0, True))


_SINGULAR = (
    "singular values of X/sqrt(n), X of n rows and p columns, ratio = p/n; the law of p of them, one for each column: for "
    "ratio > 1 the mass 1 - 1/ratio at 0"
)

CDF = Formula(
    id="mp.cdf",
    title="Marchenko-Pastur distribution function",
    symbol="F(x)",
    parameters=(X, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + ", counted from x = 0 on; 0 for x < 0",
    source=DERIVED_HERE,
    state=lambda: _cdf(x, x),
    prove=_prove_cdf,
    axioms=(CAVITY, INVERSION),
    example={"x": "1", "ratio": "0.25"},
)
QUANTILE = Formula(
    id="mp.quantile",
    title="Marchenko-Pastur quantile Q, the root of this equation",
    symbol="0",
    parameters=(PROBABILITY, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS
    + ": the quantile is 0 up to that probability; at probability 0 of a law without it, the lower edge",
    source=DERIVED_HERE,
    state=_quantile,
    prove=_prove_quantile,
    axioms=(CAVITY, INVERSION),
    example={"probability": "0.5", "ratio": "0.5"},
)
SINGULAR_DENSITY = Formula(
    id="mp.singular_density",
    title="density of the singular values; at ratio 1 the quarter circle sqrt(4 - s^2)/pi",
    symbol="rho(s)",
    parameters=(S, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=_SINGULAR + " is left out",
    source=PAPER,
    state=_singular_density,
    prove=_prove_singular_density,
    axioms=(CAVITY, INVERSION, SQUARED),
    example={"s": "1", "ratio": "1"},
)
SINGULAR_CDF = Formula(
    id="mp.singular_cdf",
    title="distribution function of the singular values",
    symbol="F(s)",
    parameters=(S, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=_SINGULAR + " is counted",
    source=DERIVED_HERE,
    state=lambda: _cdf(s**2, s),
    prove=_prove_singular_cdf,
    axioms=(CAVITY, INVERSION, SQUARED),
    example={"s": "1", "ratio": "1"},
)
