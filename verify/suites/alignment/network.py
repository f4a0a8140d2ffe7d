"""The certificate on a trained network: a pre-norm residual perceptron on handwritten digits, cut in the middle.

A pool of held-out activation gradients is captured once. Misalignment is measured by drawing disjoint training and test
subsets from the pool; what is exactly predictable is the law of that resampling, whose mean and variance are the pool's
own (the finite-pool identity), and for which Cantelli's inequality holds as it stands.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from empirics.measurement import Measurement

from ...claim import REPORTED, Case, claim
from ...controls import restated
from ...decide import Equality, UpperBound
from .bounds import ATTAINING, TIGHTENED, two_point

WIDTH, SEED, STEPS = 64, 0, 12
BATCHES = 32
BUDGETS = (1, 4, 16, 64, 256)


@cache
def pool() -> Any:
    """The gradients (n, d) of the held-out digits at the middle of the network, in float64."""
    import torch

    from empirics.alignment import capture_activation_gradients
    from empirics.networks.digits import cross_entropy_sum, trained_on_digits

    torch.set_num_threads(1)
    trained = trained_on_digits(WIDTH, SEED, STEPS)
    gradients = capture_activation_gradients(trained.network, trained.boundary, trained.held_out, cross_entropy_sum)
    return gradients.to(torch.float64)


@cache
def sums() -> Any:
    """The pool's U-statistics."""
    from empirics.alignment.moments import gram_rows

    return gram_rows(pool()).sums()


def _resampled(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    from empirics.alignment import resampled_misalignment

    return resampled_misalignment(pool(), case.M, case.K, draws, int(rng.integers(2**62)))


def _budget(M: int, K: int | None = None) -> dict[str, str]:
    return {"M": str(M), "K": str(M if K is None else K)}


def _pool_variance(case: Case) -> float:
    return float(sums().pool_variance(case.M, case.K))


def _independent_variance(case: Case) -> float:
    return float(sums().variance(case.M, case.K))


def _plug_in_variance(case: Case) -> float:
    q = pool().numpy()
    mean, covariance = q.mean(axis=0), np.cov(q.T)
    over = 1 / case.M + 1 / case.K
    return float(over * mean @ covariance @ mean + np.sum(covariance**2) / (case.M * case.K))


@claim(
    "alignment.variance",
    rule=Equality(
        spread=lambda case: math.sqrt(4) * _pool_variance(case), predicted=_pool_variance, least=6400, most=200_000
    ),
    controls=[
        restated("independent draws: the pool's correction dropped", _independent_variance),
        restated("plug-in for U-statistics", _plug_in_variance),
        restated(
            "tr Sigma^2 dropped", lambda case: _pool_variance(case) - float(sums().trace_squared) / (case.M * case.K)
        ),
        restated("times 2", lambda case: 2 * _pool_variance(case)),
    ],
    cases={"256": _budget(256), "512": _budget(512)},
    cost=4.0,
)
def pool_variance(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """On a trained network the variance of mu_M . g_K over disjoint subsets is the finite-pool identity's."""
    count = max(2, draws // BATCHES)
    each = np.array([_resampled(case, rng, count).settings["variance"] for _ in range(BATCHES)]) * count / (count - 1)
    error = float(each.std(ddof=1) / math.sqrt(BATCHES))
    return Measurement(float(each.mean()), error, unit="batch", count=BATCHES)


def _pool_bound(M: int, K: int) -> float:
    variance, mean = float(sums().pool_variance(M, K)), float(sums().mean_squared)
    return variance / (variance + mean**2)


@cache
def gaussian_prediction(M: int, K: int) -> float:
    """The exact Gaussian probability with the sample covariance, the sample mean shrunk to the unbiased ||mu||^2."""
    from numerics import predict

    q = pool().numpy()
    mean = q.mean(axis=0)
    scale = np.abs(mean).max()  # Sigma and mu in units of the mean's largest entry: the probability does not change
    shrunk = mean / scale * math.sqrt(max(float(sums().mean_squared), 0.0) / float(mean @ mean))
    covariance = np.cov(q.T) / scale**2
    return float(
        predict("alignment.gaussian", {"mu": shrunk, "Sigma": (covariance + covariance.T) / 2, "M": M, "K": K})
    )


@claim(
    "alignment.bound_exact",
    rule=UpperBound(ATTAINING, two_point, predicted=lambda case: _pool_bound(case.M, case.K)),
    controls=TIGHTENED,
    cases={str(M): _budget(M) for M in BUDGETS},
    cost=3.0,
)
def misalignment_is_below_the_bound(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """On a trained network the measured misalignment is at most Cantelli's bound from the pool's mean and variance."""
    return _resampled(case, rng, draws)


def _curve(rng: np.random.Generator, draws: int) -> dict[str, Any]:
    """Measured misalignment over the budgets beside every prediction, for the report."""
    seen = [_resampled(Case("alignment.n_eff", _budget(M)), rng, draws) for M in BUDGETS]
    dimension = min(float(sums().parallel), float(sums().mean_fourth / sums().trace_squared))
    return {
        "x": list(BUDGETS),
        "measured": [each.estimate for each in seen],
        "error": [each.standard_error for each in seen],
        "predicted": [gaussian_prediction(M, M) for M in BUDGETS],
        "label": "exact Gaussian",
        "curves": {
            "bound_exact of the pool": [_pool_bound(M, M) for M in BUDGETS],
            "bound, estimated d_align": [1 / (1 + M * M / (2 * M + 1) * dimension) for M in BUDGETS],
        },
        "xlabel": "M = K, training and test samples",
        "ylabel": "misalignment probability",
        "log": "x",
    }


@claim(
    "alignment.bound_exact",
    rule=Equality(draws=20_000, predicted=lambda case: _pool_bound(case.M, case.K)),
    controls=[
        restated("no misalignment at all", lambda case: 0.0),
        restated("a coin", lambda case: 0.5),
    ],
    case=_budget(64),
    owner=REPORTED,
    cost=4.0,
)
def bound_tracks_misalignment_closely(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The seed says that the certificate closely tracks the measured misalignment: taken at its word, they are equal."""
    seen = _resampled(case, rng, draws)
    return replace(seen, settings={"series": _curve(rng, 4000)})


@claim(
    "alignment.gaussian",
    rule=Equality(draws=20_000, predicted=lambda case: gaussian_prediction(case.M, case.K)),
    controls=[
        restated("no misalignment at all", lambda case: 0.0),
        restated("the bound", lambda case: _pool_bound(case.M, case.K)),
    ],
    cases={"16": _budget(16), "64": _budget(64)},
    owner=REPORTED,
    cost=4.0,
)
def gaussian_probability_is_the_measured_one(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The exact probability for Gaussian gradients with the pool's mean and covariance is the misalignment measured."""
    return _resampled(case, rng, draws)
