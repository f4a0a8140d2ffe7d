"""The Marchenko-Pastur law: derived, by two routes, and against the spectra of random matrices of growing size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from empirics.measurement import Measurement
from numerics.statement import evaluate_statement
from theory import topic

from ..claim import Case, Claim, claim
from ..controls import factor, inverse, replaced, restated
from ..decide import Asymptotic
from ..derived import derivations
from ..routes import Routes
from .alignment.moments import sample_mean


def _inverse(case: Case) -> str:
    above, _, below = case["ratio"].partition("/")
    return f"{below or 1}/{above}"


def _at_inverse_ratio(case: Case) -> Any:
    return case.value(ratio=_inverse(case))


DERIVATIONS = [each for each in derivations("mp") if each.id != "mp.derivation/quantile"]

ROUTES = [
    Claim(
        id=f"mp.two_routes/{each.name}",
        statement=f"{each.id} in ball arithmetic equals its symbolic statement evaluated with mpmath.",
        rule=Routes(points=20),
        measure=lambda case, digits: evaluate_statement(case.formula, case._admitted, digits=digits + 5),
        # The entropy has no value at an inverted ratio: the law has a mass at 0 there.
        controls=(
            factor(0.5) if each.name == "entropy" else restated("ratio inverted", _at_inverse_ratio),
            factor(2),
        ),
        formula=each,
    )
    for each in topic("mp")
    if each.name != "quantile"
]


@claim(
    "mp.quantile",
    rule=Routes(points=20, digits=(15,)),
    controls=[restated("ratio inverted", _at_inverse_ratio), factor(2)],
)
def quantile_inverts_the_distribution(case: Case, digits: int) -> Any:
    """The quantile of the distribution function's value at the quantile is the quantile; 0 within the mass at 0."""
    from numerics import predict

    here = predict("mp.quantile", case.inputs, digits=30).value.midpoint
    if not here:
        return 0
    ratio = {"ratio": case["ratio"]}
    mass = predict("mp.cdf", {"x": str(here), **ratio}, digits=40).value.midpoint
    return predict("mp.quantile", {"probability": str(mass), **ratio}, digits=digits).value.midpoint


@claim(
    "mp.cdf",
    rule=Routes(points=12, digits=(15,)),
    controls=[
        restated("the mass at 0 forgotten", lambda case: case.value() - max(0.0, 1 - 1 / case.ratio)),
        restated("ratio inverted", _at_inverse_ratio),
    ],
)
def distribution_is_the_integral_of_the_density(case: Case, digits: int) -> Any:
    """The distribution function is the mass at 0 plus the integral of the density, by quadrature."""
    import mpmath

    with mpmath.workdps(digits + 10):
        above, _, below = case["ratio"].partition("/")
        y = mpmath.mpf(int(above)) / int(below or 1)
        lower, upper = (1 - mpmath.sqrt(y)) ** 2, (1 + mpmath.sqrt(y)) ** 2
        top, _, bottom = case["x"].partition("/")
        x = mpmath.mpf(int(top)) / int(bottom or 1)
        atom = max(mpmath.mpf(0), 1 - 1 / y)
        if x <= lower:
            return atom if x >= 0 else 0
        # x = a + (b-a) sin^2 t takes the square roots off both ends.
        angle = mpmath.asin(mpmath.sqrt(min(mpmath.mpf(1), (x - lower) / (upper - lower))))

        def density(t: Any) -> Any:
            here = lower + (upper - lower) * mpmath.sin(t) ** 2
            return (upper - lower) ** 2 * mpmath.sin(2 * t) ** 2 / (4 * mpmath.pi * y * here)

        return atom + mpmath.quad(density, [0, angle])


SIZES = (40, 80, 160)


def _eigenvalues(case: Case, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Eigenvalues of X'X/n, all p of them: X has `rows` rows and ratio times as many columns, entries of variance 1."""
    columns = round(case.ratio * rows)
    X = rng.standard_normal((rows, columns)) if case.label != "signs" else 2.0 * rng.integers(0, 2, (rows, columns)) - 1
    return np.linalg.eigvalsh(X.T @ X / rows)


CASES = {"tall": {"ratio": "1/4"}, "signs": {"ratio": "1/2"}, "wide": {"ratio": "2"}}


@claim(
    "mp.cdf",
    rule=Asymptotic(SIZES, exponent=1.0, draws=300),
    controls=[
        restated("ratio inverted", _at_inverse_ratio),
        restated("the square root of x for x", lambda case: case.value(x=repr(math.sqrt(case.x)))),
        replaced("variance", 2),
    ],
    cases={name: {"x": "1.5", **each} for name, each in CASES.items()},
    cost=4.0,
)
def share_of_eigenvalues_below(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The share of a random matrix's eigenvalues below a point tends to the distribution function."""
    return sample_mean(np.array([np.mean(_eigenvalues(case, rng, size) <= case.x) for _ in range(draws)]))


@claim(
    "mp.moment",
    rule=Asymptotic(SIZES, exponent=1.0, draws=300),
    controls=[
        restated("ratio inverted", _at_inverse_ratio),
        restated("a moment further", lambda case: case.value(order=str(case.order + 1))),
    ],
    cases={name: {"order": "3", **each} for name, each in CASES.items()},
    cost=4.0,
)
def mean_power_of_eigenvalues(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The mean third power of a random matrix's eigenvalues tends to the third moment."""
    return sample_mean(np.array([np.mean(_eigenvalues(case, rng, size) ** case.order) for _ in range(draws)]))


@claim(
    "mp.log_moment",
    rule=Asymptotic(SIZES, exponent=1.0, draws=200),
    controls=[restated("ratio inverted", _at_inverse_ratio), factor(2), inverse()],
    case={"g": "3", "ratio": "1/2"},
    cost=3.0,
)
def log_determinant_of_eigenvalues(case: Case, rng: np.random.Generator, draws: int, size: int) -> Measurement:
    """The mean of log(1 + g x) over a random matrix's eigenvalues tends to the log-moment."""
    return sample_mean(np.array([np.mean(np.log1p(case.g * _eigenvalues(case, rng, size))) for _ in range(draws)]))
