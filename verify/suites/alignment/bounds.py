"""The bounds hold on every law; the two-point law that attains them shows that they could have failed."""

from __future__ import annotations

import numpy as np

from ...claim import Case, claim
from ...controls import restated, word_replaced
from ...decide import UpperBound
from ...laws import LAWS
from .moments import _alignments

ATTAINING = {"mu": "1/2", "Sigma": "1/4", "M": "1", "K": "1"}
"""q is 0 or 1 with probability 1/2 each and M = K = 1: then Pr(X <= 0) = 3/4, and both bounds are 3/4."""

WEAK = {"mu": "1/4,1/2,1/4", "Sigma": "1,0,1/4;0,1,0;1/4,0,2", "M": "4", "K": "6"}


def two_point(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Misalignment of the attaining law: q is 0 or c, and X = 0 (misaligned: an atom at 0 counts) unless both are c."""
    chance = float(case.mu[0]) ** 2 / (float(case.mu[0]) ** 2 + float(case.Sigma[0]))
    return ~np.all(rng.random((draws, 2)) < chance, axis=1)


def _misaligned(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    return two_point(case, rng, draws) if case.label == "two_point" else _alignments(case, rng, draws) <= 0


TIGHTENED = [
    word_replaced("tr[ST]", 0),
    restated("half the variance", lambda case: 1 / (1 + 2 * (1 / case.value() - 1))),
    restated("the atom at 0 forgotten", lambda case: 0.0),
]
"""Wrong bounds that are smaller than the right one."""


def _dimension(case: Case) -> float:
    return Case("alignment.d_align", {"mu": case["mu"], "Sigma": case["Sigma"]}).value()


CASES = dict.fromkeys(LAWS, WEAK) | {"two_point": {"mu": "1/4", "Sigma": "3/16", "M": "1", "K": "1"}}


@claim(
    "alignment.bound_exact",
    rule=UpperBound(ATTAINING, two_point),
    controls=TIGHTENED,
    cases=CASES,
)
def exact_bound(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Pr(mu_M . g_K <= 0) is at most Var X/(Var X + (E X)^2)."""
    return _misaligned(case, rng, draws)


@claim(
    "alignment.bound",
    rule=UpperBound(ATTAINING, two_point),
    controls=[
        restated("1 dropped from n_eff", lambda case: 1 / (1 + case.M * case.K / (case.M + case.K) * _dimension(case))),
        restated("n_eff = the smaller of M and K", lambda case: 1 / (1 + min(case.M, case.K) * _dimension(case))),
    ],
    cases=CASES,
)
def simple_bound(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Pr(mu_M . g_K <= 0) is at most 1/(1 + n_eff d_align)."""
    return _misaligned(case, rng, draws)
