"""Outlying singular values of a trained hidden matrix: the eigenvalues of a finite matrix, level 2 of the theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    And,
    Determinant,
    Eq,
    Expr,
    Identity,
    MatrixSymbol,
    Max,
    Piecewise,
    Symbol,
    Tuple,
    diff,
    expand,
    factor,
    solve,
    sqrt,
    symbols,
)

from ..formula import Axiom, Derivation, Formula
from ..words import Word
from . import words as w
from .network import NU, SIGMA, Network
from .probe import M_A, M_B, spectral_probe

__all__ = ["ESCAPE_TIME", "Lambda", "LOWER_OUTLIERS", "OUTLIERS", "location", "threshold"]

Lambda = Word("Lambda", r"\Lambda")
TAU = Symbol("tau")
Z = Symbol("z", positive=True)
N = Symbol("n", integer=True, positive=True)


def location(eigenvalue: Any) -> Expr:
    """z^2 at an eigenvalue Lambda of MA MB."""
    return (eigenvalue + SIGMA**2) * (eigenvalue + NU * SIGMA**2) / eigenvalue


def threshold() -> Expr:
    """The Lambda at which z leaves the bulk's upper edge."""
    return SIGMA**2 * sqrt(NU)


def _level_2(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr]:
    """(characteristic polynomial of MA MB after two updates, z^2 as a function of Lambda), recorded in `d`."""
    network = Network(steps=2)
    reading = w.read(known, network)
    probe = spectral_probe(reading, network.matrices[0], network.spikes[0])
    short = probe.short_names()
    d.step("z a = M b, the Gaussian part of W b split off", Symbol("a"), probe.left.xreplace(short))
    d.step("z b = M^T a likewise", Symbol("b"), probe.right.xreplace(short))
    for symbol, value in probe.equations.items():
        d.step("linearity and Stein's identity", short[symbol], value.xreplace(short))
    MA, MB = (half.xreplace(short) for half in probe.halves(2))
    d.step("X = m_b MA Y, with X = (alpha, p + C alpha)", Symbol("MA"), MA)
    d.step("Y = m_a MB X, with Y = (beta, q + C beta)", Symbol("MB"), MB)
    polynomial = (MA * MB).charpoly(Lambda).as_expr(Lambda)
    d.step("a solution exists where Lambda = 1/(m_a m_b) is an eigenvalue", 0, polynomial)
    # m_a (z - R_ba) = 1: m_a z = 1 + m_a R_ba, and R_ba m_a is a multiple of m_a m_b = tau.
    sides = [1 + expand(m * loop).subs(M_A * M_B, TAU) for m, loop in zip((M_A, M_B), probe.loops, strict=True)]
    d.step("the probe responds to itself", Symbol("m_a*z"), sides[0])
    d.step("the probe responds to itself", Symbol("m_b*z"), sides[1])
    square = factor((sides[0] * sides[1] / TAU).subs(TAU, 1 / Lambda))
    return polynomial, d.step("the product of the two over tau, tau = 1/Lambda", Z**2, square)


def _edge(d: Derivation, square: Expr) -> Expr:
    """The positive Lambda at which z^2 is stationary: m_a m_b leaves the physical branch there, and z the bulk's edge."""
    root = next(r for r in solve(diff(square, Lambda), Lambda) if r.is_positive)
    return d.step("z grows with Lambda on the physical branch, from", Symbol("Lambda*"), root)


def _prove_outliers(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    polynomial, square = _level_2(d, known)
    edge = _edge(d, square)
    d.step("an outlier", Z, Tuple(Eq(polynomial, 0), Piecewise((sqrt(square), Lambda > edge))))
    return d


def _prove_lower(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    polynomial, square = _level_2(d, known)
    edge = _edge(d, square)
    zeros = sorted((-r for r in solve(square * Lambda, Lambda)), key=str)
    lowest = d.step("z^2 is positive between its zeros", Symbol("-Lambda"), Max(*zeros))
    inside = And(-lowest < Lambda, Lambda < -edge)
    d.step("an outlier below the bulk", Z, Tuple(Eq(polynomial, 0), Piecewise((sqrt(square), inside))))
    return d


def _characteristic() -> Any:
    MA, MB = MatrixSymbol("MA", 2 * N, 2 * N), MatrixSymbol("MB", 2 * N, 2 * N)
    return Eq(Determinant(Lambda * Identity(2 * N) - MA * MB), 0)


def _outliers() -> Tuple:
    return Tuple(_characteristic(), Piecewise((sqrt(location(Lambda)), Lambda > threshold())))


def _lower_outliers() -> Tuple:
    inside = And(-(SIGMA**2) * Max(1, NU) < Lambda, Lambda < -threshold())
    return Tuple(_characteristic(), Piecewise((sqrt(location(Lambda)), inside)))


BEFORE, AFTER = symbols("Lambda_s Lambda_next", positive=True)
TIME = Symbol("s", nonnegative=True)
LINEAR = Axiom(
    "linear between updates",
    "Lambda at s + x is (1 - x) Lambda_s + x Lambda_(s+1); the rival reads it backwards",
    lambda x: (1 - x) * BEFORE + x * AFTER,
    lambda x: x * BEFORE + (1 - x) * AFTER,
)


def _prove_escape(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    _, square = _level_2(d, {axiom.name: axiom.value for axiom in w.AXIOMS} | dict(known))
    edge = _edge(d, square)
    x = Symbol("x")
    line = d.step("between updates s and s + 1", Lambda, known[LINEAR.name](x))
    (crossing,) = solve(line - edge, x)
    d.step("s + x where Lambda reaches the edge for the first time", Symbol("t*"), TIME + factor(crossing))
    return d


def _escape_time() -> Expr:
    return TIME + (threshold() - BEFORE) / (AFTER - BEFORE)


_BOX = (
    "; MA = [[I,0],[C,I]] [[A,Phi],[0,A']], MB = [[I,0],[C,I]] [[B,G],[0,B']] with C = diag(c_k), "
    "c_k = eta0 gamma0 (y-f)/P; with `independent`, A = B = 0 in these two"
)
OUTLIERS = Formula(
    id="mlp.outliers",
    title="outlying singular values of a trained hidden matrix, largest first",
    symbol="z",
    parameters=(w.T, *w.NETWORK),
    assumptions=w.ASSUMPTIONS,
    conventions=w.CONVENTIONS + _BOX,
    source=w.SEED,
    state=_outliers,
    prove=_prove_outliers,
    axioms=w.AXIOMS,
    example=w.EXAMPLE,
)
LOWER_OUTLIERS = Formula(
    id="mlp.lower_outliers",
    title="singular values below the bulk of a trained rectangular matrix",
    symbol="z",
    parameters=(w.T, *w.NETWORK),
    assumptions=w.ASSUMPTIONS,
    conventions=w.CONVENTIONS + _BOX + "; smallest first",
    source=w.SEED,
    state=_lower_outliers,
    prove=_prove_lower,
    axioms=w.AXIOMS,
    example=w.EXAMPLE | {"activation": "erf", "nu": "9", "gamma0": "7", "eta0": "0.5"},
)
ESCAPE_TIME = Formula(
    id="mlp.escape_time",
    title="time at which the first outlier leaves the bulk",
    symbol="t*",
    parameters=(w.T_MAX, *w.NETWORK),
    assumptions=w.ASSUMPTIONS,
    conventions=w.CONVENTIONS
    + _BOX
    + "; Lambda the largest positive eigenvalue (0 if none), linear between updates; inf where it stays below up to t_max",
    source=w.SEED,
    state=_escape_time,
    prove=_prove_escape,
    axioms=(w.BACKWARD, LINEAR),
    example={"t_max" if name == "t" else name: value for name, value in w.EXAMPLE.items()},
)
