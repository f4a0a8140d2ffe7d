"""Cantelli's certificate: an upper bound on the misalignment probability Pr(X <= 0) from mean and variance alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Max, Min, Symbol, diff, simplify, solve, symbols

from ..formula import Axiom, Derivation, Formula
from . import words as w
from .moments import variance_of

__all__ = ["BOUND", "BOUND_EXACT", "bound_from_ratio"]

M, K = w.M.symbol, w.K.symbol
E, V, s = symbols("E V s", positive=True)

MARKOV = Axiom(
    "Markov's inequality",
    "for s >= 0, X <= 0 implies (E - X + s)^2 >= (E + s)^2, whose mean is V + s^2; the rival is Chebyshev's two-sided s = 0",
    lambda s: (V + s**2) / (E + s) ** 2,
    lambda s: V / E**2 + 0 * s,
)
VARIANCE = Axiom(
    "variance of X",
    "Var X = b'Sb/M + a'Ta/K + tr(ST)/(MK); the rival drops the trace",
    variance_of(w.ATA, w.BSB, w.TR_ST, 1 / M, 1 / K),
    variance_of(w.ATA, w.BSB, 0, 1 / M, 1 / K),
)
WORST_DIMENSION = Axiom(
    "worst dimension",
    "each of 1/d_tr, 1/d_te, 1/d_x is at most 1/d with d the smallest; the rival takes the largest",
    Min,
    Max,
)


def bound_from_ratio(ratio: Any) -> Any:
    """R/(1 + R) with R = Var X / (E X)^2; on symbols and numbers alike."""
    return ratio / (1 + ratio)


def _minimise(d: Derivation, markov: Any) -> Expr:
    bound = d.step("Markov, for every s >= 0", Symbol("Pr(X<=0)"), markov(s))
    critical = solve(diff(bound, s), s)
    best = critical[0] if critical else Symbol("s", positive=True) * 0
    d.step("the minimum over s", Symbol("s*"), best)
    return d.step("the bound there", Symbol("B"), simplify(bound.subs(s, best)))


def _prove_exact(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    best = _minimise(d, known[MARKOV.name])
    variance = d.step("the variance", Symbol("Var X"), known[VARIANCE.name])
    d.step("inserted", Symbol("B_exact"), best.subs({V: variance, E: w.AB}))
    return d


def _prove_bound(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    best = _minimise(d, known[MARKOV.name])
    d_tr, d_te, d_x = symbols("d_tr d_te d_x", positive=True)
    inside = {w.BSB: w.AB**2 / d_tr, w.ATA: w.AB**2 / d_te, w.TR_ST: w.AB**2 / d_x}
    ratio = d.step("Var X/(E X)^2 in dimensions", Symbol("R"), simplify(known[VARIANCE.name].subs(inside) / w.AB**2))
    smallest = known[WORST_DIMENSION.name](w.AB**2 / w.BSB, w.AB**2 / w.ATA, w.AB**2 / w.TR_ST)
    dimension = Symbol("d", positive=True)
    worst = d.step(
        "every dimension replaced by the smallest; R grows",
        Symbol("R_align"),
        simplify(ratio.subs(dict.fromkeys((d_tr, d_te, d_x), dimension))),
    )
    bound = d.step("R/(1+R) grows with R", Symbol("B_align"), simplify(best.subs(V, worst * E**2)))
    d.step("the smallest dimension", Symbol("B_align"), bound.subs(dimension, smallest))
    return d


def _bound_exact() -> Expr:
    variance = variance_of(w.ATA, w.BSB, w.TR_ST, 1 / M, 1 / K)
    return variance / (variance + w.AB**2)


def _bound() -> Expr:
    n_eff = M * K / (M + K + 1)
    return 1 / (1 + n_eff * Min(w.AB**2 / w.BSB, w.AB**2 / w.ATA, w.AB**2 / w.TR_ST))


_CONVENTIONS = (
    "misalignment is X <= 0, so an atom at 0 counts as misaligned; Sigma per sample; the bound is 1 where a'b <= 0"
)
_ASSUMPTIONS = (w.INDEPENDENT, w.SECOND_MOMENTS, w.ALIGNED)

BOUND_EXACT = Formula(
    id="alignment.bound_exact",
    title="Cantelli bound on the misalignment probability, with the exact variance",
    symbol="B_exact",
    parameters=w.PAIR,
    assumptions=_ASSUMPTIONS,
    conventions=_CONVENTIONS,
    source=w.SEED,
    state=_bound_exact,
    prove=_prove_exact,
    axioms=(MARKOV, VARIANCE),
    example=w.EXAMPLE,
)
BOUND = Formula(
    id="alignment.bound",
    title="misalignment bound by effective sample size and alignment dimension",
    symbol="B_align",
    parameters=w.PAIR,
    assumptions=_ASSUMPTIONS,
    conventions=_CONVENTIONS
    + "; with different laws the dimension is the least of (a'b)^2/b'Sb, (a'b)^2/a'Ta, (a'b)^2/tr(ST)",
    source=w.SEED,
    state=_bound,
    prove=_prove_bound,
    axioms=(MARKOV, VARIANCE, WORST_DIMENSION),
    example=w.EXAMPLE,
)
