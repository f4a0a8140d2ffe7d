"""Tracy-Widom laws: the largest eigenvalue of noise, and the false-alarm rate of the threshold made from it."""

from __future__ import annotations

import math

import numpy as np

from empirics.measurement import Measurement

from ..claim import Case, claim
from ..controls import restated
from ..decide import Asymptotic
from ..derived import derivations

DERIVATIONS = [each for each in derivations("tracy_widom") if each.id.endswith(("threshold", "edge_scale"))]

SIZES = (20, 40, 80)


def _largest(rng: np.random.Generator, rows: int, columns: int) -> float:
    X = rng.standard_normal((rows, columns))
    return float(np.linalg.eigvalsh(X.T @ X)[-1])


def _rate(hits: np.ndarray) -> Measurement:
    frequency = float(hits.mean())
    return Measurement(frequency, math.sqrt(frequency * (1 - frequency) / len(hits)), unit="matrix", count=len(hits))


@claim(
    "tracy_widom.threshold",
    rule=Asymptotic(SIZES, exponent=2 / 3, draws=8000, predicted=lambda case: case.level),
    controls=[
        restated("the bare edge: it fires on noise", lambda case: 0.143),
        restated("twice the level", lambda case: 2 * case.level),
    ],
    case={"rows": "40", "columns": "20", "level": "0.05"},
    cost=15.0,
)
def false_alarm_rate(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The largest eigenvalue of noise exceeds the threshold with the stated probability, as rows and columns grow."""
    threshold = case.value(rows=str(2 * size), columns=str(size))
    return _rate(np.array([_largest(rng, 2 * size, size) > threshold for _ in range(draws)]))


@claim(
    "tracy_widom.cdf",
    rule=Asymptotic(SIZES, exponent=2 / 3, draws=8000),
    controls=[
        restated("beta = 2 for beta = 1", lambda case: case.value(beta="2")),
        restated("the upper tail", lambda case: 1 - case.value()),
    ],
    case={"s": "-1.5", "beta": "1"},
    cost=15.0,
)
def largest_eigenvalue_of_noise(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The largest eigenvalue of a square noise matrix, centred and scaled, lies below s with the stated probability."""
    from numerics.tracy_widom import centre_and_scale

    centre, scale = centre_and_scale(size, size)
    return _rate(np.array([(_largest(rng, size, size) - centre) / scale <= case.s for _ in range(draws)]))
