"""Moments of the Marchenko-Pastur law by Lagrange inversion, and its free transforms R and S."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Eq, Expr, Integer, Piecewise, Poly, Sum, Symbol, binomial, cancel, expand, factor_list, solve

from ..formula import DERIVED_HERE, Axiom, Derivation, Domain, Formula, Parameter
from .resolvent import m, polynomial
from .words import ASSUMPTIONS, CAVITY, CONVENTIONS, LAW, PAPER, v, y, z

__all__ = ["MOMENT", "R_TRANSFORM", "S_TRANSFORM", "moment_function"]

ORDER = Parameter("order", "power of the eigenvalue", Domain("integer", low=0), typical=(1, 8), latex="k")
G = Parameter("g", "argument of R", Domain("real"), typical=(-2, 0))
PSI = Parameter("psi", "argument of S", Domain("real"), typical=(0, 4), latex=r"\psi")
k, g, psi = ORDER.symbol, G.symbol, PSI.symbol
t, u = Symbol("t", positive=True), Symbol("u")
j = Symbol("j", integer=True, nonnegative=True)

LAGRANGE = Axiom(
    "Lagrange inversion",
    "psi = t phi(psi) has [t^k] psi = [u^(k-1)] phi(u)^k / k; the rival forgets the 1/k",
    lambda coefficient, order: coefficient / order,
    lambda coefficient, order: coefficient,
)
FREE_CUMULANTS = Axiom(
    "R-transform",
    "R(g) = z(g) - 1/g, z(g) the inverse of g = int rho/(z-x); the rival keeps the 1/g",
    lambda z: z - 1 / g,
    lambda z: z,
)
MULTIPLICATIVE = Axiom(
    "S-transform",
    "S(psi) = t(psi) (1 + psi)/psi, t(psi) the inverse of psi(t) = sum m_k t^k; the rival leaves (1 + psi) out",
    lambda t: t * (1 + psi) / psi,
    lambda t: t / psi,
)


def moment_function(d: Derivation, known: Mapping[str, Any]) -> Expr:
    """t as a function of u = psi(t) = sum_{k>=1} m_k t^k, from the equation of m: z = 1/t, m = -t(1 + psi)."""
    quadratic = polynomial(d, known)
    series = expand(quadratic.as_expr().subs(m, -t * (1 + u)).subs(z, 1 / t))
    d.step("z = 1/t and m = -t (1 + u), u = sum m_k t^k", 0, cancel(series))
    return d.step("solved for t", t, next(root for root in solve(series, t) if root != 0))


def _prove_moment(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    phi = d.step("u = t phi(u)", Symbol("phi"), cancel(u / moment_function(d, known)))
    constant, factors = factor_list(phi, u)
    first, second = (Poly(each, u) for each, _ in factors)
    scale = constant * first.nth(0) * second.nth(0)
    one, other = first.nth(1) / first.nth(0), second.nth(1) / second.nth(0)
    # (1 + a u)^k (1 + b u)^k, multiplied out by the binomial theorem; the coefficient of u^(k-1).
    term = binomial(k, k - 1 - j) * one ** (k - 1 - j) * binomial(k, j) * other**j
    coefficient = d.step("binomial theorem", Symbol("[u^(k-1)] phi^k"), scale**k * Sum(term, (j, 0, k - 1)))
    moment = known[LAGRANGE.name](coefficient, k)
    d.step("Lagrange inversion; the mass for k = 0", Symbol("m_k"), Piecewise((Integer(1), Eq(k, 0)), (moment, True)))
    return d


def _prove_r(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    quadratic = polynomial(d, known)
    inverse = d.step("solved for z at m = -g", z, solve(quadratic.as_expr().subs(m, -g), z)[0])
    d.step("R", Symbol("R(g)"), cancel(known[FREE_CUMULANTS.name](inverse)))
    return d


def _prove_s(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    inverse = moment_function(d, known)
    d.step("S", Symbol("S(psi)"), cancel(known[MULTIPLICATIVE.name](inverse.subs(u, psi))))
    return d


def _moment() -> Expr:
    narayana = Sum(binomial(k, j) * binomial(k - 1, j) * y**j / (j + 1), (j, 0, k - 1))
    return Piecewise((Integer(1), Eq(k, 0)), (v**k * narayana, True))


MOMENT = Formula(
    id="mp.moment",
    title="moments of the Marchenko-Pastur law: Narayana polynomials of the ratio",
    symbol="m_k",
    parameters=(ORDER, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + ", included in the mean; m_1 = variance",
    source=PAPER,
    state=_moment,
    prove=_prove_moment,
    axioms=(CAVITY, LAGRANGE),
    example={"order": "6", "ratio": "0.3"},
)
R_TRANSFORM = Formula(
    id="mp.r_transform",
    title="R-transform of the Marchenko-Pastur law",
    symbol="R(g)",
    parameters=(G, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + "; R(g) = sum_(k>=1) kappa_k g^(k-1) over free cumulants, additive over free sums",
    source=DERIVED_HERE,
    state=lambda: v / (1 - v * y * g),
    prove=_prove_r,
    axioms=(CAVITY, FREE_CUMULANTS),
    example={"g": "0.5", "ratio": "0.25"},
)
S_TRANSFORM = Formula(
    id="mp.s_transform",
    title="S-transform of the Marchenko-Pastur law",
    symbol="S(psi)",
    parameters=(PSI, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + "; S is multiplicative over free products; psi(t) = sum_(k>=1) m_k t^k",
    source=DERIVED_HERE,
    state=lambda: 1 / (v * (1 + y * psi)),
    prove=_prove_s,
    axioms=(CAVITY, MULTIPLICATIVE),
    example={"psi": "0.5", "ratio": "0.25"},
)
