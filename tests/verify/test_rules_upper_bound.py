"""The betting e-process: its value by a second route, that it is a supermartingale, its size under looking, its power."""

import json
import math

import mpmath
import numpy as np
import pytest
from bands import band
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln
from scipy.stats import binom

from theory import InputError
from verify.rules import Verdict, bernoulli_draws_for, log_e_value, upper_bound

BATCHES = 20
SIZE = 50
LOOKS = SIZE * np.arange(1, BATCHES + 1)


@pytest.mark.parametrize(
    ("violations", "draws", "bound"),
    [(5, 10, 0.1), (1, 10, 0.1), (0, 50, 0.3), (50, 50, 0.9), (3, 1000, 1e-4), (400, 1000, 0.38), (100, 2000, 0.7)],
)
def test_the_closed_form_is_the_integral_over_bets(violations, draws, bound):
    """Kills a prior that is not normalised on (B, 1), k and n - k exchanged, and the wrong tail."""
    B, k, n = mpmath.mpf(bound), violations, draws
    peak = max(mpmath.mpf(k) / n, B)
    cuts = sorted({B, *(x for x in (peak * f for f in (0.9, 0.97, 1, 1.03, 1.1, 1.5)) if B < x < 1), mpmath.mpf(1)})
    # The bet on B itself is worth 1: quadrature relative to the best bet.
    with mpmath.workdps(30):
        best = max(k * mpmath.log(peak / B) + (n - k) * mpmath.log((1 - peak) / (1 - B)) if peak < 1 else 0, 0)

        def gain(q):
            stake = k * mpmath.log(q / B) + (n - k) * mpmath.log((1 - q) / (1 - B))
            return mpmath.exp(stake - best) / mpmath.sqrt(q * (1 - q))

        prior = mpmath.quad(lambda q: 1 / mpmath.sqrt(q * (1 - q)), [B, (1 + B) / 2, 1])
        truth = float(mpmath.log(mpmath.quad(gain, cuts) / prior) + best)
    assert log_e_value(violations, draws, bound) == pytest.approx(truth, abs=1e-9)


chances = st.floats(1e-4, 1 - 1e-4)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(0, 3000), st.floats(0, 1), chances, st.floats(0, 1))
def test_one_more_draw_gains_nothing_on_average(draws, share, bound, fraction):
    """A martingale at p = B, a supermartingale at every p below it."""
    violations = round(share * draws)
    before = log_e_value(violations, draws, bound)
    hit = math.exp(log_e_value(violations + 1, draws + 1, bound) - before)
    miss = math.exp(log_e_value(violations, draws + 1, bound) - before)
    assert bound * hit + (1 - bound) * miss == pytest.approx(1, rel=1e-8)
    p = fraction * bound
    assert p * hit + (1 - p) * miss <= 1 + 1e-8


@pytest.mark.parametrize("bound", [0.001, 0.05, 0.5, 0.97])
@pytest.mark.parametrize("draws", [1, 7, 400])
def test_the_mean_is_one_at_the_bound_and_less_below(bound, draws):
    """Exact sums over the binomial law: kills any constant factor in e."""
    counts = np.arange(draws + 1)
    log_e = np.array([log_e_value(k, draws, bound) for k in counts.tolist()])
    means = [float(np.exp(log_e + binom.logpmf(counts, draws, bound * f)).sum()) for f in (1.0, 0.8, 0.3, 0.0)]
    assert means[0] == pytest.approx(1, rel=1e-8)
    assert means == sorted(means, reverse=True)
    assert means[1] < 1


def _critical(log_e, needed):
    """At each look the least count with log e > needed, by bisection (log e rises with the count)."""

    def least(draws):
        low, high = 0, int(draws) + 1
        while low < high:
            k = (low + high) // 2
            low, high = (low, k) if log_e(k, int(draws)) > needed else (k + 1, high)
        return high

    return np.array([least(draws) for draws in LOOKS])


def _ever(rng, p, critical, runs):
    return int((rng.binomial(SIZE, p, (runs, BATCHES)).cumsum(axis=1) >= critical).any(axis=1).sum())


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("bound", [0.02, 0.3, 0.9])
def test_looking_after_every_batch_alarms_at_most_at_alpha(alpha, bound):
    runs = 100_000
    critical = _critical(lambda k, n: log_e_value(k, n, bound), -math.log(alpha))
    for p in (bound, 0.7 * bound):
        assert _ever(np.random.default_rng(1), p, critical, runs) < band(alpha, runs).stop


def test_a_binomial_test_at_every_look_would_not_keep_to_alpha():
    critical = binom.isf(0.05, LOOKS, 0.3) + 1
    assert _ever(np.random.default_rng(1), 0.3, critical, 100_000) >= band(0.05, 100_000).stop


def test_bets_below_the_bound_would_gain_under_the_claim():
    """The same mixture without its truncation: evidence against p = B, which p = B/2 provides."""

    def untruncated(k, n):
        return betaln(k + 0.5, n - k + 0.5) - math.log(math.pi) - k * math.log(0.3) - (n - k) * math.log(0.7)

    few = _few_events_needed(untruncated, -math.log(0.05))
    counts = np.random.default_rng(1).binomial(SIZE, 0.15, (1000, BATCHES)).cumsum(axis=1)
    assert (counts <= few).any(axis=1).sum() >= band(0.05, 1000).stop
    path = [log_e_value(int(k), int(n), 0.3) for k, n in zip(counts[0], LOOKS, strict=True)]
    assert max(path) < 0


def _few_events_needed(log_e, needed):
    return np.array([max([k for k in range(n * 3 // 10) if log_e(k, n) > needed], default=-1) for n in LOOKS.tolist()])


@pytest.mark.parametrize("bound", [0.02, 0.3])
def test_the_rule_is_its_critical_counts(bound):
    critical = _critical(lambda k, n: log_e_value(k, n, bound), math.log(20))
    paths = np.random.default_rng(2).binomial(SIZE, 1.2 * bound, (300, BATCHES))
    crossed = (paths.cumsum(axis=1) >= critical).any(axis=1)
    verdicts = [upper_bound(path.tolist(), [SIZE] * BATCHES, bound, 0.05).verdict for path in paths]
    assert [verdict is Verdict.refuted for verdict in verdicts] == crossed.tolist()
    assert 0 < crossed.sum() < 300


def test_a_bound_that_is_too_small_is_refuted_in_the_planned_draws():
    """Size 4e-6 and power 1 - 3.2e-5, where a bound of 1/4 meets a frequency of 0.3 and one of 1/4."""
    draws = bernoulli_draws_for(0.3, [0.25])
    sizes = [len(part) for part in np.array_split(np.arange(draws), BATCHES)]
    rng = np.random.default_rng(5)
    for p, verdict in ((0.3, Verdict.refuted), (0.25, Verdict.confirmed)):
        assert all(
            upper_bound(rng.binomial(sizes, p).tolist(), sizes, 0.25, 4e-6).verdict is verdict for _ in range(300)
        )


def test_evidence_is_cumulative_and_stays():
    decision = upper_bound([6, 4, 0], [10, 10, 1000], 0.1, 0.001)
    path = decision.details["log_e"]
    assert path == [log_e_value(6, 10, 0.1), log_e_value(10, 20, 0.1), log_e_value(10, 1020, 0.1)]
    assert path[0] < -math.log(0.001) < path[1]
    assert path[2] < 0
    assert decision.verdict is Verdict.refuted
    assert decision.statistic == path[1]
    assert decision.draws == 1020
    assert "after 20 draws" in decision.note
    json.dumps(decision.details, allow_nan=False)
    assert upper_bound([6, 4, 0], [10, 10, 1000], 0.1, math.exp(-path[1]) * 0.999).verdict is Verdict.confirmed


def test_the_limits_of_a_bound():
    assert log_e_value(1, 10**6, 0.0) == math.inf
    assert log_e_value(0, 100, 0.0) == pytest.approx(math.log(math.comb(200, 100)) - 200 * math.log(2), rel=1e-12)
    assert upper_bound([0, 1], [50, 50], 0.0, 1e-6).verdict is Verdict.refuted
    assert upper_bound([0, 0], [50, 50], 0.0, 1e-6).verdict is Verdict.confirmed
    assert log_e_value(7, 7, 1.0) == 0
    assert upper_bound([50], [50], 1.0, 0.05).verdict is Verdict.vacuous
    assert upper_bound([], [], 0.5, 0.05).verdict is Verdict.vacuous
    assert upper_bound([0], [0], 0.5, 0.05).verdict is Verdict.vacuous


def test_near_the_limits_the_general_form_meets_them():
    assert log_e_value(0, 100, 1e-14) == pytest.approx(log_e_value(0, 100, 0.0), abs=1e-5)
    # Far below the bound the best bet is on B itself: e falls like 1/n, it does not vanish.
    assert -15 < log_e_value(0, 100_000, 0.5) < -10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1], [1, 1], 0.5, 0.05), "1 counts of violations for 2 batches"),
        (([2], [1], 0.5, 0.05), "2 violations in a batch of 1"),
        (([-1], [1], 0.5, 0.05), "-1 violations"),
        (([1], [1], 1.1, 0.05), "trivial one is 1"),
        (([1], [1], -0.1, 0.05), "lies in"),
        (([1], [1], math.nan, 0.05), "lies in"),
        (([1], [1], 0.5, 0.0), "alpha"),
        (([1], [1], 0.5, 1.0), "alpha"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(InputError, match=words):
        upper_bound(*arguments)
    with pytest.raises(InputError, match="no counts"):
        log_e_value(3, 2, 0.5)


def test_the_expected_log_gain_is_the_divergence():
    """log e / n tends to KL(p, B): the bet is as good as the law allows, up to (log n)/2n."""
    p, B, n = 0.4, 0.3, 100_000
    divergence = p * math.log(p / B) + (1 - p) * math.log((1 - p) / (1 - B))
    assert log_e_value(int(p * n), n, B) == pytest.approx(n * divergence, abs=math.log(n))
