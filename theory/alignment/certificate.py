"""A certificate from data: an upper bound on E(1 - lam X)^2 that held with probability 1 - delta, made one on Pr(X <= 0).

Theorem C is conditional on the training mean, Theorem U needs one law and no split into training and test; `lemmas` holds what
they rest on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Max, Min, Piecewise, Symbol, cancel, solve, symbols

from ..formula import DERIVED_HERE, Assumption, Axiom, Derivation, Domain, Formula, Parameter
from . import words as w
from .cantelli import E, bound_from_ratio
from .lemmas import INDEPENDENT_PILOT, SMALL_K, SMALL_M
from .moments import variance_of

__all__ = ["CERTIFICATE", "CERTIFICATE_UNCONDITIONAL"]

W = Parameter("w", "upper bound on E(1 - lam X)^2", Domain("real", low=0, infinity=True), typical=(0.05, 0.95))
M, K, m, k, bound_w = w.M.symbol, w.K.symbol, SMALL_M.symbol, SMALL_K.symbol, W.symbol

HELD_OUT = Assumption("choices_held_out", "k or m, and lam, were chosen on data that do not enter w")
UPPER = Assumption(
    "w_is_an_upper_bound", "with probability 1 - delta, w >= E(1 - lam X)^2: a kurtosis or a norm is bounded (Lemma 2)"
)

LEMMA_1 = Axiom(
    "Lemma 1",
    "w >= B = R/(1+R), R = Var X/(E X)^2, and so is Pr(X <= 0) <= B; the rival takes R itself",
    bound_from_ratio,
    lambda ratio: ratio,
)
OF_MEAN = Axiom(
    "variance of a mean",
    "a mean of k independent y has variance sigma^2/k; the rival forgets k",
    lambda variance, count: variance / count,
    lambda variance, count: variance,
)
BOTH_PARTS = Axiom(
    "two parts of the variance",
    "Var X = (1/M + 1/K) v + t/(MK), v and t in unknown ratio: R grows at most like its faster part; the rival takes the other",
    Max,
    Min,
)


def _prove_certificate(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    sigma2 = Symbol("sigma^2", positive=True)
    at_k, at_test = (
        d.step(f"R of a mean of {size}", Symbol(f"R_{size}"), known[OF_MEAN.name](sigma2, size) / E**2)
        for size in (k, K)
    )
    return _from_w(d, known, cancel(at_test / at_k))


def _prove_unconditional(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    v, trace = symbols("v t", positive=True)
    at_m = d.step("R at m, m", Symbol("R_m"), variance_of(v, v, trace, 1 / m, 1 / m) / E**2)
    at_sizes = d.step("R at M, K", Symbol("R_MK"), variance_of(v, v, trace, 1 / M, 1 / K) / E**2)
    parts = [cancel(at_sizes.expand().coeff(each) / at_m.expand().coeff(each)) for each in (v, trace)]
    return _from_w(d, known, d.step("R_MK/R_m, at most", Symbol("factor"), known[BOTH_PARTS.name](*parts)))


def _from_w(d: Derivation, known: Mapping[str, Any], growth: Expr) -> Derivation:
    cantelli, ratio = known[LEMMA_1.name], Symbol("R", positive=True)
    small = d.step("w >= B bounds R from above", Symbol("R_small"), solve(cantelli(ratio) - bound_w, ratio)[0])
    large = d.step("and so at the sizes certified", Symbol("Rh"), growth * small)
    bound = d.step("which Cantelli turns into", Symbol("Bh"), cancel(cantelli(large)))
    d.step("nothing is known where w >= 1", Symbol("Bh"), Piecewise((bound, bound_w < 1), (1, True)))
    return d


def _certificate() -> Expr:
    return Piecewise((k * bound_w / (k * bound_w + K * (1 - bound_w)), bound_w < 1), (1, True))


def _unconditional() -> Expr:
    grown = Max((1 / M + 1 / K) * m / 2, m**2 / (M * K)) * bound_w
    return Piecewise((grown / (grown + 1 - bound_w), bound_w < 1), (1, True))


_SCOPE = "Pr(X <= 0 and Bh <= b) <= max(b, delta) for b fixed beforehand; failures among certified insertions are not bounded"

CERTIFICATE = Formula(
    id="alignment.certificate",
    title="misalignment bound from a pilot sample, training mean given",
    symbol="Bh",
    parameters=(W, SMALL_K, w.K),
    assumptions=(INDEPENDENT_PILOT, HELD_OUT, UPPER),
    conventions="w is of a mean of k alignments y = mu_M . r; K test samples are certified; " + _SCOPE,
    source=DERIVED_HERE,
    state=_certificate,
    prove=_prove_certificate,
    axioms=(LEMMA_1, OF_MEAN),
    example={"w": "0.5", "k": "16", "K": "64"},
)
CERTIFICATE_UNCONDITIONAL = Formula(
    id="alignment.certificate_unconditional",
    title="misalignment bound from a sample of one law",
    symbol="Bh",
    parameters=(W, SMALL_M, w.M, w.K),
    assumptions=(w.INDEPENDENT, HELD_OUT, UPPER),
    conventions="w is of the alignment of m with m gradients; M and K samples are certified; " + _SCOPE,
    source=DERIVED_HERE,
    state=_unconditional,
    prove=_prove_unconditional,
    axioms=(LEMMA_1, BOTH_PARTS),
    example={"w": "0.5", "m": "16", "M": "64", "K": "64"},
)
