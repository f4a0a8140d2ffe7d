"""Exact moments of the alignment on laws that share mean and covariance and little else."""

from __future__ import annotations

import math

import numpy as np

from empirics.measurement import Measurement

from ...claim import Case, claim
from ...controls import factor, restated, swapped, word_replaced
from ...decide import Equality
from ...laws import LAWS, alignments

UNEQUAL = {
    "mu": "1,2,-1/2",
    "mu_test": "2,1,1/4",
    "Sigma": "2,1,0;1,3,1/2;0,1/2,1",
    "Sigma_test": "1,-1/2,0;-1/2,2,1/4;0,1/4,4",
    "M": "3",
    "K": "7",
}
"""Training and test laws that do not commute, with M and K far enough apart for a swap to show."""
BATCHES = 64


def _alignments(case: Case, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Copies of mu_M . g_K under the law that the case is labelled with, Gaussian by default."""
    a, S = case.mu, case.covariance("Sigma")
    b = a if case.mu_test is None else case.mu_test
    T = S if case.Sigma_test is None else case.covariance("Sigma_test")
    return alignments(LAWS.get(case.label, LAWS["gaussian"]), rng, draws, case.M, case.K, (a, S), (b, T))


def _variance(case: Case) -> float:
    return Case("alignment.variance", case.inputs).value()


def _traces(case: Case) -> float:
    T = "Sigma" if case.Sigma_test is None else "Sigma_test"
    return float(np.trace(case.covariance("Sigma")) * np.trace(case.covariance(T)))


def sample_mean(values: np.ndarray) -> Measurement:
    """Mean with its standard error."""
    return Measurement(
        float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))), unit="replicate", count=len(values)
    )


def sample_variance(values: np.ndarray) -> Measurement:
    """Unbiased variance; its standard error from the sample's own fourth moment."""
    n, centred = len(values), values - values.mean()
    variance = float(centred @ centred / (n - 1))
    fourth = float(np.mean(centred**4))
    return Measurement(variance, math.sqrt((fourth - variance**2 * (n - 3) / (n - 1)) / n), unit="replicate", count=n)


def k_statistic(values: np.ndarray, order: int) -> Measurement:
    """Fisher's unbiased third or fourth cumulant, averaged over batches; the spread over batches gives the error."""
    batches = values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1)
    n = batches.shape[1]
    centred = batches - batches.mean(axis=1, keepdims=True)
    m2, m3, m4 = ((centred**p).mean(axis=1) for p in (2, 3, 4))
    if order == 3:
        each = n**2 * m3 / ((n - 1) * (n - 2))
    else:
        each = n**2 * ((n + 1) * m4 - 3 * (n - 1) * m2**2) / ((n - 1) * (n - 2) * (n - 3))
    error = float(each.std(ddof=1) / math.sqrt(BATCHES))
    return Measurement(
        float(each.mean()), error, unit="batch", count=BATCHES, settings={"degrees_of_freedom": BATCHES - 1}
    )


@claim(
    "alignment.mean",
    rule=Equality(lambda case: math.sqrt(_variance(case))),
    controls=[
        factor(2),
        restated("divided by the dimension", lambda case: case.value() / len(case.mu)),
        restated("||a||^2 for a'b", lambda case: case.value(mu_test=case["mu"])),
    ],
    cases=dict.fromkeys(LAWS, UNEQUAL),
)
def mean(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The mean of mu_M . g_K is a'b, whatever the law of the gradients."""
    return sample_mean(_alignments(case, rng, draws))


def _spread_of_variance(case: Case) -> float:
    # Of (X - EX)^2 for Gaussian gradients, from the formulas' own moments. The heavier laws need more draws: 3 times
    # the spread covers the kurtosis of the t law with 5 degrees of freedom.
    variance = case.value()
    fourth = Case("alignment.fourth_cumulant", case.inputs).value()
    return math.sqrt(fourth + 2 * variance**2) * (3 if case.label in ("student", "exponential") else 1)


@claim(
    "alignment.variance",
    rule=Equality(_spread_of_variance),
    controls=[
        word_replaced("tr[ST]", 0),
        word_replaced("tr[ST]", _traces, "tr S tr T for tr(ST)"),
        swapped("M", "K"),
        factor(2),
        restated("batch covariance: divided by M again", lambda case: case.value() / case.M),
    ],
    cases=dict.fromkeys(LAWS, UNEQUAL),
)
def variance(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """The variance of mu_M . g_K is b'Sb/M + a'Ta/K + tr(ST)/(MK), whatever the law of the gradients."""
    return sample_variance(_alignments(case, rng, draws))


def _scale(case: Case) -> float:
    return math.sqrt(Case("alignment.variance", case.inputs).value())


@claim(
    "alignment.third_cumulant",
    rule=Equality(lambda case: 6 * _scale(case) ** 3, least=BATCHES * 100),
    controls=[factor(2), factor(0.5), restated("divided by M K twice", lambda case: case.value() / (case.M * case.K))],
    cases={"gaussian": UNEQUAL},
)
def third_cumulant(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """For Gaussian gradients the third cumulant of mu_M . g_K is 6 b'STa/(MK)."""
    return k_statistic(_alignments(case, rng, draws), 3)


@claim(
    "alignment.fourth_cumulant",
    rule=Equality(lambda case: 30 * _scale(case) ** 4, least=BATCHES * 100),
    controls=[factor(2), factor(0.5), word_replaced("b'STSb", 0)],
    cases={"gaussian": {**UNEQUAL, "M": "2", "K": "3"}},
)
def fourth_cumulant(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """For Gaussian gradients the fourth cumulant is 12 b'STSb/(M^2 K) + 12 a'TSTa/(M K^2) + 6 tr((ST)^2)/(MK)^2."""
    return k_statistic(_alignments(case, rng, draws), 4)
