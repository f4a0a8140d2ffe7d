"""The exact Gaussian probability: against sampling, against closed forms, and in order with every bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from empirics.measurement import Measurement
from theory import Formula

from ...claim import Case, claim
from ...controls import factor, restated, swapped
from ...decide import Equality, UpperBound
from ...laws import LAWS, alignments
from ...routes import Routes
from ...search import Evaluate, Property
from .identities import _inputs, _laws
from .moments import UNEQUAL, _alignments

SINGULAR = {
    "mu": "1,0,1/2",
    "mu_test": "1/2,1,0",
    "Sigma": "16,8,0;8,4,0;0,0,0",
    "Sigma_test": "2,0,2;0,0,0;2,0,2",
    "M": "1",
    "K": "4",
}
"""Ranges of rank one that differ, and a mean with a part that no noise touches."""


def _normal(case: Case) -> float:
    """The normal limit, Phi(-E X/sd X)."""
    mean, variance = (Case(f"alignment.{name}", case.inputs).value() for name in ("mean", "variance"))
    if not variance:
        return float(mean <= 0)
    return 0.5 * math.erfc(mean / math.sqrt(2 * variance))


def _indicator(case: Case) -> float:
    probability = case.value()
    return math.sqrt(probability * (1 - probability))


@claim(
    "alignment.gaussian",
    rule=Equality(_indicator),
    controls=[
        swapped("M", "K"),
        restated("the normal limit", _normal),
        restated("1 - probability", lambda case: 1 - case.value()),
        restated("tr[ST] forgotten: no product terms", lambda case: _without_products(case)),
    ],
    cases={"two_laws": {**UNEQUAL, "M": "1", "K": "2"}, "singular": SINGULAR},
)
def probability(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """For Gaussian gradients the misalignment probability is the contour integral's."""
    hits = np.count_nonzero(_alignments(case, rng, draws) <= 0)
    frequency = hits / draws
    return Measurement(frequency, math.sqrt(frequency * (1 - frequency) / draws), unit="draw", count=draws)


def _without_products(case: Case) -> float:
    """The law with its bilinear noise dropped is normal with variance b'Sb/M + a'Ta/K."""
    a, b = case.mu, case.mu_test
    variance = b @ case.covariance("Sigma") @ b / case.M + a @ case.covariance("Sigma_test") @ a / case.K
    return 0.5 * math.erfc(float(a @ b) / math.sqrt(2 * variance))


def _one_dimension(formula: Formula, rng: np.random.Generator) -> dict[str, Any]:
    size, variance = (f"{rng.integers(1, 33)}/16" for _ in range(2))
    return {"mu": size, "Sigma": variance, "M": str(rng.integers(1, 9)), "K": str(rng.integers(1, 9))}


@claim(
    "alignment.gaussian",
    rule=Routes(points=20, inputs=_one_dimension),
    controls=[
        restated("M + K draws in one mean", lambda case: case.value(M=case.M + case.K)),
        restated(
            "a standard deviation for the variance", lambda case: case.value(Sigma=repr(math.sqrt(case.Sigma[0])))
        ),
    ],
)
def one_dimension(case: Case, digits: int) -> Any:
    """With one dimension the probability is Phi(x) Phi(-y) + Phi(-x) Phi(y), x = sqrt(M) mu/sigma, y = sqrt(K) mu/sigma."""
    import mpmath

    with mpmath.workdps(digits + 15):
        mu, variance = (
            mpmath.mpf(case[name].split("/")[0]) / int(case[name].split("/")[1]) for name in ("mu", "Sigma")
        )
        x, y = (mpmath.sqrt(count / variance) * mu for count in (case.M, case.K))
        return mpmath.ncdf(x) * mpmath.ncdf(-y) + mpmath.ncdf(-x) * mpmath.ncdf(y)


def _two_dimensions(formula: Formula, rng: np.random.Generator) -> dict[str, Any]:
    variance, count = f"{rng.integers(4, 33)}/16", str(rng.integers(1, 9))
    mean = ",".join(f"{rng.integers(1, 17)}/16" for _ in range(2))
    return {"mu": mean, "Sigma": f"{variance},{variance}", "M": count, "K": count}


@claim(
    "alignment.gaussian",
    rule=Routes(points=20, inputs=_two_dimensions),
    controls=[factor(2), restated("d_parallel halved", lambda case: 0.5 * (2 * case.value()) ** 0.5)],
)
def two_equal_dimensions(case: Case, digits: int) -> Any:
    """With two dimensions of equal variance and M = K the probability is exp(-M d_parallel/2)/2."""
    import mpmath

    from numerics import predict

    laws = {name: case[name] for name in ("mu", "Sigma")}
    dimension = predict("alignment.d_parallel", laws, digits=digits + 10).value.midpoint
    with mpmath.workdps(digits + 15):
        return mpmath.exp(-case.M * mpmath.mpf(str(dimension)) / 2) / 2


@claim(
    "alignment.chernoff",
    rule=Property(_laws, examples=100),
    controls=[
        restated("exponent times 4", lambda case: case.value() ** 4),
        restated("the normal tail in its place", _normal),
        restated("1 - bound", lambda case: 1 - case.value()),
    ],
)
def sharper_predictions_are_ordered(evaluate: Evaluate, laws: Any, M: int, K: int) -> None:
    """For Gaussian gradients probability <= Chernoff <= Bernstein, and probability <= bound_exact."""
    inputs = _inputs(laws, min(M, 40), min(K, 40))
    names = ("gaussian", "chernoff", "bernstein", "bound_exact")
    exact, chernoff, bernstein, cantelli = (evaluate(f"alignment.{name}", **inputs) for name in names)
    slack = 1 + 1e-9
    assert exact <= chernoff * slack, f"probability {exact}, Chernoff {chernoff}"
    assert chernoff <= bernstein * slack, f"Chernoff {chernoff}, Bernstein {bernstein}"
    assert exact <= cantelli * slack, f"probability {exact}, bound_exact {cantelli}"


STRONG = {"mu": "1,1/2,1", "Sigma": "1,0,1/4;0,1,0;1/4,0,2", "M": "4", "K": "6"}


def _sub_gaussian(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    law = (case.mu, case.covariance("Sigma"))
    return alignments(LAWS[case.label], rng, draws, case.M, case.K, law, law) <= 0


SHARP = {
    "draws": 20_000,
    "attaining": STRONG,
    "attained": lambda case, rng, draws: _alignments(case, rng, draws) <= 0,
    "probability": lambda case: Case("alignment.gaussian", case.inputs).value(),
}
"""No law attains these bounds: the controls must be so tight that Gaussian gradients exceed them."""


@claim(
    "alignment.chernoff",
    rule=UpperBound(**SHARP),
    controls=[
        restated("exponent times 4", lambda case: case.value() ** 4),
        restated("exponent times 8", lambda case: case.value() ** 8),
    ],
    cases={"gaussian": STRONG, "rademacher": STRONG},
)
def chernoff_bound(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    """For sub-Gaussian gradients Pr(mu_M . g_K <= 0) is at most the least of exp K(s) over s < 0."""
    return _sub_gaussian(case, rng, draws)


@claim(
    "alignment.bernstein",
    rule=UpperBound(**SHARP),
    controls=[
        restated("exponent times 6", lambda case: case.value() ** 6),
        restated("exponent times 8", lambda case: case.value() ** 8),
    ],
    cases={"gaussian": STRONG, "rademacher": STRONG},
)
def bernstein_bound(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    """For sub-Gaussian gradients Pr(mu_M . g_K <= 0) is at most exp(-E^2/(2(V + D E)))."""
    return _sub_gaussian(case, rng, draws)
