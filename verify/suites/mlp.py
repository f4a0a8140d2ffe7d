"""Two-level DMFT against networks: the loss, and the outlier of a hidden matrix, tend to the predicted ones with width."""

from __future__ import annotations

from typing import Any

import numpy as np

from empirics.measurement import Measurement
from numerics import predict

from ..claim import Case, claim
from ..controls import factor, restated
from ..decide import Asymptotic
from ..derived import derivations
from .alignment.moments import sample_mean

DERIVATIONS = [each for each in derivations("mlp") if each.id == "mlp.derivation/escape_time"]
"""The others' statements are systems over kernels; tests/theory compares them with their derivations in SymPy."""

TANH = {"t": "6", "activation": "tanh", "gram": "1", "targets": "1", "gamma0": "3", "eta0": "0.3"}
WIDTHS = (100, 200, 400)


def _runs(case: Case, rng: np.random.Generator, draws: int, width: int) -> list[Any]:
    from empirics.mlp import train_perceptron
    from numerics.mlp import Problem

    problem = Problem(
        case["activation"],
        gram=case.gram,
        targets=case.targets,
        gamma0=case.gamma0,
        eta0=case.eta0,
        steps=case.t,
        nu=case.nu,
        sigma=case.sigma,
    )
    seeds = rng.choice(2**31, draws, replace=False)
    return [train_perceptron(problem, width, int(seed), top=1) for seed in seeds]


def _of_networks(values: list[float]) -> Measurement:
    seen = sample_mean(np.array(values))
    return Measurement(seen.estimate, seen.standard_error, unit="network", count=len(values))


@claim(
    "mlp.loss",
    rule=Asymptotic(WIDTHS, exponent=1.0, draws=64),
    controls=[
        factor(2),
        restated("lazy: gamma0 tends to 0", lambda case: case.value(gamma0="0.01")),
        restated("a step less", lambda case: case.value(t=str(case.t - 1))),
    ],
    case=TANH,
    cost=20.0,
)
def loss(case: Case, rng: np.random.Generator, draws: int, width: int) -> Measurement:
    """After a few steps the loss of a wide perceptron in muP is the one that the response equations give."""
    return _of_networks([float(run.losses[case.t]) for run in _runs(case, rng, draws, width)])


def _top(case: Case, **overrides: Any) -> float:
    return float(predict("mlp.outliers", case.inputs | overrides).value.midpoint[0])


@claim(
    "mlp.outliers",
    rule=Asymptotic(WIDTHS, exponent=1.0, draws=64, predicted=_top),
    controls=[
        restated("the edge of the bulk", lambda case: 2.0),
        restated("a spike independent of the initial weights", lambda case: _top(case, independent="true")),
        restated("a step less", lambda case: _top(case, t=str(case.t - 1))),
    ],
    case=TANH,
    cost=20.0,
)
def outlier(case: Case, rng: np.random.Generator, draws: int, width: int) -> Measurement:
    """The largest singular value of the hidden matrix leaves the bulk for the predicted place."""
    return _of_networks([float(run.singular_values[0][case.t][0]) for run in _runs(case, rng, draws, width)])


@claim(
    "mlp.outliers",
    rule=Asymptotic((60, 120, 240), exponent=1.0, draws=64, predicted=_top),
    controls=[
        restated("sigma for sigma^2", lambda case: _top(case, sigma=repr(case.sigma**2))),
        restated("nu inverted", lambda case: _top(case, nu=repr(1 / case.nu))),
        restated("a spike independent of the initial weights", lambda case: _top(case, independent="true")),
    ],
    case=TANH | {"nu": "2", "sigma": "0.8"},
    cost=25.0,
    level="full",
)
def outlier_of_a_rectangular_matrix(case: Case, rng: np.random.Generator, draws: int, width: int) -> Measurement:
    """The same with twice as many rows as columns and entries of variance sigma^2."""
    return _of_networks([float(run.singular_values[0][case.t][0]) for run in _runs(case, rng, draws, width)])
