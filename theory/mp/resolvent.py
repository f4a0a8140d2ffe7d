"""The Marchenko-Pastur law out of its self-consistent equation: polynomial, edges, branch, density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import And, Expr, Piecewise, Poly, Symbol, expand, factor, limit, numer, pi, sqrt, sympify, together

from ..formula import Derivation, Domain, Formula, Parameter
from .words import ASSUMPTIONS, BRANCH, CAVITY, CONVENTIONS, INVERSION, LAW, PAPER, v, y, z

__all__ = ["DENSITY", "EDGES", "STIELTJES", "X", "edges_of", "polynomial", "support"]

X = Parameter("x", "eigenvalue", Domain("real"), typical=(0, 6))
Z = Parameter("z", "spectral parameter, off the spectrum", Domain("complex"), typical=(-2, 4))
x = X.symbol
m = Symbol("m", complex=True)


def edges_of(ratio: Any, variance: Any) -> tuple[Any, Any]:
    """variance (1 -+ sqrt(ratio))^2, on symbols."""
    return variance * (1 - sqrt(ratio)) ** 2, variance * (1 + sqrt(ratio)) ** 2


def polynomial(d: Derivation, known: Mapping[str, Any]) -> Poly:
    """The quadratic that m solves at z, with constant term 1, recorded in `d`."""
    self_energy = d.step("Schur's complement of one column, concentrated", Symbol("e"), known[CAVITY.name](m, z))
    d.step("every column is like the one left out", m, 1 / (self_energy - z))
    quadratic = Poly(numer(together(m - 1 / (self_energy - z))), m)
    quadratic = Poly(expand(quadratic.as_expr() / quadratic.nth(0)), m)
    d.step("cleared of fractions", 0, quadratic.as_expr())
    return quadratic


def support(d: Derivation, known: Mapping[str, Any]) -> tuple[Poly, Expr, Expr]:
    """(quadratic, lower edge, upper edge): its discriminant is (z - a)(z - b)."""
    quadratic = polynomial(d, known)
    gap = Poly(quadratic.discriminant(), z)
    d.step("m leaves the real axis where the discriminant is negative", Symbol("D"), gap.as_expr())
    centre, square = -gap.nth(1) / 2, factor(gap.discriminant() / 4)
    lower = d.step("the smaller root of D", Symbol("a"), expand(centre - sqrt(square)))
    upper = d.step("the larger root of D", Symbol("b"), expand(centre + sqrt(square)))
    return quadratic, lower, upper


def _prove_edges(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    _, lower, upper = support(d, known)
    d.step("the support of the bulk", Symbol("(a, b)"), (lower, upper))
    return d


def _prove_stieltjes(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    quadratic, lower, upper = support(d, known)
    # One root for each edge: their product is the square root of D that grows like z and is cut on [a, b] alone.
    root = d.step("the root of D that grows like z", Symbol("R"), sqrt(z - lower) * sqrt(z - upper))
    for sign in (1, -1):
        candidate = (-quadratic.nth(1) + sign * root) / (2 * quadratic.LC())
        if _mass(candidate) == sympify(known[BRANCH.name]):
            d.step("the solution with z m -> -1", m, candidate)
    return d


def _prove_density(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    quadratic, lower, upper = support(d, known)
    leading = quadratic.LC().subs(z, x)
    imaginary = d.step(
        "the imaginary part where D < 0", Symbol("Im m"), sqrt((upper - x) * (x - lower)) / (2 * leading)
    )
    inside = d.step("Stieltjes inversion", Symbol("rho"), known[INVERSION.name](imaginary))
    bulk = And(lower < x, x < upper)
    d.step("nothing elsewhere but the mass at 0", Symbol("rho"), Piecewise((inside, bulk), (0, True)))
    return d


def _mass(candidate: Expr) -> Expr:
    """The limit of z m at infinity, along the positive axis."""
    t = Symbol("t", positive=True)
    return limit(together((z * candidate).subs(z, 1 / t)), t, 0, "+")


def _stieltjes() -> Expr:
    lower, upper = edges_of(y, v)
    return (v * (1 - y) - z + sqrt(z - lower) * sqrt(z - upper)) / (2 * v * y * z)


def _density() -> Expr:
    lower, upper = edges_of(y, v)
    return Piecewise((sqrt((upper - x) * (x - lower)) / (2 * pi * v * y * x), And(lower < x, x < upper)), (0, True))


EDGES = Formula(
    id="mp.edges",
    title="edges of the Marchenko-Pastur bulk",
    symbol="(a, b)",
    parameters=LAW,
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + "; the mass at 0 is no edge. Of singular values of X/sqrt(n): the roots of these",
    source=PAPER,
    state=lambda: edges_of(y, v),
    prove=_prove_edges,
    axioms=(CAVITY,),
    example={"ratio": "0.25"},
)
STIELTJES = Formula(
    id="mp.stieltjes",
    title="Stieltjes transform of the Marchenko-Pastur law",
    symbol="m(z)",
    parameters=(Z, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + "; m(z) = int rho/(x-z), so Im m > 0 where Im z > 0; principal roots, taken separately",
    source=PAPER,
    state=_stieltjes,
    prove=_prove_stieltjes,
    axioms=(CAVITY, BRANCH),
    example={"z": "1+1j", "ratio": "0.25"},
)
DENSITY = Formula(
    id="mp.density",
    title="Marchenko-Pastur density",
    symbol="rho(x)",
    parameters=(X, *LAW),
    assumptions=ASSUMPTIONS,
    conventions=CONVENTIONS + ", which the density leaves out: it integrates to min(1, 1/ratio)",
    source=PAPER,
    state=_density,
    prove=_prove_density,
    axioms=(CAVITY, INVERSION),
    example={"x": "1", "ratio": "0.25"},
)
