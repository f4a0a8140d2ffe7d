"""The intercept of y + b N^-p: its algebra, its size with known and with estimated errors, its objections."""

import json
import math

import numpy as np
import pytest
from bands import band

from empirics.measurement import Measurement
from theory import InputError
from verify.rules import Verdict, asymptotic, draws_for, fisher_z, fit_intercept, standard_score

SIZES = (32, 64, 128, 256)
N = np.array(SIZES, dtype=float)
ERRORS = np.array([0.3, 0.1, 0.2, 0.05])


def _design(exponent):
    return np.stack([np.ones(4), N**-exponent], axis=1)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2 / 3])
def test_the_fit_solves_the_weighted_normal_equations(exponent):
    """Intercept, slope, error and chi^2 by linear algebra: kills weights 1/error, p for -p, a dropped covariance."""
    y = np.random.default_rng(0).standard_normal(4)
    X, W = _design(exponent), np.diag(ERRORS**-2)
    covariance = np.linalg.inv(X.T @ W @ X)
    beta = covariance @ X.T @ W @ y
    fit = fit_intercept(SIZES, y, ERRORS, exponent)
    assert (fit.estimate, fit.slope) == pytest.approx(tuple(beta), rel=1e-9)
    assert fit.standard_error == pytest.approx(math.sqrt(covariance[0, 0]), rel=1e-9)
    assert fit.chi2 == pytest.approx((y - X @ beta) @ W @ (y - X @ beta), rel=1e-9)
    assert fit.degrees_of_freedom == math.inf


def test_an_exact_law_is_read_off():
    fit = fit_intercept(SIZES, 2 + 3 * N**-0.5, ERRORS, 0.5)
    assert (fit.estimate, fit.slope) == pytest.approx((2, 3), rel=1e-12)
    assert fit.chi2 < 1e-20


def test_scale_and_order_do_not_matter():
    y = np.random.default_rng(1).standard_normal(4)
    fit, turned = fit_intercept(SIZES, y, ERRORS, 1), fit_intercept(SIZES[::-1], y[::-1], ERRORS[::-1], 1)
    tiny = fit_intercept(SIZES, 1e-170 * y, 1e-170 * ERRORS, 1)
    assert turned.estimate == pytest.approx(fit.estimate, rel=1e-12)
    assert tiny.estimate == pytest.approx(1e-170 * fit.estimate, rel=1e-12)
    assert tiny.standard_error == pytest.approx(1e-170 * fit.standard_error, rel=1e-12)


def test_known_errors_give_an_unbiased_intercept_with_the_stated_error_and_objections_at_their_rate():
    """A law with twice the errors, and a plain weighted mean in place of the fit, fail the same tests."""
    runs = 20_000
    y = 1 + 2 * N**-0.5 + ERRORS * np.random.default_rng(2).standard_normal((runs, 4))
    fits = [fit_intercept(SIZES, row, ERRORS, 0.5) for row in y]
    z = (np.array([fit.estimate for fit in fits]) - 1) / fits[0].standard_error
    assert abs(z.mean()) < 5 / math.sqrt(runs)
    assert abs(z.var() - 1) < 5 * math.sqrt(2 / runs)
    alarms = sum(fit.lack_of_fit >= 1.96 for fit in fits)
    assert alarms in band(0.04999579, runs)
    wrong = [fit_intercept(SIZES, row, 2 * ERRORS, 0.5) for row in y[:2000]]
    assert sum(fit.lack_of_fit >= 1.96 for fit in wrong) not in band(0.04999579, 2000)
    weights = ERRORS**-2 / np.sum(ERRORS**-2)
    assert abs((y @ weights - 1).mean()) > 0.1


def _studies(rng, runs, units, spreads, sizes=N):
    draws = 1 + 2 * sizes**-0.5 + spreads * rng.standard_normal((runs, units, len(sizes)))
    return draws.mean(axis=1), draws.std(axis=1, ddof=1) / math.sqrt(units)


@pytest.mark.parametrize("spreads", [np.ones(4), np.array([1, 0.7, 0.5, 0.35])])
def test_estimated_errors_keep_the_size_at_sixteen_units(spreads):
    """Two-sided 5 % on Student's scale. Taken as known, the same errors alarm too often."""
    runs = 4000
    corrected = known = 0
    for y, s in zip(*_studies(np.random.default_rng(3), runs, 16, spreads), strict=True):
        fit, naive = fit_intercept(SIZES, y, s, 0.5, [15] * 4), fit_intercept(SIZES, y, s, 0.5)
        seen = Measurement(fit.estimate, fit.standard_error, settings={"degrees_of_freedom": fit.degrees_of_freedom})
        corrected += abs(standard_score(seen, 1.0)) > 1.96
        known += abs(naive.estimate - 1) / naive.standard_error > 1.96
    assert corrected in band(0.04999579, runs)
    assert known not in band(0.04999579, runs)


def test_the_stated_error_is_the_scatter_of_the_intercept():
    """Eight sizes, 16 units each: without the correction for random weights the variance is a sixth too small."""
    runs, sizes = 4000, 2.0 ** np.arange(5, 13)
    studies = list(zip(*_studies(np.random.default_rng(3), runs, 16, np.ones(8), sizes), strict=True))
    corrected = [fit_intercept(sizes, y, s, 0.5, [15] * 8) for y, s in studies]
    known = [fit_intercept(sizes, y, s, 0.5) for y, s in studies]
    scatter = np.mean([(fit.estimate - 1) ** 2 for fit in corrected])
    ratios = [np.mean([fit.standard_error**2 for fit in fits]) / scatter for fits in (corrected, known)]
    assert abs(ratios[0] - 1) < 5 * math.sqrt(2 / runs)
    assert ratios[1] < 1 - 5 * math.sqrt(2 / runs)


def test_estimated_errors_by_linear_algebra():
    """Correction, Welch's degrees and the fewest degrees for the fit, from the hat matrix: no formula is shared."""
    degrees, y = np.array([3.0, 15, 15, 63]), np.array([1.3, 1.0, 1.2, 1.05])
    X, W = _design(0.5), np.diag(ERRORS**-2)
    C = np.linalg.inv(X.T @ W @ X) @ X.T @ W
    shares = (C[0] * ERRORS) ** 2 * (1 + 4 * (1 - np.diag(X @ C)) / degrees)
    fit = fit_intercept(SIZES, y, ERRORS, 0.5, degrees)
    assert fit.standard_error == pytest.approx(math.sqrt(shares.sum()), rel=1e-9)
    assert fit.degrees_of_freedom == pytest.approx(shares.sum() ** 2 / np.sum(shares**2 / degrees), rel=1e-9)
    assert fit.lack_of_fit == fisher_z(fit.chi2 / 2, 2, 3) > 0.5
    assert fit_intercept(SIZES, 1 + 2 / N, ERRORS, 1, [1e9] * 4).standard_error == pytest.approx(
        fit_intercept(SIZES, 1 + 2 / N, ERRORS, 1).standard_error, rel=1e-8
    )


def _experiment(rng, value=1.0, bias=2.0, exponent=0.5, spread=1.0, unit="replicate"):
    def measure(draws, stage):
        error = spread / math.sqrt(draws)
        noise = rng.standard_normal(4)
        return {
            n: Measurement(value + bias * n**-exponent + error * e, error, unit=unit, count=draws)
            for n, e in zip(SIZES, noise.tolist(), strict=True)
        }

    return measure


def test_a_true_limit_is_confirmed_and_one_eight_errors_off_refuted():
    spread = fit_intercept(SIZES, np.zeros(4), np.ones(4), 0.5).standard_error
    draws = draws_for(spread, 1.0, [1.1])
    rng = np.random.default_rng(4)
    right = [asymptotic(_experiment(rng), 1.0, 0.0, draws, 0.5).verdict for _ in range(500)]
    wrong = [asymptotic(_experiment(rng), 1.1, 0.0, draws, 0.5).verdict for _ in range(500)]
    lack_of_fit = band(1e-3, 500)
    assert right.count(Verdict.undecided) in lack_of_fit
    assert right.count(Verdict.refuted) == 0
    assert wrong.count(Verdict.confirmed) == 0
    assert wrong.count(Verdict.undecided) in band(2e-3, 500)


def test_the_size_left_at_the_largest_network_is_not_the_limit():
    """What "within x % at N = 256" would have taken for it lies far off."""
    decision = asymptotic(_experiment(np.random.default_rng(5)), 1 + 2 / 16, 0.0, 10**6, 0.5)
    assert decision.verdict is Verdict.refuted


def test_a_wrong_exponent_is_seen_as_lack_of_fit():
    decision = asymptotic(_experiment(np.random.default_rng(6), exponent=1.0), 1.0, 0.0, 10**8, 0.5)
    assert decision.verdict is Verdict.undecided
    assert "do not lie on y + b N^-0.5" in decision.note
    assert decision.details["fits"][0]["lack_of_fit"] > 10
    assert asymptotic(_experiment(np.random.default_rng(6), exponent=1.0), 1.0, 0.0, 10**8, 1).verdict == "confirmed"


def test_both_stages_are_kept_and_can_be_stored():
    asked = []
    source = _experiment(np.random.default_rng(7))

    def measure(draws, stage):
        asked.append((draws, stage))
        return source(draws, stage)

    decision = asymptotic(measure, 2.0, 0.0, 10_000, 0.5)
    assert asked == [(10_000, 1), (40_000, 2)]
    assert decision.draws == 50_000
    assert [fit["sizes"] for fit in decision.details["fits"]] == [list(SIZES)] * 2
    assert decision.details["fits"][1]["intercept"] == decision.details["stages"][1]["estimate"]
    assert decision.details["exponent"] == 0.5
    json.dumps(decision.details, allow_nan=False)


def test_what_allows_no_intercept_is_undecided():
    seen = _experiment(np.random.default_rng(8))(100, 1)
    two = {n: seen[n] for n in SIZES[:2]}
    hidden = seen | {64: Measurement.not_detected("replicate", 100, "no outlier left the bulk")}
    few = _experiment(np.random.default_rng(8), unit="network")(15, 1)
    for measured, words in ((two, "2 sizes"), ({}, "0 sizes"), (hidden, "no outlier left"), (few, "at least 16 do")):
        decision = asymptotic(lambda draws, stage, measured=measured: measured, 1.0, 0.0, 100, 0.5)
        assert decision.verdict is Verdict.undecided
        assert words in decision.note


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sizes": (32, 32, 64, 64)}, "three|at least 3 distinct"),
        ({"sizes": (0, 32, 64, 128)}, "distinct positive"),
        ({"sizes": SIZES[:3]}, "one estimate, error"),
        ({"exponent": 0.0}, "p > 0"),
        ({"exponent": -0.5}, "p > 0"),
        ({"standard_errors": [0.1, 0.0, 0.1, 0.1]}, "positive standard errors"),
        ({"standard_errors": [0.1, math.inf, 0.1, 0.1]}, "positive standard errors"),
        ({"estimates": [1.0, math.nan, 1.0, 1.0]}, "finite estimates"),
    ],
)
def test_refusals(change, words):
    given = {"sizes": SIZES, "estimates": np.ones(4), "standard_errors": ERRORS, "exponent": 1.0} | change
    with pytest.raises(InputError, match=words):
        fit_intercept(**given)
