"""Spectra of weights: levels that hold on noise, planted spikes found, the verdict's rule, what is refused, field reports."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from empirics.spectra import (
    WeightSpectrum,
    forecast,
    simulated_null,
    spectral_distance,
    weight_spectra,
    weight_spectrum,
)
from empirics.spectra.bulk import fit_bulk, ks_distance, tail_quantile
from empirics.spectra.eigenvalues import eigenvalues
from empirics.spectra.matrix import as_weight
from empirics.spectra.null import noise_eigenvalues
from empirics.spectra.verdict import Evidence, judge
from numerics import predict
from numerics.mp import MarchenkoPastur
from theory import InputError

DATA = Path(os.environ.get("ASSAY_SHARED") or Path(__file__).parents[3] / "shared") / "data"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def look(cache):
    return lambda matrix, **options: weight_spectrum(matrix, cache=cache, **options)


def noise(rows, columns, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns)) / rows**0.5


def spikes(rows, columns, strengths, seed=0):
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(rows, len(strengths))))[0]
    right = np.linalg.qr(rng.normal(size=(columns, len(strengths))))[0]
    return (left * strengths) @ right.T, left, right


def descending(matrix):
    return np.linalg.eigvalsh(matrix.T @ matrix)[::-1]


# Levels on noise ------------------------------------------------------------------------------------------------------


def test_p_values_are_uniform_and_false_outliers_as_rare_as_stated(look):
    """120 Gaussian matrices (not the bidiagonal model that the null is made of): 1e-3 two-sided on each count."""
    found = [look(noise(96, 64, seed), level=0.05) for seed in range(120)]
    values = np.array([each.p_value for each in found])
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    false = sum(bool(each.outliers) for each in found)
    assert stats.binomtest(false, 120, 0.05).pvalue > 1e-3
    assert {each.verdict for each in found if not each.outliers and each.ks < 1.5 * each.ks_limit} == {
        "nothing to judge"
    }


@pytest.mark.parametrize(("n", "p"), [(64, 64), (200, 80)])
def test_the_level_holds_because_the_error_of_the_variance_is_counted(n, p, cache):
    """2000 noise spectra at 5 %: binomial error .005. With the variance taken for known, 64 x 64 would fire in 12 %."""
    rng = np.random.default_rng(3)
    error = simulated_null(n, p, 0.05, cache=cache).error
    spectra = [noise_eigenvalues(n, p, rng) for _ in range(2000)]
    counted = np.mean([fit_bulk(each, n, 0.05, error).outliers > 0 for each in spectra])
    assert abs(counted - 0.05) < 4 * 0.005
    if n == p:
        assert np.mean([fit_bulk(each, n, 0.05).outliers > 0 for each in spectra]) > 0.09


def test_the_bidiagonal_model_has_the_law_of_gaussian_matrices():
    """Largest, smallest and middle eigenvalue of 400 draws of each: three Kolmogorov-Smirnov tests at 1e-3."""
    rng = np.random.default_rng(5)
    direct = np.array([descending(rng.normal(size=(40, 24))) for _ in range(400)])
    model = np.array([noise_eigenvalues(40, 24, rng) for _ in range(400)])
    for index in (0, 12, 23):
        assert stats.ks_2samp(direct[:, index], model[:, index]).pvalue > 1e-3
    assert abs(model.sum(1).mean() - 40 * 24) < 4 * (2 * 40 * 24 / 400) ** 0.5


def test_the_null_scale_is_that_of_rigid_eigenvalues(cache):
    """Notes 1.1, 95 % at 256 x 256 and 576 x 64: .0151 and .047; Kolmogorov's 1.36/sqrt(p) would be .085 and .17."""
    for shape, quantile in (((256, 256), 0.0151), ((576, 64), 0.047)):
        null = simulated_null(*shape, 0.001, cache=cache)
        assert null.quantile(0.95) / shape[1] == pytest.approx(quantile, rel=0.08)


def test_tail_quantile_is_that_of_a_sum():
    """TW_1 + spread Z by its own draws: eigenvalues of 2000 matrices would be slow, so inverse-transform sampling."""
    assert tail_quantile(0.05) == pytest.approx(0.97931605346955, abs=1e-9)
    rng = np.random.default_rng(2)
    from numerics.tracy_widom import TracyWidom

    grid = np.linspace(-7, 6, 261)
    draws = np.interp(rng.random(200_000), TracyWidom(1).cdf(grid), grid) + 1.5 * rng.normal(size=200_000)
    for level in (0.05, 0.001):
        seen = (draws > tail_quantile(level, 1.5)).mean()
        assert abs(seen - level) < 4 * (level / 200_000) ** 0.5


# Planted spikes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(384, 256), (256, 384)])
def test_planted_spikes_come_back_with_strength_and_overlaps(rows, columns, look):
    planted = np.array([4.0, 3.0, 2.2])
    low_rank, left, right = spikes(rows, columns, planted, 1)
    W = 0.3 * (noise(rows, columns, 2) + low_rank)
    found = look(W)
    assert found.verdict == "few"
    assert len(found.outliers) == 3
    U, values, V = np.linalg.svd(W, full_matrices=False)
    for j, each in enumerate(found.outliers):
        assert each.singular_value == pytest.approx(values[j], rel=1e-12)
        assert each.strength == pytest.approx(0.3 * planted[j], rel=0.06)  # order rows^(-1/2)
        assert each.overlap_rows == pytest.approx((U[:, j] @ left[:, j]) ** 2, abs=0.06)
        assert each.overlap_columns == pytest.approx((V[j] @ right[:, j]) ** 2, abs=0.06)
    gap = found.outliers[-1].overlap_rows - found.outliers[-1].overlap_columns
    assert gap * (columns - rows) > 0.02  # the longer vector is seen less well: exchanged overlaps fail
    assert found.energy == pytest.approx((values[:3] ** 2).sum() / (values**2).sum(), rel=1e-12)
    assert found.variance == pytest.approx(0.09 / rows, rel=0.03)
    assert found.ratio == pytest.approx(2 / 3)
    law = predict("mp.edges", {"ratio": found.ratio, "variance": found.variance})
    assert found.edge == pytest.approx(float(law.value.midpoint[1]))


def test_spikes_do_not_bias_the_variance(cache):
    """12 % of the eigenvalues are spikes. 24 matrices, 4 standard errors; the mean of all entries and the bare scale of
    the bulk, which the spikes push down, are both excluded.
    """
    n, p, k = 320, 256, 30
    error = simulated_null(n, p, 0.001, cache=cache).error
    fits, means = [], []
    for seed in range(24):
        low_rank, _, _ = spikes(n, p, np.linspace(1.9, 3.8, k) * (p / n) ** 0.25, 100 + seed)
        W = (noise(n, p, seed) + low_rank) * n**0.5
        fits.append(fit_bulk(descending(W), n, 0.001, error))
        means.append((W**2).mean())
    assert {each.outliers for each in fits} == {k}
    variance, scale = (np.array([getattr(each, name) for each in fits]) for name in ("variance", "scale"))
    assert abs(variance.mean() - 1) < 4 * variance.std(ddof=1) / 24**0.5
    assert 1 - scale.mean() > 4 * scale.std(ddof=1) / 24**0.5
    assert np.mean(means) > 1.3


def test_weak_spikes_are_not_seen(look):
    low_rank, _, _ = spikes(400, 200, np.array([0.7]), 3)  # below ratio^(1/4) = .84
    assert look(noise(400, 200, 4) + low_rank).outliers == ()


def test_columns_of_unequal_scale_are_no_noise(look):
    """Log-sd .2 over the columns: the bulk is rejected, and the verdict is not "few"."""
    W = noise(512, 256, 6) * np.exp(0.2 * np.random.default_rng(7).normal(size=256))
    found = look(W)
    assert found.p_value < 0.01
    assert found.ks > 1.5 * found.ks_limit
    assert found.verdict == "mixed"


# Symmetries and field reports -----------------------------------------------------------------------------------------


def test_orientation_and_scale_do_not_matter(look):
    """Field report 13: c W moves the edge by c^2 and leaves the outliers as they are; the transpose exchanges the overlaps."""
    low_rank, _, _ = spikes(300, 180, np.array([3.0, 2.0]), 8)
    W = noise(300, 180, 9) + low_rank
    one, turned, scaled = look(W), look(W.T.copy()), look(-7 * W)
    assert len(one.outliers) == len(turned.outliers) == len(scaled.outliers) == 2
    for a, b, c in zip(one.outliers, turned.outliers, scaled.outliers, strict=True):
        assert (a.overlap_rows, a.overlap_columns) == pytest.approx((b.overlap_columns, b.overlap_rows), rel=1e-9)
        assert (c.singular_value, c.strength) == pytest.approx((7 * a.singular_value, 7 * a.strength), rel=1e-9)
        assert (c.overlap_rows, c.overlap_columns) == pytest.approx((a.overlap_rows, a.overlap_columns), rel=1e-9)
    assert (turned.variance, turned.edge, turned.ks) == pytest.approx((one.variance, one.edge, one.ks), rel=1e-9)
    assert (scaled.variance, scaled.edge, scaled.threshold) == pytest.approx(
        (49 * one.variance, 49 * one.edge, 49 * one.threshold)
    )
    assert scaled.p_value == one.p_value
    assert scaled.energy == pytest.approx(one.energy)


def test_soft_rank_has_a_band_that_holds_one_on_noise(look):
    """Field report 15: on 40 noise matrices the 95 % interval misses 1 at most 8 times (binomial, 1e-3); a spike is missed."""
    held = [look(noise(100, 60, 50 + seed)).soft_rank.interval for seed in range(40)]
    assert sum(low <= 1 <= high for low, high in held) >= 32
    low_rank, _, _ = spikes(100, 60, np.array([2.5]), 1)
    spiked = look(noise(100, 60, 1) + low_rank).soft_rank
    assert spiked.interval[1] < 1
    assert spiked.estimate < 0.7


def test_noise_gets_no_power_law(look):
    """Field report 18: the bulk law is not rejected, and nothing is said about a tail."""
    found = look(noise(300, 150, 12))
    assert found.p_value > 0.01
    assert found.verdict == "nothing to judge"
    assert not {"alpha", "exponent", "tail"} & set(found.to_dict())


def test_distance_between_spectral_measures():
    """Field report 19: 0 for a permuted matrix, covariant under scaling, and no eigenvalue taken for a probability."""
    A, B = noise(60, 40, 1), noise(90, 30, 2)
    rng = np.random.default_rng(0)
    assert spectral_distance(A, A[rng.permutation(60)][:, rng.permutation(40)])[0] < 1e-12
    assert spectral_distance(A, A.T)[0] < 1e-12
    wasserstein, ks = spectral_distance(A, B)
    assert wasserstein > 0.05
    assert spectral_distance(3 * A, 3 * B) == pytest.approx((3 * wasserstein, ks))
    reference = stats.wasserstein_distance(np.linalg.svd(A, compute_uv=False), np.linalg.svd(B, compute_uv=False))
    assert wasserstein == pytest.approx(reference, rel=1e-10)


def test_field_report_21_by_weight_spectrum(look):
    """400 x 200: the outlier at theta 1.5 is read back as 1.5, its squared singular value 3.972."""
    low_rank, _, _ = spikes(400, 200, np.array([1.5]), 21)
    (outlier,) = look(noise(400, 200, 21) + low_rank).outliers
    assert outlier.singular_value**2 == pytest.approx(3.972, abs=4 * 0.021 * 24**0.5)
    assert outlier.strength == pytest.approx(1.5, abs=0.06)


# Verdict --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence(512, 10, 0.16, 1.0), "few"),
        (Evidence(512, 25, 0.16, 1.5), "few"),
        (Evidence(512, 26, 0.16, 1.0), "mixed"),  # k/p above .05
        (Evidence(512, 10, 0.16, 1.6), "mixed"),  # the bulk is deformed
        (Evidence(512, 10, 0.16, 1.0, shift=0.9), "mixed"),
        (Evidence(512, 51, 0.47, 1.0), "restructured"),
        (Evidence(512, 51, 0.3, 1.0), "mixed"),  # energy below .4
        (Evidence(512, 51, 0.47, 1.0, change=0.05), "nothing to judge"),
        (Evidence(512, 0, 0.0, 1.0), "nothing to judge"),
        (Evidence(512, 0, 0.0, 2.0), "mixed"),
        (Evidence(64, 3, 0.1, 1.0), "nothing to judge"),
        (Evidence(64, 11, 0.8, 3.0), "nothing to judge"),  # 11 outputs would do that
        (Evidence(64, 12, 0.8, 3.0), "restructured"),
    ],
)
def test_the_rule(evidence, verdict):
    assert judge(evidence)[0] == verdict


def test_many_strong_spikes_are_a_restructured_matrix(look):
    low_rank, _, _ = spikes(256, 192, np.linspace(2, 6, 40), 5)
    found = look(noise(256, 192, 5) + low_rank)
    assert found.verdict == "restructured"
    assert len(found.outliers) == 40
    assert found.energy > 0.6
    assert "40 of 192" in found.reason


def test_the_change_since_initialisation(look):
    start = noise(256, 160, 30)
    low_rank, _, _ = spikes(256, 160, np.array([3.0, 2.0, 0.1]), 31)
    moved = look(start + low_rank, initial=start)
    assert moved.change.relative == pytest.approx(np.linalg.norm(low_rank) / np.linalg.norm(start))
    assert moved.change.shift == pytest.approx(1, abs=0.02)
    assert moved.change.stable_rank == pytest.approx((9 + 4 + 0.01) / 9)
    assert moved.change.above_threshold == 2
    assert moved.verdict == "few"
    still = look(start * 1.01, initial=start)
    assert still.verdict == "nothing to judge"
    assert "has moved by 0.01" in still.reason
    assert look(start, initial=0 * start).change.relative is None
    with pytest.raises(InputError, match="its initial value 256 x 159"):
        look(start, initial=start[:, 1:])


# What is admitted -----------------------------------------------------------------------------------------------------


def test_kernels_embeddings_and_dtypes(look):
    W = noise(64, 32 * 9, 1).astype(np.float32)
    kernel = look(torch.tensor(W.reshape(64, 32, 3, 3)))
    assert (kernel.rows, kernel.columns) == (64, 288)
    assert "kernel of shape 64x32x3x3" in kernel.notes[0]
    assert kernel.ks == look(W).ks
    embedding = look(np.vstack([noise(5000, 48, 2), np.zeros((1, 48))]))
    assert embedding.rows == 5000
    assert "1 rows that are zero were left out" in embedding.notes[0]
    assert embedding.p_value > 0.01
    half = torch.tensor(W[:, :128]).to(torch.bfloat16)
    assert look(half).variance == pytest.approx(look(W[:, :128]).variance, rel=1e-2)
    assert look(nn.Parameter(torch.tensor(W))).ks == kernel.ks


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones(30), r"matrix is a vector .* of shape \(30,\)"),
        (np.float64(1.0), "matrix is a scalar"),
        (noise(64, 10), "too small to judge: 64 x 10"),
        (np.full((40, 40), np.nan), "NaN or infinite entries"),
        (np.zeros((40, 40)), "too small to judge: 0 x 0 that are not zero"),
        (np.ones((40, 40)), "all entries equal to 1"),
        (noise(40, 40) + 1j, "entries of type complex128"),
        (np.ones((40, 40), dtype=bool), "entries of type bool"),
        (noise(100, 20) @ noise(20, 100), "of 100 eigenvalues are zero"),
    ],
)
def test_refused_by_name(matrix, message, look):
    with pytest.raises(InputError, match=message):
        look(matrix)


def test_refused_options(look):
    with pytest.raises(InputError, match="level is the chance of a false outlier"):
        look(noise(64, 64), level=0.5)
    with pytest.raises(InputError, match="at least 20 draws"):
        look(noise(64, 64), draws=5)


def test_every_weight_of_a_model_is_judged_or_named(cache):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(200, 48), torch.nn.Linear(48, 64), torch.nn.Linear(64, 10), torch.nn.Linear(48, 200)
    )
    model[3].weight = model[0].weight
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for source in (model, model.state_dict()):
        layers = {layer.name: layer for layer in weight_spectra(source, cache=cache)}
        assert list(layers) == ["0.weight", "1.weight", "2.weight", "3.weight"]
        assert layers["3.weight"].refusal == "tied to 0.weight"
        assert "2.weight is too small to judge: 10 x 64" in layers["2.weight"].refusal
        assert isinstance(layers["1.weight"].spectrum, WeightSpectrum)
        assert layers["1.weight"].spectrum.verdict == "nothing to judge"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert json.loads(json.dumps([layer.to_dict() for layer in layers.values()]))[0]["spectrum"]["rows"] == 200
    with pytest.raises(InputError, match="a module or a mapping"):
        weight_spectra([1, 2])
    with pytest.raises(InputError, match="no weight of two dimensions"):
        weight_spectra({"bias": np.ones(3)})


# Eigenvalues, forecast, cache -----------------------------------------------------------------------------------------


def test_gram_and_singular_values_agree_also_under_a_giant_spike():
    W = noise(120, 80, 3)
    np.testing.assert_allclose(eigenvalues(as_weight(W)), np.linalg.svd(W, compute_uv=False) ** 2, rtol=1e-11)
    giant = W + 1e8 * np.outer(np.ones(120), np.ones(80)) / (120 * 80) ** 0.5  # the Gram matrix would lose the bulk
    values = eigenvalues(as_weight(giant))
    np.testing.assert_allclose(
        np.sort(values)[10:70], np.sort(np.linalg.svd(giant, compute_uv=False) ** 2)[10:70], rtol=1e-6
    )
    assert np.median(values) == pytest.approx(np.median(eigenvalues(as_weight(W))), rel=0.05)


def test_the_forecast_comes_before_the_work(look):
    """Field report 28's kind: 50000 x 50000 in full is 37 GiB, so only its top is computed; less memory is refused."""
    assert forecast(50_000, 50_000, 2**40).bytes == 8 * (2 * 50_000**2 + 2 * 4096 * 50_000)
    assert forecast(50_000, 50_000).route == "lanczos"
    assert forecast(50_000, 384).route == "gram"
    with pytest.raises(InputError, match=r"needs 0.018 GiB in full .* the limit is 9.54e-07 GiB"):
        look(noise(1024, 700), memory_limit=1024)


def test_the_top_alone_finds_the_same_outliers(look):
    low_rank, _, _ = spikes(300, 200, np.array([4.0, 3.0]), 2)
    W = noise(300, 200, 2) + low_rank
    whole = look(W)
    top = look(W, memory_limit=forecast(300, 200).bytes - 1)
    assert top.route == "lanczos"
    assert top.verdict == "nothing to judge"
    assert top.p_value is None
    assert [each.singular_value for each in top.outliers] == pytest.approx(
        [each.singular_value for each in whole.outliers]
    )
    assert top.variance == pytest.approx(whole.variance, rel=0.03)
    assert top.outliers == look(W, memory_limit=forecast(300, 200).bytes - 1).outliers
    json.dumps(top.to_dict())


def test_the_null_is_kept_and_deterministic(tmp_path):
    one = simulated_null(40, 20, 0.01, draws=30, cache=tmp_path / "a")
    (file,) = (tmp_path / "a").iterdir()
    assert "40x20" in file.name
    stamp = file.stat().st_mtime_ns
    again = simulated_null(40, 20, 0.01, draws=30, cache=tmp_path / "a")
    assert file.stat().st_mtime_ns == stamp
    fresh = simulated_null(40, 20, 0.01, draws=30, cache=tmp_path / "b")
    np.testing.assert_array_equal(one.scaled, again.scaled)
    np.testing.assert_array_equal(one.scaled, fresh.scaled)
    assert one.error == fresh.error
    file.write_bytes(b"half a file")
    np.testing.assert_array_equal(simulated_null(40, 20, 0.01, draws=30, cache=tmp_path / "a").scaled, one.scaled)
    other = simulated_null(40, 20, 0.01, draws=30, seed=1, cache=tmp_path / "a")
    assert not np.array_equal(other.scaled, one.scaled)
    (tmp_path / "c").write_text("a file where the folder should be")
    np.testing.assert_array_equal(simulated_null(40, 20, 0.01, draws=30, cache=tmp_path / "c").scaled, one.scaled)
    assert one.p_value(np.inf) == pytest.approx(1 / 31)
    assert one.p_value(0.0) == 1.0


def test_ks_distance_is_the_sup_over_both_sides_of_each_step():
    values = np.sort(np.random.default_rng(1).uniform(0.2, 2.5, 40))[::-1] * 60
    bulk = fit_bulk(values, 60, 1e-12)
    law = MarchenkoPastur(bulk.ratio, bulk.scale)
    reference = stats.kstest(values / 60, law.cdf).statistic if bulk.outliers == 0 else None
    assert bulk.outliers == 0
    assert ks_distance(values, bulk) == pytest.approx(reference, rel=1e-12)


@pytest.mark.skipif(not (DATA / "resnet20-12fca82f.th").exists(), reason="../shared/data is not here")
def test_a_trained_network_is_restructured(cache):
    """ResNet-20's 64-channel kernels: 19 to 32 of 64 singular values stand out, with more than half of the energy."""
    stored = torch.load(DATA / "resnet20-12fca82f.th", map_location="cpu", weights_only=True)["state_dict"]
    layers = {
        layer.name: layer
        for layer in weight_spectra({k.removeprefix("module."): v for k, v in stored.items()}, cache=cache)
    }
    assert "10 x 64" in layers["linear.weight"].refusal
    wide = [layer.spectrum for name, layer in layers.items() if name.startswith("layer3")]
    assert {each.verdict for each in wide} == {"restructured"}
    assert min(len(each.outliers) for each in wide) >= 19
    assert layers["layer1.0.conv1.weight"].spectrum.verdict == "nothing to judge"  # 16 channels
