"""Path conditioning at random initialisation: the expected diagonal of the path Gram matrix, on networks drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from empirics.measurement import Measurement
from numerics import predict

from ..claim import Case, claim
from ..controls import restated
from ..decide import Equality
from ..derived import derivations
from .alignment.moments import sample_mean

DERIVATIONS = derivations("path")

NET = {
    "widths": "6,9,4,7,3",
    "weight_variance": "0.2,0.1,0.3,0.15",
    "bias_variance": "0.05,0.02,0.1,0",
    "biases": "all",
}


def _expected(case: Case, **overrides: Any) -> float:
    """E g of the weights of the layer that the case is labelled with."""
    value = predict("path.expected_diagonal", case.inputs | overrides).value.midpoint
    return float(value["weights"][int(case.label) - 1])


def _mean_diagonal(case: Case, rng: np.random.Generator) -> float:
    """The mean over a layer's weights of diag G of one network with uniform weights: beta_j m_k, rank one a layer.

    m_0 = 1, m_l = W^2 m_(l-1) + b^2 forward and beta_L = 1, beta_(l-1) = (W^2)' beta_l backward, squares entrywise.
    """
    widths = [int(n) for n in case["widths"].split(",")]
    weights = [float(x) for x in case["weight_variance"].split(",")]
    biases = [float(x) for x in case["bias_variance"].split(",")]
    squares = [
        3 * s * rng.uniform(-1, 1, (after, before)) ** 2
        for s, before, after in zip(weights, widths[:-1], widths[1:], strict=True)
    ]
    layer = int(case.label)
    m = np.ones(widths[0])
    for number in range(layer - 1):
        m = squares[number] @ m + 3 * biases[number] * rng.uniform(-1, 1, widths[number + 1]) ** 2
    beta = np.ones(widths[-1])
    for number in range(len(squares) - 1, layer - 1, -1):
        beta = squares[number].T @ beta
    return float(beta.mean() * m.mean())


@claim(
    "path.expected_diagonal",
    rule=Equality(spread=lambda case: 0.35 * _expected(case), predicted=_expected, least=2000, most=200_000),
    controls=[
        restated("biases left out of the incoming paths", lambda case: _expected(case, bias_variance="0,0,0,0")),
        restated("widths reversed", lambda case: _expected(case, widths="3,7,4,9,6")),
        restated(
            "a standard deviation for the variance", lambda case: _expected(case, weight_variance="0.45,0.32,0.55,0.39")
        ),
    ],
    cases={"2": NET, "4": NET},
    cost=4.0,
)
def expected_diagonal_of_weights(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The mean of diag G over a layer's weights is beta_l m_(l-1), exactly, whatever the law of the weights."""
    return sample_mean(np.array([_mean_diagonal(case, rng) for _ in range(draws)]))
