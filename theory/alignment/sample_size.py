"""Inverse problems: how many samples, or which dimension, bring the misalignment bound down to delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Piecewise, Rational, Symbol, ceiling, oo, simplify, solve, sqrt

from ..formula import DERIVED_HERE, Axiom, Derivation, Formula
from . import words as w

__all__ = ["DIMENSION_NEEDED", "SAMPLES_NEEDED", "TEST_SAMPLES_NEEDED"]

M, K = w.M.symbol, w.K.symbol
D, DELTA = w.DIMENSION.symbol, w.DELTA.symbol

BOUND = Axiom(
    "the bound",
    "Pr(X <= 0) <= 1/(1 + n_eff d) with n_eff = MK/(M+K+1); the rival drops the 1 of n_eff",
    lambda m, k, d: 1 / (1 + m * k / (m + k + 1) * d),
    lambda m, k, d: 1 / (1 + m * k / (m + k) * d),
)


def _prove(unknown: Symbol, equal: bool = False) -> Any:
    def prove(known: Mapping[str, Any]) -> Derivation:
        d = Derivation()
        bound = d.step("the bound", Symbol("B"), known[BOUND.name](M, M if equal else K, D))
        roots = [simplify(root) for root in solve(bound - DELTA, unknown)]
        # Both roots of the quadratic for M = K are real; the samples are counted by the one that is positive.
        root = next(r for r in roots if not _negative(r))
        d.step(f"B = delta, solved for {unknown}", Symbol("root"), root)
        if unknown == D:
            d.step("the bound falls with d, so the root is the least d", Symbol("d"), root)
        elif equal:
            d.step("the least integer not below it", Symbol("M"), ceiling(root))
        else:
            # B = delta has a positive root K exactly where n* = (1-delta)/(delta d) < M: K -> inf leaves n_eff = M.
            limit = (1 - DELTA) / (DELTA * D)
            d.step(
                "none exists unless the bound at K = inf is below delta",
                Symbol("K"),
                Piecewise((ceiling(root), limit < M), (oo, True)),
            )
        return d

    return prove


def _negative(root: Expr) -> bool:
    return bool(root.subs({D: 2, DELTA: Rational(1, 4), M: 10, K: 10}) < 0)


def _needed() -> Expr:
    return (1 - DELTA) / (DELTA * D)


def _samples() -> Expr:
    n = _needed()
    return ceiling(n + sqrt(n**2 + n))


def _test_samples() -> Expr:
    n = _needed()
    return Piecewise((ceiling(n * (M + 1) / (M - n)), n < M), (oo, True))


_CONVENTIONS = "the least integer whose bound is at most delta, at least 1; inf where none is"

SAMPLES_NEEDED = Formula(
    id="alignment.samples_needed",
    title="training and test samples needed, M = K",
    symbol="M",
    parameters=(w.DIMENSION, w.DELTA),
    assumptions=(w.INDEPENDENT, w.SECOND_MOMENTS),
    conventions=_CONVENTIONS,
    source=DERIVED_HERE,
    state=_samples,
    prove=_prove(M, equal=True),
    axioms=(BOUND,),
    example={"d_align": "3.9", "delta": "0.05"},
)
TEST_SAMPLES_NEEDED = Formula(
    id="alignment.test_samples_needed",
    title="test samples needed, given the training samples",
    symbol="K",
    parameters=(w.DIMENSION, w.DELTA, w.M),
    assumptions=(w.INDEPENDENT, w.SECOND_MOMENTS),
    conventions=_CONVENTIONS,
    source=DERIVED_HERE,
    state=_test_samples,
    prove=_prove(K),
    axioms=(BOUND,),
    example={"d_align": "3.9", "delta": "0.05", "M": "16"},
)
DIMENSION_NEEDED = Formula(
    id="alignment.dimension_needed",
    title="alignment dimension needed, given the samples",
    symbol="d_align",
    parameters=(w.DELTA, w.M, w.K),
    assumptions=(w.INDEPENDENT, w.SECOND_MOMENTS),
    conventions="the least dimension whose bound is at most delta: (1-delta)/(delta n_eff)",
    source=DERIVED_HERE,
    state=lambda: (1 - DELTA) / (DELTA * M * K / (M + K + 1)),
    prove=_prove(D),
    axioms=(BOUND,),
    example={"delta": "0.05", "M": "16", "K": "16"},
)
