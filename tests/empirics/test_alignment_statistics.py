"""Estimates, jackknife, refusals: conventions pinned by laws whose truth is known, formulas by brute force."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
from scipy.special import stdtrit

from empirics.alignment import AlignmentStatistics, alignment_statistics, forecast
from empirics.measurement import Measurement
from theory import InputError

NAMES = ("mean_squared", "quadratic", "trace_squared", "trace", "d_parallel", "d_2", "d_align", "noise_scale")


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def draws(n, mean, deviations, seed=0):
    """Gaussian gradients with the given means and standard deviations."""
    generator = torch.Generator().manual_seed(seed)
    mean, deviations = torch.as_tensor(mean, dtype=torch.float64), torch.as_tensor(deviations, dtype=torch.float64)
    return mean + torch.randn(n, len(mean), generator=generator, dtype=torch.float64) * deviations


MEAN, DEVIATIONS = [1.0, 0.5, 0.0], [1.0, 3**0.5, 0.5]


def test_conventions_on_a_known_law():
    # mu = (1, 1/2, 0), Sigma = diag(1, 3, 1/4): ||mu||^2 = 5/4, mu'Sigma mu = 7/4, tr Sigma^2 = 161/16, trace 17/4.
    s = alignment_statistics(draws(100_000, MEAN, DEVIATIONS), unit="image")
    truth = {
        "mean_squared": 5 / 4,
        "quadratic": 7 / 4,
        "trace_squared": 161 / 16,
        "trace": 17 / 4,
        "d_parallel": (25 / 16) / (7 / 4),
        "d_2": (25 / 16) / (161 / 16),
        "d_align": 25 / 161,
        "noise_scale": (17 / 4) / (5 / 4),
    }
    for name, value in truth.items():
        measured = getattr(s, name)
        assert abs(measured.z(value)) < 3.5, (name, measured)
        # (tr Sigma)^2, a factor 2, an inverse: all of them far outside.
        for mutant in (2 * value, value / 2, 1 / value, value**2):
            if mutant != pytest.approx(value, rel=0.2):
                assert abs(measured.z(mutant)) > 8, (name, mutant)
        assert (measured.unit, measured.count) == ("image", 100_000)
    M, K = 4, 9
    ratio = s.variance_ratio(M, K)
    assert abs(ratio.z(((1 / M + 1 / K) * 7 / 4 + 161 / 16 / (M * K)) / (25 / 16))) < 3.5
    assert ratio.interval[0] < ratio.estimate < ratio.interval[1]


def test_cross_sample_conventions():
    a, S, b, T = [1.0, 2.0], [2.0, 0.5], [2.0, 0.5], [0.5, 3.0]  # standard deviations
    s = alignment_statistics(draws(40_000, a, S), draws(50_000, b, T, seed=1))
    bSb, aTa = 4 * 4 + 0.25 * 0.25, 0.25 + 4 * 9
    trace = 4 * 0.25 + 0.25 * 9
    truth = {
        "mean_squared": 3.0,
        "quadratic": bSb,
        "quadratic_test": aTa,
        "trace_squared": trace,
        "d_parallel": 9 / aTa,
        "d_2": 9 / trace,
        "d_align": 9 / aTa,
    }
    for name, value in truth.items():
        assert abs(getattr(s, name).z(value)) < 3.5, name
    assert abs(s.quadratic.z(aTa)) > 8  # swapped sides
    assert (s.n, s.n_test, s.trace, s.noise_scale) == (40_000, 50_000, None, None)
    M, K = 3, 7
    assert abs(s.variance_ratio(M, K).z((bSb / M + aTa / K + trace / (M * K)) / 9)) < 3.5
    assert abs(s.variance_ratio(K, M).z((bSb / M + aTa / K + trace / (M * K)) / 9)) > 8


def test_jackknife_by_deletion():
    q = draws(40, [3.0, 1.5, 0.0], DEVIATIONS)
    s = alignment_statistics(q, level=0.9)
    n = len(q)
    fewer = [alignment_statistics(torch.cat([q[:i], q[i + 1 :]])) for i in range(n)]
    quantile = float(stdtrit(n - 1, 0.95))
    for name in NAMES:
        logarithmic = name.startswith("d_") or name == "noise_scale"
        scale = math.log if logarithmic else float
        full = scale(getattr(s, name).estimate)
        pseudo = np.array([n * full - (n - 1) * scale(getattr(each, name).estimate) for each in fewer])
        error = pseudo.std(ddof=1) / n**0.5
        ends = pseudo.mean() - quantile * error, pseudo.mean() + quantile * error
        measured = getattr(s, name)
        if logarithmic:
            ends = tuple(map(math.exp, ends))
            error *= measured.estimate
        assert measured.standard_error == pytest.approx(error, rel=1e-9), name
        assert measured.interval == pytest.approx(ends, rel=1e-9), name
        assert measured.level == 0.9


def test_cross_jackknife_by_deletion():
    q, p = draws(20, [2.0, 2.0], [1.0, 0.5]), draws(25, [2.5, 1.0], [0.5, 0.7], seed=1)
    s = alignment_statistics(q, p)
    centre, variance = math.log(s.d_align.estimate), 0.0
    full = centre
    for pool, remade in (
        (q, lambda part: alignment_statistics(part, p)),
        (p, lambda part: alignment_statistics(q, part)),
    ):
        n = len(pool)
        values = [math.log(remade(torch.cat([pool[:i], pool[i + 1 :]])).d_align.estimate) for i in range(n)]
        pseudo = n * full - (n - 1) * np.array(values)
        centre += pseudo.mean() - full
        variance += pseudo.var(ddof=1) / n
    half = float(stdtrit(19, 0.975)) * variance**0.5
    assert s.d_align.interval == pytest.approx((math.exp(centre - half), math.exp(centre + half)), rel=1e-9)


def test_routes_agree():
    for n, d in ((40, 7), (40, 100)):
        q, p = draws(n, [0.5] * d, [1.0] * d), draws(n + 3, [0.4] * d, [1.5] * d, seed=1)
        for test in (None, p):
            a, b = (alignment_statistics(q, test, route=route) for route in ("gram", "moments"))
            for name in ("mean_squared", "quadratic", "trace_squared", "d_align"):
                assert getattr(a, name).estimate == pytest.approx(getattr(b, name).estimate, rel=1e-11)
                assert getattr(a, name).standard_error == pytest.approx(getattr(b, name).standard_error, rel=1e-9)
            assert (a.forecast.route, b.forecast.route) == ("gram", "moments")


def test_scaling_rotation_and_padding():
    q = draws(200, MEAN, DEVIATIONS)
    s = alignment_statistics(q)
    rotation = torch.linalg.qr(draws(3, [0.0] * 3, [1.0] * 3, seed=2)).Q
    for other in (q * 2.0**40, q * 2.0**-40, q @ rotation, torch.cat([q, torch.zeros(200, 4)], 1)):
        t = alignment_statistics(other)
        for name in ("d_parallel", "d_2", "d_align", "noise_scale"):
            assert getattr(t, name).estimate == pytest.approx(getattr(s, name).estimate, rel=1e-10)
            assert getattr(t, name).interval == pytest.approx(getattr(s, name).interval, rel=1e-8)
    t = alignment_statistics(q * 2.0**40)
    for name, power in (("mean_squared", 80), ("trace", 80), ("quadratic", 160), ("trace_squared", 160)):
        assert getattr(t, name).estimate == getattr(s, name).estimate * 2.0**power
        assert getattr(t, name).standard_error == getattr(s, name).standard_error * 2.0**power


def test_gradients_as_small_as_a_mean_loss_makes_them():
    # |q|^4 of these underflows in float32, where 1e-12 q is still exact enough.
    q = draws(300, MEAN, DEVIATIONS).to(torch.float32)
    s, t = alignment_statistics(q), alignment_statistics(q * 2.0**-40)
    assert t.d_align.estimate == s.d_align.estimate
    assert float((q * 2.0**-40).pow(4).max()) == 0


def test_not_detected():
    zero_mean = [alignment_statistics(draws(50, [0.0] * 20, [1.0] * 20, seed)) for seed in range(100)]
    detected = [s for s in zero_mean if s.detected]
    assert len(detected) <= 10  # about 4 % at 2 standard deviations, skew included
    for s in zero_mean:
        if not s.detected:
            assert s.d_align.interval is None
            assert s.d_align.note
            assert not s.variance_ratio(8, 8).detected
            with pytest.raises(ValueError, match="no number to read"):
                float(s.d_align)
        # The numerator is a measurement of its own and keeps its interval, below 0 or not.
        assert s.mean_squared.detected
        assert s.mean_squared.interval[0] < s.mean_squared.estimate < s.mean_squared.interval[1]
    assert any(s.mean_squared.estimate < 0 for s in zero_mean)
    assert "standard deviations" in next(s for s in zero_mean if not s.detected).d_align.note


def with_signal(size):
    """200 gradients in the plane whose ||mu||^2 estimate is `size` of its own standard deviations."""
    q = draws(200, [0.0, 0.0], [1.0, 1.0])
    q = q - q.mean(0)
    trace = float(q.square().sum()) / 199
    low, high = 0.0, 1.0
    while high - low > 1e-9:  # U1 = |m|^2 - trace/n for centred q shifted by m
        middle = (low + high) / 2
        s = alignment_statistics(q + torch.tensor([(trace / 200 + middle) ** 0.5, 0.0]))
        reached = s.mean_squared.estimate >= size * float(s.jackknife.sums.mean_variance()) ** 0.5 * unit_of(s)
        low, high = (low, middle) if reached else (middle, high)
    return q + torch.tensor([(trace / 200 + high) ** 0.5, 0.0])


def unit_of(s):
    return s.mean_squared.estimate / float(s.jackknife.sums.mean_squared)


def test_a_signal_takes_two_standard_deviations_and_an_interval_above_zero():
    below, above = with_signal(1.99), with_signal(2.01)
    for level in (0.5, 0.99):
        assert "standard deviations" in alignment_statistics(below, level=level).d_align.note
    # Half of the intervals are too narrow to meet 0 here, one at 99 % is not.
    s = alignment_statistics(above, level=0.5)
    assert s.detected
    assert s.mean_squared.interval[0] > 0
    s = alignment_statistics(above, level=0.99)
    assert s.d_align.note == "the 0.99 interval of ||mu||^2 meets 0"
    assert s.mean_squared.interval[0] < 0


def test_zero_gradients_of_a_zero_head():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s = alignment_statistics(torch.zeros(10, 3))
        text = str(s)
    assert not s.detected
    assert (s.mean_squared.estimate, s.kurtosis, s.distinct_units) == (0.0, None, 0)
    assert "nan" not in text
    json.dumps(s.to_dict())


def test_noise_that_is_not_resolved_is_not_a_finite_dimension():
    # Identical gradients: d = inf cannot be measured, and is not reported as a number.
    s = alignment_statistics(torch.ones(10, 2))
    assert s.mean_squared.estimate == 2
    assert not s.d_align.detected
    assert "not resolved" in s.d_align.note


def test_four_samples_give_estimates_without_intervals():
    s = alignment_statistics(draws(4, MEAN, [0.1] * 3))
    assert not s.mean_squared.detected
    assert s.mean_squared.estimate == pytest.approx(1.25, rel=0.3)
    assert "at least 5" in s.mean_squared.note
    assert alignment_statistics(draws(5, MEAN, [0.1] * 3)).mean_squared.interval is not None


def test_coverage_of_the_interval():
    # d_parallel = .3 m^2/..: mu = m e_1, Sigma = I_50: d_parallel = m^2 = 3, d_2 = m^4/50 = .18; n = 100, nominal 90 %.
    truth, hits, half_hits, runs = 9 / 50, 0, 0, 300
    for seed in range(runs):
        s = alignment_statistics(draws(100, [3**0.5] + [0.0] * 49, [1.0] * 50, seed), level=0.9)
        low, high = map(math.log, s.d_align.interval)
        middle, half = (low + high) / 2, (high - low) / 2
        gap = abs(math.log(truth) - middle)
        hits += gap <= half
        half_hits += gap <= half / 2
    spread = 4 * (0.9 * 0.1 / runs) ** 0.5
    assert abs(hits / runs - 0.9) < spread
    assert half_hits / runs < 0.9 - spread  # an interval of half the width is caught


def test_kurtosis_of_the_squared_norm():
    # |q|^2 of one Gaussian is chi-squared with 1 degree of freedom: excess kurtosis 12; of 4 of them, 12/4.
    assert alignment_statistics(draws(400_000, [0.0], [1.0])).kurtosis == pytest.approx(12, rel=0.1)
    assert alignment_statistics(draws(400_000, [0.0] * 4, [1.0] * 4)).kurtosis == pytest.approx(3, rel=0.1)
    assert alignment_statistics(torch.tensor([[1.0], [-1.0], [1.0], [1.0], [1.0]])).kurtosis is None


def test_blocks():
    q = draws(64, MEAN, DEVIATIONS)
    s = alignment_statistics(q, block=8, level=0.9)
    values = np.array([alignment_statistics(q[k : k + 8]).quadratic.estimate for k in range(0, 64, 8)])
    half = float(stdtrit(7, 0.95)) * values.std(ddof=1) / 8**0.5
    assert s.quadratic.estimate == pytest.approx(values.mean(), rel=1e-12)
    assert s.quadratic.interval == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-9)
    assert (s.quadratic.unit, s.quadratic.count) == ("block of 8 samples", 8)
    assert s.forecast.route == "blocks"


def test_blocks_are_unbiased_where_the_ratio_of_a_block_is_not():
    s = alignment_statistics(draws(40_000, MEAN, DEVIATIONS), block=8)
    assert abs(s.d_align.z(25 / 161)) < 3.5
    assert abs(s.trace_squared.z(161 / 16)) < 3.5


def test_distinct_units():
    q = draws(50, [0.3] * 6, [1.0] * 6)
    assert alignment_statistics(q).distinct_units == 6
    assert alignment_statistics(q).notes == ()
    twins = torch.cat([q, q[:, :2], q[:, :1] * (1 + 1e-15), torch.zeros(50, 1)], 1)
    s = alignment_statistics(twins)
    assert s.distinct_units == 6
    assert "4 of 10 units" in s.notes[0]
    assert torch.linalg.matrix_rank(torch.cov(twins.T)) <= s.distinct_units
    nearly = torch.cat([q, q[:, :1] + 1e-6 * q[:, 1:2]], 1)
    assert alignment_statistics(nearly).distinct_units == 7
    assert alignment_statistics(nearly.to(torch.bfloat16).double().to(torch.bfloat16)).distinct_units == 6


def test_many_units_are_compared_in_tiles():
    q = draws(6, [0.3] * 700, [1.0] * 700)
    assert alignment_statistics(torch.cat([q, q], 1)).distinct_units == 700


def test_half_precision_that_swamps_the_mean_is_told():
    # ||mu||^2 = 3e-4 beside E|q|^2 = 10: below eps^2 = 6e-5 of it in bfloat16, far above in float32.
    n = 20_000
    q = draws(n, [0.0] * 10, [1.0] * 10)
    q = q - q.mean(0) + torch.tensor([(3e-4 + 10 / n) ** 0.5] + [0.0] * 9)
    assert any("eps^2" in note for note in alignment_statistics(q.to(torch.bfloat16)).notes)
    assert not any("eps^2" in note for note in alignment_statistics(q.to(torch.float32)).notes)


def test_forecast():
    assert forecast(1000, 50).route == "moments"
    assert forecast(50, 1000).route == "gram"
    assert forecast(100, 7, block=10).route == "blocks"
    # 50,000^2 x 4 B = 9.31 GiB is what the whole Gram matrix would take.
    assert forecast(50_000, 100, route="gram").bytes < 0.1 * 50_000**2 * 4
    with pytest.raises(InputError, match=r"need \d+ bytes, above memory_limit=1000"):
        alignment_statistics(torch.ones(10, 10), memory_limit=1000)


def test_refusals():
    q = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    nan = q.clone()
    nan[3, 1] = float("nan")
    for bad, match in (
        ((q[:1],), "at least two independent gradients, its noise four.*got 1"),
        ((q[:3],), "at least 4 independent samples.*got 3"),
        ((q[0],), r"shape \(n, d\)"),
        ((q[:, :0],), r"shape \(n, d\)"),
        ((q.long(),), "floating-point"),
        ((nan,), "1 of the 10 gradients in q are not finite"),
        ((q, nan), "q_test"),
        ((q, q[:, :2]), "not of one boundary"),
        ((q, q[:3]), "q_test must hold at least 4"),
    ):
        with pytest.raises(InputError, match=match):
            alignment_statistics(*bad)
    for options, match in (
        ({"level": 1.0}, "level"),
        ({"route": "sketch"}, "route"),
        ({"block": 3}, "at least 4"),
        ({"block": 6}, "two blocks"),
        ({"block": 4, "q_test": q}, "one pool"),
    ):
        with pytest.raises(InputError, match=match):
            alignment_statistics(q, **options)
    with pytest.raises(InputError, match="M and K must be at least 1"):
        alignment_statistics(q).variance_ratio(0, 3)


def test_arguments_are_not_changed():
    q = draws(20, MEAN, DEVIATIONS).requires_grad_()
    before = q.detach().clone()
    s = alignment_statistics(q)
    assert torch.equal(q, before)
    assert q.requires_grad
    assert isinstance(s, AlignmentStatistics)
    assert isinstance(s.d_align, Measurement)


def test_numpy_arrays_are_taken():
    q = draws(20, MEAN, DEVIATIONS)
    assert alignment_statistics(q.numpy()).d_2 == alignment_statistics(q).d_2


def test_json():
    s = alignment_statistics(draws(50, MEAN, DEVIATIONS))
    plain = json.loads(json.dumps(s.to_dict()))
    assert plain["d_align"]["estimate"] == s.d_align.estimate
    assert plain["detected"] is True
    assert plain["forecast"]["route"] == "moments"
    assert "jackknife" not in plain
    assert "d_align" in str(s)


def test_standard_deviation_of_the_mean_squared():
    # sd of U1 for mu = (.4, 0, 0), Sigma = I: Var = 4 v/n + 2 t2/(n(n-1)).
    values = [alignment_statistics(draws(200, [0.4, 0.0, 0.0], [1.0] * 3, seed)) for seed in range(400)]
    sd = (4 * 0.16 / 200 + 2 * 3 / (200 * 199)) ** 0.5
    spread = np.std([s.mean_squared.estimate for s in values], ddof=1) / sd
    assert abs(spread - 1) < 4 / (2 * 399) ** 0.5
    errors = np.mean([s.mean_squared.standard_error for s in values]) / sd
    assert errors == pytest.approx(1, abs=0.05)
