"""Spiked random matrices: where a planted direction shows, how well, and from which strength on."""

from __future__ import annotations

import numpy as np

from empirics.measurement import Measurement
from numerics.statement import evaluate_statement
from theory import topic

from ..claim import Case, Claim, claim
from ..controls import factor, restated
from ..decide import Asymptotic
from ..derived import derivations
from ..routes import Routes
from .alignment.moments import sample_mean

DERIVATIONS = derivations("spiked")

ROUTES = [
    Claim(
        id=f"spiked.two_routes/{each.name}",
        statement=f"{each.id} in exact arithmetic equals its symbolic statement evaluated with mpmath.",
        rule=Routes(points=20),
        measure=lambda case, digits: evaluate_statement(case.formula, case._admitted, digits=digits + 5),
        controls=(restated("ratio inverted", lambda case: case.value(ratio=repr(1 / case.ratio))), factor(2)),
        formula=each,
    )
    for each in topic("spiked")
]

SIZES = (80, 160, 320)
TALL, WIDE = {"theta": "1.5", "ratio": "1/4"}, {"theta": "2", "ratio": "2"}


def _singular(case: Case, rng: np.random.Generator, rows: int) -> tuple[float, float, float]:
    """(squared singular value, squared overlap of the left and of the right vector) of one spiked matrix."""
    columns = round(case.ratio * rows)
    u, v = (x / np.linalg.norm(x) for x in (rng.standard_normal(rows), rng.standard_normal(columns)))
    W = rng.standard_normal((rows, columns)) / np.sqrt(rows) + case.theta * np.outer(u, v)
    gram = W.T @ W if columns <= rows else W @ W.T
    values, vectors = np.linalg.eigh(gram)
    top = vectors[:, -1]
    other = (W @ top if columns <= rows else W.T @ top) / np.sqrt(values[-1])
    left, right = (other, top) if columns <= rows else (top, other)
    return float(values[-1]), float((left @ u) ** 2), float((right @ v) ** 2)


def _mean(case: Case, rng: np.random.Generator, draws: int, size: int, part: int) -> Measurement:
    return sample_mean(np.array([_singular(case, rng, size)[part] for _ in range(draws)]))


@claim(
    "spiked.location",
    rule=Asymptotic(SIZES, exponent=1.0, draws=150),
    controls=[
        restated("the edge of the bulk", lambda case: (1 + case.ratio**0.5) ** 2),
        restated("theta squared: the bulk forgotten", lambda case: case.theta**2),
        restated("the singular value itself", lambda case: case.value() ** 0.5),
    ],
    cases={"tall": TALL, "wide": WIDE},
    cost=5.0,
)
def squared_singular_value(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The largest squared singular value of noise with a spike above threshold tends to the stated location."""
    return _mean(case, rng, draws, size, 0)


@claim(
    "spiked.overlap_rows",
    rule=Asymptotic(SIZES, exponent=1.0, draws=150),
    controls=[
        restated("the other side's overlap", lambda case: Case("spiked.overlap_columns", case.inputs).value()),
        restated("the overlap, not squared", lambda case: case.value() ** 0.5),
    ],
    cases={"tall": TALL, "wide": WIDE},
    cost=5.0,
)
def squared_overlap_of_rows(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The squared overlap of the left singular vector with the spike's tends to the stated one."""
    return _mean(case, rng, draws, size, 1)


@claim(
    "spiked.overlap_columns",
    rule=Asymptotic(SIZES, exponent=1.0, draws=150),
    controls=[
        restated("the other side's overlap", lambda case: Case("spiked.overlap_rows", case.inputs).value()),
        restated("the overlap, not squared", lambda case: case.value() ** 0.5),
    ],
    cases={"tall": TALL, "wide": WIDE},
    cost=5.0,
)
def squared_overlap_of_columns(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The squared overlap of the right singular vector with the spike's tends to the stated one."""
    return _mean(case, rng, draws, size, 2)


@claim(
    "spiked.covariance_location",
    rule=Asymptotic(SIZES, exponent=1.0, draws=150),
    controls=[
        restated("the population eigenvalue: no bias", lambda case: case.ell),
        restated("the edge of the bulk", lambda case: (1 + case.ratio**0.5) ** 2),
        restated("ratio inverted", lambda case: case.value(ratio=repr(1 / case.ratio))),
    ],
    cases={"half": {"ell": "4", "ratio": "1/2"}, "double": {"ell": "6", "ratio": "2"}},
    cost=5.0,
)
def sample_eigenvalue(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The largest sample eigenvalue under one population eigenvalue above threshold tends to the stated location."""
    columns = round(case.ratio * size)
    scale = np.ones(columns)
    scale[0] = np.sqrt(case.ell)
    tops = []
    for _ in range(draws):
        X = rng.standard_normal((size, columns)) * scale
        gram = X.T @ X if columns <= size else X @ X.T
        tops.append(np.linalg.eigvalsh(gram)[-1] / size)
    return sample_mean(np.array(tops))
