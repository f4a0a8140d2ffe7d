"""The estimators are unbiased where the plug-in is not, on a law with heavy tails and few samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from empirics.measurement import Measurement

from ...claim import Case, claim
from ...controls import factor, restated
from ...decide import Equality
from ...laws import LAWS, root
from .moments import sample_mean

POOL = 8
CASE = {"mu": "1/2,1/4,0,1/2", "Sigma": "1,0,1/2,0;0,2,0,0;1/2,0,1,1/4;0,0,1/4,3"}
CASES = {"student": CASE, "exponential": CASE}


def _words(case: Case) -> tuple[np.ndarray, np.ndarray, float, float, float]:
    mu, Sigma = case.mu, case.covariance("Sigma")
    return mu, Sigma, float(mu @ mu), float(mu @ Sigma @ mu), float(np.sum(Sigma * Sigma))


def _estimates(case: Case, rng: np.random.Generator, draws: int, name: str) -> Measurement:
    """The U-statistic `name` of `draws` pools of 8 gradients each."""
    import torch

    from empirics.alignment.moments import gram_rows

    mu, Sigma, *_ = _words(case)
    pools = torch.from_numpy(LAWS[case.label](mu, root(Sigma), rng, (draws, POOL)))
    return sample_mean(np.array([float(getattr(gram_rows(pool).sums(), name)) for pool in pools]))


def _spread(target: Callable[[Case], float]) -> Callable[[Case], float]:
    # One pool of 8 knows these words to a few times their size; 6 is generous, and only plans the draws.
    return lambda case: 6 * target(case)


@claim(
    "alignment.mean",
    rule=Equality(_spread(lambda case: _words(case)[2]), predicted=lambda case: _words(case)[2], most=40_000),
    controls=[
        restated(
            "plug-in: ||m||^2 has tr Sigma/n too much", lambda case: _words(case)[2] + np.trace(_words(case)[1]) / POOL
        ),
        factor(2),
    ],
    cases={label: {**CASE, "M": "1", "K": "1"} for label in CASES},
)
def mean_squared_is_unbiased(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The U-statistic of 8 gradients estimates ||mu||^2 without bias."""
    return _estimates(case, rng, draws, "mean_squared")


@claim(
    "alignment.d_parallel",
    rule=Equality(_spread(lambda case: _words(case)[3]), predicted=lambda case: _words(case)[3], most=40_000),
    controls=[
        restated("plug-in: m'Sm has tr Sigma^2/n too much", lambda case: _words(case)[3] + _words(case)[4] / POOL),
        restated("times 2", lambda case: 2 * _words(case)[3]),
    ],
    cases={"gaussian": CASE},
)
def quadratic_is_unbiased(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The U-statistic of 8 gradients estimates mu'Sigma mu without bias."""
    return _estimates(case, rng, draws, "quadratic")


def _plug_in_trace(case: Case) -> float:
    _, Sigma, *_, trace_squared = _words(case)
    return trace_squared + (np.trace(Sigma) ** 2 + trace_squared) / (POOL - 1)


@claim(
    "alignment.d_2",
    rule=Equality(_spread(lambda case: _words(case)[4]), predicted=lambda case: _words(case)[4], most=40_000),
    controls=[
        restated("plug-in: tr S^2 of the sample covariance", _plug_in_trace),
        restated("(tr Sigma)^2 for tr(Sigma^2)", lambda case: float(np.trace(_words(case)[1]) ** 2)),
    ],
    cases={"gaussian": CASE, "student": CASE},
)
def trace_squared_is_unbiased(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The U-statistic of 8 gradients estimates tr(Sigma^2) without bias."""
    return _estimates(case, rng, draws, "trace_squared")
