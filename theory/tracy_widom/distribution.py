"""The Tracy-Widom laws as Fredholm determinants of one Airy operator, B_s(x, y) = Ai(x + y + s) on (0, oo)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Derivative, Eq, Expr, Function, Integer, Piecewise, Symbol, simplify, solve, symbols

from ..formula import Axiom, Derivation, Formula
from ..words import Word
from . import words as w

__all__ = ["CDF", "QUANTILE"]

beta, p = w.BETA.symbol, w.PROBABILITY.symbol
x, y, b, c = symbols("x y b c")
Ai = Function("Ai")

AIRY = Axiom(
    "Airy's equation", "Ai'' = x Ai; the rival has Ai'' = 2 x Ai", lambda x: x * Ai(x), lambda x: 2 * x * Ai(x)
)
GAP = Axiom(
    "gap probability, complex matrices",
    "no eigenvalue lies above s with probability det(1 - K), K the Airy kernel on (s, oo); the rival is det(1 + K)",
    lambda kernel: 1 - kernel,
    lambda kernel: 1 + kernel,
)
REAL = Axiom(
    "gap probability, real matrices", "Ferrari and Spohn: it is det(1 - B_s); the rival is det(1 + B_s)", -1, 1
)


def _determinant(factor: Any, at: str) -> Word:
    sign, size = ("-", -factor) if factor == -1 else ("+", factor)
    body = f"B_{at}" if size == 1 else f"({size})*B_{at}"
    return Word(f"det[1{sign}{body}]", rf"\det\left(1{sign}{body}\right)", positive=True)


def _kernel(d: Derivation, known: Mapping[str, Any]) -> Expr:
    """c in K = c B^2: the derivative of the Airy kernel along the diagonal is -c Ai(x) Ai(y)."""
    kernel = d.step("Airy kernel", Symbol("K"), (Ai(x) * Ai(y).diff(y) - Ai(x).diff(x) * Ai(y)) / (x - y))
    slope = kernel.diff(x) + kernel.diff(y)
    for variable in (x, y):
        slope = slope.subs(Derivative(Ai(variable), (variable, 2)), known.get(AIRY.name, AIRY.value)(variable))
    slope = d.step("differentiated along the diagonal", Symbol("(d/dx + d/dy) K"), simplify(slope))
    scale = simplify(-slope / (Ai(x) * Ai(y)))
    d.step("so K = int_0^oo c Ai(x+t) Ai(y+t) dt, and on (s, oo) it is c B_s^2", c, scale)
    return scale


def _law(d: Derivation, known: Mapping[str, Any], at: str, less: Any = 0) -> Expr:
    scale = _kernel(d, known)
    # For one eigenvalue b of B_s; the determinant is the product over all of them.
    gap = d.step("for one eigenvalue b of B_s", Symbol("1-K"), known[GAP.name](scale * b**2))
    factors = [-1 / root for root in solve(gap, b)]
    complex_law = Integer(1)
    for factor in factors:
        complex_law *= _determinant(factor, at)
    d.step("beta = 2: its factors, eigenvalue by eigenvalue", Symbol("F_2"), complex_law)
    real_law = d.step("beta = 1", Symbol("F_1"), _determinant(known[REAL.name], at))
    return Piecewise((real_law - less, Eq(beta, 1)), (complex_law - less, True))


def _prove_cdf(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    d.step("both", Symbol("F"), _law(d, known, "s"))
    return d


def _prove_quantile(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    d.step("F(Q) - p vanishes at the quantile Q", 0, _law(d, known, "Q", p))
    return d


def _statement(at: str, less: Any = 0) -> Expr:
    minus, plus = _determinant(-1, at), _determinant(1, at)
    return Piecewise((minus - less, Eq(beta, 1)), (minus * plus - less, True))


_CONVENTIONS = (
    "s = (largest eigenvalue - edge)/scale, the scale (D a)^(-2/3) for D eigenvalues of density (a/pi) sqrt(edge - x); "
    "mean -1.2065 and sd 1.2680 for beta = 1; B_s(x, y) = Ai(x + y + s) on (0, oo)"
)

CDF = Formula(
    id="tracy_widom.cdf",
    title="Tracy-Widom distribution function",
    symbol="F(s)",
    parameters=(w.S, w.BETA),
    assumptions=w.EDGE,
    conventions=_CONVENTIONS,
    source=w.PAPERS["determinant"],
    state=lambda: _statement("s"),
    prove=_prove_cdf,
    axioms=(AIRY, GAP, REAL),
    example={"s": "-1"},
)
QUANTILE = Formula(
    id="tracy_widom.quantile",
    title="Tracy-Widom quantile Q, the root of this equation",
    symbol="0",
    parameters=(w.PROBABILITY, w.BETA),
    assumptions=w.EDGE,
    conventions=_CONVENTIONS,
    source=w.PAPERS["determinant"],
    state=lambda: _statement("Q", p),
    prove=_prove_quantile,
    axioms=(AIRY, GAP, REAL),
    example={"probability": "0.95"},
)
