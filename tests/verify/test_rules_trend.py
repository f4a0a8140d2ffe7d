"""Exponents: coverage of the interval over seeds, the three verdicts, and the number of seeds that would do."""

import json
import math

import numpy as np
import pytest
from bands import band
from scipy.stats import t

from theory import InputError
from verify.rules import Verdict, slopes_of_logs, trend

WIDTHS = [64, 256, 1024]


def test_slopes_are_those_of_a_line_through_the_logs():
    values = np.exp(np.random.default_rng(0).standard_normal((5, 4)))
    sizes = [32, 64, 256, 300]
    expected = [np.polyfit(np.log(sizes), np.log(row), 1)[0] for row in values]
    assert slopes_of_logs(sizes, values) == pytest.approx(expected, abs=1e-12)


def test_the_field_report_on_widths():
    """Initial output ~ N^-1/2, features ~ N^0 (field report 22): exponents, not eyes."""
    initial, features = slopes_of_logs(WIDTHS, [[0.057, 0.030, 0.014], [0.622, 0.623, 0.615]])
    assert initial == pytest.approx(-0.5, abs=0.02)
    assert features == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("seeds", [4, 16])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_a_true_exponent_is_refuted_with_probability_alpha(seeds, alpha):
    """Also when the spread is understated by 2 (t interval too short): then the same test fails."""
    runs = 10_000
    slopes = -0.5 + 0.1 * np.random.default_rng(seeds).standard_normal((runs, seeds))
    means = slopes.mean(axis=1, keepdims=True)

    def refuted(data):
        return sum(trend(row, -0.5, 5.0, alpha, least=4).verdict is Verdict.refuted for row in data)

    assert refuted(slopes) in band(alpha, runs)
    assert refuted(means + (slopes - means) / 2) not in band(alpha, runs)


def test_the_interval_is_students():
    slopes = np.random.default_rng(1).standard_normal(16)
    decision = trend(slopes, 0.0, 9.0, 1e-5)
    half = t.isf(0.5e-5, 15) * slopes.std(ddof=1) / 4
    assert decision.details["interval"] == pytest.approx([slopes.mean() - half, slopes.mean() + half], rel=1e-9)
    assert decision.statistic == pytest.approx(slopes.mean())
    assert decision.draws == 16
    json.dumps(decision.details, allow_nan=False)


def _around(centre, half):
    """16 slopes whose interval at level 0.999 is centre +- half."""
    spread = half * 4 / t.isf(0.0005, 15)
    return centre + spread * np.tile([-1.0, 1.0], 8) * math.sqrt(15 / 16)


@pytest.mark.parametrize(
    ("centre", "half", "verdict"),
    [
        (-0.5, 0.4, Verdict.confirmed),
        (-0.3, 0.21, Verdict.confirmed),
        (-0.3, 0.19, Verdict.refuted),
        (-0.3, 0.31, Verdict.undecided),
        (0.0, 0.4, Verdict.refuted),
        (-1.0, 0.4, Verdict.refuted),
        (-0.25, 1.0, Verdict.undecided),
    ],
)
def test_the_three_verdicts(centre, half, verdict):
    """Claimed -1/2 against 0: the interval must hold the one and exclude the other."""
    assert trend(_around(centre, half), -0.5, 0.0, 0.001).verdict is verdict


def test_seeds_that_would_do_are_the_fewest_whose_interval_cannot_hold_both():
    decision = trend(_around(-0.25, 1.0), -0.5, 0.0, 0.001)
    spread, needed = decision.details["spread"], decision.details["seeds_needed"]

    def length(n):
        return 2 * t.isf(0.0005, n - 1) * spread / math.sqrt(n)

    assert length(needed) < 0.5 <= length(needed - 1)
    assert f"{needed} seeds would tell them apart" in decision.note


def test_too_few_seeds_say_how_many_would_do():
    for count, least, needed in ((15, 16, 16), (3, 1, 4)):
        decision = trend(np.full(count, -0.5), -0.5, 0.0, 0.001, least=least)
        assert decision.verdict is Verdict.undecided
        assert f"at least {needed} do" in decision.note
    assert trend(np.full(16, -0.5), -0.5, 0.0, 0.001).verdict is Verdict.confirmed


def test_an_exact_power_law_passes_for_all_its_rounding():
    values = [[(1 + seed) * 1e-9 * n**-0.5 for n in WIDTHS] for seed in range(16)]
    slopes = slopes_of_logs(WIDTHS, values)
    assert np.ptp(slopes) > 0
    assert trend(slopes, -0.5, 0.0, 1e-6).verdict is Verdict.confirmed
    assert trend(np.full(16, -0.5 + 1e-14), -0.5, 0.0, 1e-6).verdict is Verdict.confirmed
    assert trend(slopes, -0.5 + 1e-9, 0.0, 1e-6).verdict is Verdict.refuted


@pytest.mark.parametrize(
    ("sizes", "values", "words"),
    [
        (WIDTHS, [[1.0, 2.0]] * 3, "one row a seed"),
        (WIDTHS, [1.0, 2.0, 3.0], "one row a seed"),
        ([64, 64], [[1.0, 2.0]], "two distinct sizes"),
        (WIDTHS, [[1.0, -2.0, 3.0]], "positive"),
        (WIDTHS, [[1.0, 0.0, 3.0]], "positive"),
        (WIDTHS, [[1.0, math.nan, 3.0]], "positive"),
        ([0, 1], [[1.0, 2.0]], "positive"),
    ],
)
def test_slopes_refuse(sizes, values, words):
    with pytest.raises(InputError, match=words):
        slopes_of_logs(sizes, values)


@pytest.mark.parametrize(
    ("slopes", "claimed", "rival", "alpha", "words"),
    [
        ([math.nan] * 16, 0.5, 0.0, 0.001, "finite"),
        ([[1.0] * 16], 0.5, 0.0, 0.001, "finite"),
        ([1.0] * 16, 0.5, 0.5, 0.001, "different"),
        ([1.0] * 16, math.nan, 0.5, 0.001, "different"),
        ([1.0] * 16, 0.5, 0.0, 0.0, "alpha"),
    ],
)
def test_trends_refuse(slopes, claimed, rival, alpha, words):
    with pytest.raises(InputError, match=words):
        trend(slopes, claimed, rival, alpha)
