"""Where the largest eigenvalue of pure noise ends: the turning point of a Laguerre function, and Airy's scale about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Derivative,
    Eq,
    Expr,
    Function,
    Rational,
    Symbol,
    diff,
    exp,
    expand,
    factor,
    integrate,
    pi,
    simplify,
    solve,
    sqrt,
    symbols,
)

from ..formula import DERIVED_HERE, Axiom, Derivation, Domain, Formula, Parameter
from ..words import Word
from . import words as w

__all__ = ["EDGE_SCALE", "THRESHOLD"]

DIMENSION = Parameter(
    "dimension", "number of eigenvalues", Domain("real", low=0, open_low=True), typical=(20, 400), latex="D"
)
COEFFICIENT = Parameter(
    "coefficient",
    "a in the density (a/pi) sqrt(edge - x)",
    Domain("real", low=0, open_low=True),
    typical=(0.05, 2),
    latex="a",
)

n, p, variance = w.ROWS.symbol, w.COLUMNS.symbol, w.VARIANCE.symbol
D, a = DIMENSION.symbol, COEFFICIENT.symbol
q = Word("q", "q_{1-\\varepsilon}")
"""The Tracy-Widom quantile at 1 - level, beta = 1."""
x, k, alpha = symbols("x k alpha", positive=True)
d_, sigma = symbols("delta sigma", positive=True)
L = Function("L")

LAGUERRE = Axiom(
    "Laguerre's equation",
    "x L'' + (alpha + 1 - x) L' + k L = 0; the rival has (alpha - x) L'",
    alpha + 1 - x,
    alpha - x,
)
ORDER = Axiom(
    "order of the polynomial",
    "the edge of a real n x p matrix is that of k = p - 1, alpha = n - p; the rival takes k = p",
    lambda: (p - 1, n - p),
    lambda: (p, n - p),
)
AIRY_DENSITY = Axiom(
    "density of the Airy spectrum",
    "far below the edge the rescaled eigenvalues have density sqrt(-s)/pi; the rival has 2 sqrt(-s)/pi",
    lambda depth: sqrt(depth) / pi,
    lambda depth: 2 * sqrt(depth) / pi,
)


def _prove_threshold(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    drift = known[LAGUERRE.name] / x
    weight = d.step("the factor that removes the first derivative", Symbol("w"), exp(integrate(expand(drift / 2), x)))
    curvature = diff(weight * L(x), x, 2).subs(Derivative(L(x), (x, 2)), -drift * L(x).diff(x) - k * L(x) / x)
    potential = d.step("f = w L solves f'' = V f", Symbol("V"), factor(simplify(curvature / (weight * L(x)))))
    # x = e^t takes the singularity at 0 to infinity (Langer): without it the turning point is off by O(1/n).
    langer = d.step(
        "in t = log x, f = sqrt(x) h solves h'' = W h", Symbol("W"), expand(simplify(x**2 * potential + Rational(1, 4)))
    )
    order, parameter = known[ORDER.name]()
    inserted = expand(langer.subs({k: order, alpha: parameter}))
    turning = d.step("upper turning point", Symbol("mu"), solve(inserted, x)[-1])
    slope = d.step("slope of W there in t", Symbol("W'"), (x * diff(inserted, x)).subs(x, turning))
    scale = d.step("h is Ai(W'^(1/3) (t - log mu)) there; back to x", sigma, turning / slope ** Rational(1, 3))
    d.step(
        "quantile of the rescaled eigenvalue, entries of the given variance",
        Symbol("lambda"),
        variance * (turning + scale * q),
    )
    return d


def _prove_edge_scale(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    depth = Symbol("depth", positive=True)
    counted = d.step(
        "eigenvalues within delta of the edge", Symbol("N"), D * integrate(a / pi * sqrt(depth), (depth, 0, d_))
    )
    airy = d.step(
        "Airy eigenvalues above -delta/sigma",
        Symbol("N"),
        integrate(known[AIRY_DENSITY.name](depth), (depth, 0, d_ / sigma)),
    )
    d.step("as many", sigma, simplify(solve(Eq(counted, airy), sigma)[0]))
    return d


def _threshold() -> Expr:
    left, right = sqrt(n - Rational(1, 2)), sqrt(p - Rational(1, 2))
    return variance * ((left + right) ** 2 + (left + right) * (1 / left + 1 / right) ** Rational(1, 3) * q)


THRESHOLD = Formula(
    id="tracy_widom.threshold",
    title="level that the largest eigenvalue of noise exceeds with a stated probability",
    symbol="lambda",
    parameters=(w.ROWS, w.COLUMNS, w.LEVEL, w.VARIANCE),
    assumptions=w.MATRIX,
    conventions="largest eigenvalue of X'X, not divided by rows; q is the beta = 1 quantile at 1 - level",
    source=w.PAPERS["threshold"],
    state=_threshold,
    prove=_prove_threshold,
    axioms=(LAGUERRE, ORDER),
    example={"rows": "200", "columns": "100", "level": "0.05"},
)
EDGE_SCALE = Formula(
    id="tracy_widom.edge_scale",
    title="scale of the largest eigenvalue at any square-root edge",
    symbol="sigma",
    parameters=(DIMENSION, COEFFICIENT),
    assumptions=w.EDGE,
    conventions="(largest eigenvalue - edge)/sigma follows Tracy-Widom; the density is normalised to 1 over all eigenvalues",
    source=DERIVED_HERE,
    state=lambda: (D * a) ** Rational(-2, 3),
    prove=_prove_edge_scale,
    axioms=(AIRY_DENSITY,),
    example={"dimension": "300", "coefficient": "0.0696"},
)
