"""Effective sample size and effective dimensions: how much signal a gradient law carries, in samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Min, Symbol, cancel, simplify, symbols

from ..formula import Axiom, Derivation, Formula
from . import words as w
from .moments import variance_of

__all__ = ["BOUND_FROM_DIMENSION", "D_2", "D_ALIGN", "D_PARALLEL", "N_EFF"]

M, K = w.M.symbol, w.K.symbol
D = w.DIMENSION.symbol

VARIANCE = Axiom(
    "variance of X",
    "Var X in the words of one law, (1/M + 1/K) mu'Sigma mu + tr(Sigma^2)/(MK); the rival forgets the trace",
    lambda quadratic, trace: variance_of(quadratic, quadratic, trace, 1 / M, 1 / K),
    lambda quadratic, trace: variance_of(quadratic, quadratic, 0, 1 / M, 1 / K),
)
CANTELLI = Axiom(
    "Cantelli's inequality", "Pr(X <= 0) <= R/(1+R); the rival is Chebyshev's R", lambda r: r / (1 + r), lambda r: r
)
ALONE = {
    "quadratic": Axiom(
        "one sample of many tests",
        "M = 1, K -> inf leaves Var X = mu'Sigma mu; the rival exchanges the roles of the two words",
        lambda quadratic, trace: quadratic,
        lambda quadratic, trace: trace,
    ),
    "trace": Axiom(
        "the part of both samples",
        "the coefficient of 1/(MK) in Var X is tr(Sigma^2); the rival takes mu'Sigma mu",
        lambda quadratic, trace: trace,
        lambda quadratic, trace: quadratic,
    ),
}


def _prove_n_eff(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    inverse = symbols("x", positive=True)  # 1/d, the same for both words: the worst case
    variance = known[VARIANCE.name](inverse * w.ENERGY**2, inverse * w.ENERGY**2)
    ratio = d.step("Var X/(E X)^2 when both dimensions are d = 1/x", Symbol("R"), cancel(variance / w.ENERGY**2))
    d.step("R = 1/(n_eff d) defines n_eff", Symbol("n_eff"), cancel(inverse / ratio))
    return d


def _prove_dimension(word: str) -> Any:
    def prove(known: Mapping[str, Any]) -> Derivation:
        d = Derivation()
        axiom = ALONE[word]
        noise = d.step(axiom.text.split(";")[0], Symbol("noise"), known[axiom.name](w.QUADRATIC, w.TRACE_SQUARED))
        d.step("signal (E X)^2 over noise", Symbol("d"), w.ENERGY**2 / noise)
        return d

    return prove


def _prove_d_align(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    parts = [known[ALONE[word].name](w.QUADRATIC, w.TRACE_SQUARED) for word in ("quadratic", "trace")]
    first = d.step("along the mean", Symbol("d_parallel"), w.ENERGY**2 / parts[0])
    second = d.step("in covariance energy", Symbol("d_2"), w.ENERGY**2 / parts[1])
    d.step("the smaller, so that both words of Var X are at most (E X)^2/d", Symbol("d_align"), Min(first, second))
    return d


def _prove_bound_from_dimension(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    variance = known[VARIANCE.name](w.ENERGY**2 / D, w.ENERGY**2 / D)
    ratio = d.step("Var X/(E X)^2 at most", Symbol("R"), cancel(variance / w.ENERGY**2))
    d.step("Cantelli", Symbol("B"), simplify(known[CANTELLI.name](ratio)))
    return d


_ONE_LAW = "per sample and for one law; a batch of B samples taken as the unit has d_parallel times B and d_2 times B^2"
_MOMENTS = (w.SECOND_MOMENTS,)

N_EFF = Formula(
    id="alignment.n_eff",
    title="effective sample size",
    symbol="n_eff",
    parameters=(w.M, w.K),
    assumptions=(w.INDEPENDENT,),
    conventions="1/n_eff = 1/M + 1/K + 1/(MK); below both M and K",
    source=w.SEED,
    state=lambda: M * K / (M + K + 1),
    prove=_prove_n_eff,
    axioms=(VARIANCE,),
    example={"M": "8", "K": "32"},
)
D_PARALLEL = Formula(
    id="alignment.d_parallel",
    title="directional effective dimension",
    symbol="d_parallel",
    parameters=w.LAWS,
    assumptions=_MOMENTS,
    conventions=_ONE_LAW + "; inf where Sigma mu = 0, 0 where mu = 0",
    source=w.SEED,
    state=lambda: w.ENERGY**2 / w.QUADRATIC,
    prove=_prove_dimension("quadratic"),
    axioms=(ALONE["quadratic"],),
    example={"mu": "1,0.5,0", "Sigma": "1,3,0.25"},
)
D_2 = Formula(
    id="alignment.d_2",
    title="covariance-energy effective dimension",
    symbol="d_2",
    parameters=w.LAWS,
    assumptions=_MOMENTS,
    conventions=_ONE_LAW + "; tr(Sigma^2), not (tr Sigma)^2; inf where Sigma = 0, 0 where mu = 0",
    source=w.SEED,
    state=lambda: w.ENERGY**2 / w.TRACE_SQUARED,
    prove=_prove_dimension("trace"),
    axioms=(ALONE["trace"],),
    example={"mu": "1,0.5,0", "Sigma": "1,3,0.25"},
)
D_ALIGN = Formula(
    id="alignment.d_align",
    title="effective alignment dimension",
    symbol="d_align",
    parameters=w.LAWS,
    assumptions=_MOMENTS,
    conventions=_ONE_LAW + "; the smaller of d_parallel and d_2",
    source=w.SEED,
    state=lambda: Min(w.ENERGY**2 / w.QUADRATIC, w.ENERGY**2 / w.TRACE_SQUARED),
    prove=_prove_d_align,
    axioms=tuple(ALONE.values()),
    example={"mu": "1,0.5,0", "Sigma": "1,3,0.25"},
)


def _bound_from_dimension() -> Expr:
    return 1 / (1 + M * K / (M + K + 1) * D)


BOUND_FROM_DIMENSION = Formula(
    id="alignment.bound_from_dimension",
    title="misalignment bound from a given alignment dimension",
    symbol="B_align",
    parameters=(w.DIMENSION, w.M, w.K),
    assumptions=(w.INDEPENDENT, w.SECOND_MOMENTS),
    conventions="misalignment is X <= 0; d_align = 0 gives 1, inf gives 0",
    source=w.SEED,
    state=_bound_from_dimension,
    prove=_prove_bound_from_dimension,
    axioms=(VARIANCE, CANTELLI),
    example={"d_align": "3.9", "M": "16", "K": "16"},
)
