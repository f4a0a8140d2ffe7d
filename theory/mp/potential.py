"""Averages of logarithms over the Marchenko-Pastur law, all of them values of its logarithmic potential."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Abs,
    Eq,
    Expr,
    Piecewise,
    Poly,
    Rational,
    Symbol,
    apart,
    diff,
    factor,
    integrate,
    limit,
    log,
    pi,
    solve,
    sqrt,
)

from ..formula import DERIVED_HERE, Axiom, Derivation, Domain, Formula, Parameter
from .moments import moment_function, u
from .words import ASSUMPTIONS, CAVITY, CONVENTIONS, INVERSION, LAW, VARIANCE, v, y

__all__ = ["ENTROPY", "LOG_MOMENT"]

G = Parameter("g", "factor of the eigenvalue (a signal-to-noise ratio)", Domain("real", low=0), typical=(0, 5))
NO_ATOM = Parameter("ratio", "columns over rows", Domain("real", 0, 1, open_low=True), typical=(0.1, 1), latex="y")
g = G.symbol

AT_INFINITY = Axiom(
    "mass one",
    "L(z) = int log|z - x| drho is log z + o(1) at infinity; the rival has mass 1/2 there",
    Rational(1),
    Rational(1, 2),
)
SLOPE = Axiom(
    "slope of the potential", "dL/dz = int rho/(z-x); the rival takes half of it", Rational(1), Rational(1, 2)
)


def _potential(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr]:
    """(z, L) in the parameter u = z int rho/(z-x) - 1, the moment series at 1/z."""
    at = d.step("z = 1/t", Symbol("z"), factor(1 / moment_function(d, known)))
    slope = known.get(SLOPE.name, SLOPE.value) * apart(factor((1 + u) / at * diff(at, u)), u)
    d.step("dL/du = (1 + u)/z dz/du", Symbol("dL/du"), slope)
    # The logarithm of the modulus: L is wanted on the real axis.
    primitive = sum((integrate(part, u) for part in slope.as_ordered_terms()), 0 * u)
    primitive = primitive.replace(log, lambda argument: log(Abs(argument)))
    return at, d.step("integrated", Symbol("L - constant"), primitive)


def _prove_log_moment(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    at, primitive = _potential(d, known)
    constant = limit(known[AT_INFINITY.name] * log(factor(at * u)) - (primitive + log(u)), u, 0, "+")
    potential = d.step("the constant that makes L - log z vanish at infinity, u = 0", Symbol("L"), primitive + constant)
    # The root that vanishes with g is the one on the physical sheet.
    roots = solve(at + 1 / g, u)
    physical = next(root for root in roots if limit(root, g, 0, "+") == 0)
    d.step("the physical root at z = -1/g", u, physical)
    d.step("log(1 + g x) = log g + log(1/g + x)", Symbol("E log(1 + g x)"), log(g) + potential.subs(u, physical))
    return d


def _prove_entropy(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    at, potential = _potential(d, known)  # its constant drops out of L(0) - (L(a) + L(b))/2
    turning = solve(diff(at, u), u)
    edges = [d.step(f"L at the edge u = {root}", Symbol("L"), potential.subs(u, root)) for root in turning]
    origin = d.step("L at 0, u = -1: E log x", Symbol("L(0)"), potential.subs(u, -1))
    # rho = h sqrt(b-x) sqrt(x-a)/x with the constant h that Stieltjes inversion gives, 1/(2 pi y variance).
    leading = Poly(factor(at * u), u).LC()
    height = d.step("rho = h sqrt((b-x)(x-a))/x", Symbol("h"), known[INVERSION.name](1 / (2 * leading)))
    d.step("-E log rho", Symbol("h(rho)"), -log(height) - sum(edges) / 2 + origin)
    return d


def _log_moment() -> Expr:
    lower, upper = (1 - sqrt(y)) ** 2, (1 + sqrt(y)) ** 2
    q = 4 * g * v / (sqrt(1 + g * v * lower) + sqrt(1 + g * v * upper)) ** 2
    return -log(1 - q) - log(1 - y * q) / y - q


def _entropy() -> Expr:
    last = Piecewise((0, Eq(y, 1)), ((1 - y) * log(1 - y) / (2 * y), True))
    return log(4 * pi**2 * y * v**2) / 2 - 1 - last


LOG_MOMENT = Formula(
    id="mp.log_moment",
    title="mean of log(1 + g x) over the Marchenko-Pastur law",
    symbol="E log(1 + g x)",
    parameters=(G, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS
    + " and contributes nothing; natural logarithm; per column, so log det(1 + g X'X/n) is p times this",
    source=DERIVED_HERE,
    state=_log_moment,
    prove=_prove_log_moment,
    axioms=(CAVITY, AT_INFINITY),
    example={"g": "3", "ratio": "0.5"},
)
ENTROPY = Formula(
    id="mp.entropy",
    title="differential entropy of the Marchenko-Pastur density",
    symbol="h(rho)",
    parameters=(NO_ATOM, VARIANCE),
    assumptions=ASSUMPTIONS,
    conventions="-int rho log rho, in nats; ratio <= 1, where all the mass has a density",
    source=DERIVED_HERE,
    state=_entropy,
    prove=_prove_entropy,
    axioms=(CAVITY, SLOPE, INVERSION),
    example={"ratio": "0.25"},
)
