"""The scan over boundaries: what is a cut, the ranking by certificate, and the measured change that it is held against."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from empirics.alignment import alignment_statistics, capture
from empirics.alignment.certificate import certify_unconditional
from empirics.alignment.interventions import Site
from empirics.alignment.sites import _handed_on, _rank_correlation, _split, scan_boundaries
from empirics.networks import residual_mlp, trained_on_digits
from theory import InputError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained():
    torch.set_num_threads(1)
    return trained_on_digits(16, 0, 24)


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ce(output, y):
    return cross_entropy(output, y, reduction="sum")


class Signals(nn.Module):
    """Sites whose gradients are the targets themselves: the law at every site is known."""

    def __init__(self, names):
        super().__init__()
        self.names = names
        for name in names:
            setattr(self, name, nn.Tanh())

    def forward(self, x):
        return torch.stack([getattr(self, name)(x[:, j]) for j, name in enumerate(self.names)], 1)


def linear_loss(output, y):
    return (output * y).sum()


NAMES, LENGTHS, D = ("weak", "strong", "middle", "strongest"), (0.15, 0.5, 0.3, 1.0), 6


def signals(n, seed=0):
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    y = lengths[:, None] / D**0.5 + normal(n, len(NAMES), D, seed=seed + 1)
    return normal(n, len(NAMES), D, seed=seed), y


def test_known_signals_are_ranked_and_their_gain_agrees():
    scan = scan_boundaries(Signals(NAMES), signals(3000), linear_loss, M=6, K=10, pairs=60)
    assert [site.boundary for site in scan.sites] == ["strongest", "strong", "middle", "weak"]
    assert not scan.refused
    for site in scan.sites:
        length = LENGTHS[NAMES.index(site.boundary)]
        # E = |mu|^2, Sigma = I: Var/E^2 = (1/M + 1/K)/E + d/(MK E^2).
        ratio = (1 / 6 + 1 / 10) / length**2 + D / 60 / length**4
        assert abs(site.bound.z(ratio / (1 + ratio))) < 3.5
        assert site.bound.interval[0] < site.bound.estimate < site.bound.interval[1]
        assert (site.d, site.module) == (D, "Tanh")
        assert site.statistics.n == 3000 - 60 * 16
        assert site.guarantee is None
    changes = [site.change.estimate for site in scan.sites]
    assert changes == sorted(changes)
    assert scan.sites[0].failures < 0.1 < scan.sites[-1].failures
    assert scan.rank_correlation.estimate == pytest.approx(1)
    assert scan.rank_correlation.interval[0] > 0.5
    # By hand: the loss is linear, so the change is -step rms|z| (mu_M.g_K)/|mu_M|, pair by pair.
    (x, y), (_, drawn) = signals(3000), _split(3000, 6, 10, 60, 0)
    expected = []
    for each in drawn:
        mu, g = (y[part, 3].mean(0) for part in (each[:6], each[6:]))
        rms = torch.tanh(x[each[:6], 3]).square().sum(1).mean().sqrt()
        expected.append(float(-0.003 * rms * (mu @ g) / mu.norm()))
    first = scan.sites[0].change
    assert first.estimate == pytest.approx(np.mean(expected), rel=1e-8)
    assert first.standard_error == pytest.approx(np.std(expected, ddof=1) / 60**0.5, rel=1e-6)


def test_a_ranking_against_the_gains_is_seen_as_such():
    scan = scan_boundaries(Signals(NAMES), signals(3000), linear_loss, M=8, K=8, pairs=20)
    bounds = [site.rank_by for site in scan.sites]
    gains = np.outer(bounds, np.ones(20)) + 1e-3 * np.random.default_rng(0).standard_normal((4, 20))
    assert _rank_correlation(scan.sites, gains, 0).interval == (pytest.approx(1), pytest.approx(1))
    assert _rank_correlation(scan.sites, -gains, 0).estimate == pytest.approx(-1)
    noise = np.random.default_rng(1).standard_normal((4, 20))
    low, high = _rank_correlation(scan.sites, noise, 0).interval
    assert low < 0 < high
    few = _rank_correlation(scan.sites[:2], gains[:2], 0)
    assert not few.detected
    assert "3 sites" in few.note


def test_equal_to_one_capture_after_the_other(trained):
    held_out = tuple(each[:1000] for each in trained.held_out)
    scan = scan_boundaries(trained.network, held_out, ce, M=16, K=32, pairs=2, kurtosis=9, delta=0.1)
    assert scan.refused == {"blocks": "hands on the output of 'blocks.3'"}
    names = {name for name, _ in trained.network.named_modules() if name} - {"blocks"}
    assert {site.boundary for site in scan.sites} == names
    ranking, _ = _split(1000, 16, 32, 2, 0)
    assert len(ranking) == 1000 - 2 * 48
    double = copy.deepcopy(trained.network).double()
    data = (held_out[0].double(), held_out[1])
    for site in scan.sites:
        captured = capture(double, site.boundary, data, ce)
        q = captured.gradients[ranking]
        alone = alignment_statistics(q).variance_ratio(16, 32)
        assert site.bound.detected == alone.detected
        if alone.detected:
            R = alone.estimate
            assert site.bound.estimate == pytest.approx(R / (1 + R), rel=1e-9)
            assert site.bound.standard_error == pytest.approx(alone.standard_error / (1 + R) ** 2, rel=1e-6)
        else:
            assert site.rank_by == 1
        guarantee = certify_unconditional(q, 16, 32, 0.1 / len(names), 9)
        assert (site.guarantee.k, site.guarantee.n) == (guarantee.k, guarantee.n)
        assert site.guarantee.lam == pytest.approx(guarantee.lam, rel=1e-6)
        assert site.guarantee.baseline == pytest.approx(guarantee.baseline, rel=1e-9)
        assert site.guarantee.delta == 0.1 / len(names)
        assert site.notes == captured.notes
    assert {site.bound.detected for site in scan.sites} == {True, False}
    ranks = [site.rank_by for site in scan.sites]
    assert ranks == sorted(ranks)
    round_it = {site.boundary: any("path round" in note for note in site.notes) for site in scan.sites}
    assert round_it["blocks.1.V"]
    assert not round_it["blocks.1"]


class Awkward(nn.Module):
    def __init__(self):
        super().__init__()
        self.twice, self.unused, self.inner = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 5)
        self.recurrent = nn.GRU(5, 5, batch_first=True)
        self.position = nn.Embedding(1, 5)
        self.relu, self.same, self.head = nn.ReLU(inplace=True), nn.Identity(), nn.Linear(5, 3)

    def forward(self, x):
        z = self.twice(torch.tanh(self.twice(x)))
        z = z + self.recurrent(z[:, None])[0][:, 0] + self.position(torch.zeros(1, dtype=torch.int64))
        return self.head(self.same(self.relu(self.inner(z))))


def test_modules_that_are_no_cut_are_listed_with_the_reason():
    model, data = seeded(Awkward), (normal(60, 5), torch.arange(60) % 3)
    scan = scan_boundaries(model, data, ce, M=4, K=4)
    assert {site.boundary for site in scan.sites} == {"inner", "relu", "head"}
    assert "called 2 times" in scan.refused["twice"]
    assert "called 0 times" in scan.refused["unused"]
    assert "returned tuple" in scan.refused["recurrent"]
    assert "without an axis of 60 samples" in scan.refused["position"]
    assert scan.refused["same"] == "hands on the output of 'relu'"
    assert scan.rank_correlation is None
    assert scan.sites[0].change is None
    only = scan_boundaries(model, data, ce, M=4, K=4, boundaries=["inner", "twice"])
    assert [site.boundary for site in only.sites] == ["inner"]
    assert list(only.refused) == ["twice"]


def test_in_place_modules_do_not_hand_on_what_they_change():
    model = nn.Sequential(nn.Linear(5, 5), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Sequential(nn.Flatten()))
    same = _handed_on(model.eval(), torch.ones(2, 5))
    assert same == {"2": "1", "3.0": "1", "3": "1"}


def test_interacting_samples_refuse_every_site_above_them():
    model = seeded(lambda: nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)))
    scan = scan_boundaries(model, (normal(60, 5), torch.arange(60) % 3), ce, M=4, K=4)
    assert "'1' (BatchNorm1d, in training mode)" in scan.refused["0"]
    assert "0" not in [site.boundary for site in scan.sites]
    assert not scan_boundaries(model.eval(), (normal(60, 5), torch.arange(60) % 3), ce, M=4, K=4).refused


def test_an_untrained_network_has_nothing_to_rank():
    data = (normal(60, 64), torch.arange(60) % 10)
    scan = scan_boundaries(residual_mlp(16, depth=1), data, ce, M=4, K=4, boundaries=["blocks.0", "embed"])
    assert [site.bound.detected for site in scan.sites] == [False, False]
    assert [site.rank_by for site in scan.sites] == [1, 1]
    scan = scan_boundaries(residual_mlp(16, depth=1), data, ce, M=4, K=4, pairs=2, boundaries=["blocks.0"])
    assert "no insertion to make" in scan.refused["blocks.0"]
    assert not scan.rank_correlation.detected


def test_samples_that_rank_and_samples_that_measure_are_disjoint():
    ranking, drawn = _split(100, 4, 6, 5, seed=3)
    everything = torch.cat([ranking, *drawn])
    assert everything.sort().values.tolist() == list(range(100))
    assert [len(each) for each in drawn] == [10] * 5
    assert len(ranking) == 50
    assert ranking.tolist() == sorted(ranking.tolist())
    assert not torch.equal(_split(100, 4, 6, 5, seed=4)[0], ranking)
    assert _split(40, 4, 6, 0, seed=0)[0].tolist() == list(range(40))


def test_determined_by_the_seed_and_the_model_left_alone(trained):
    model, held_out = trained.network, tuple(each[:200] for each in trained.held_out)
    before = [p.clone() for p in model.parameters()]

    def run(seed):
        return scan_boundaries(
            model, held_out, ce, M=8, K=8, pairs=3, seed=seed, boundaries=["blocks.1", "norm", "embed"]
        )

    state = torch.get_rng_state()
    first = run(1)
    assert torch.equal(state, torch.get_rng_state())
    with torch.inference_mode():
        second = run(1)
    assert [s.change for s in first.sites] == [s.change for s in second.sites]
    assert first.rank_correlation == second.rank_correlation
    assert [s.change for s in run(2).sites] != [s.change for s in first.sites]
    for p, value in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, value)
        assert p.dtype == torch.float32
        assert p.requires_grad
    assert not any(m._forward_hooks for m in model.modules())


def test_shared_positions_follow_reduce():
    model = seeded(lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 3)))
    data = (normal(60, 2, 4, 5), torch.arange(60) % 3)
    for reduce, d in (("sum", 3), ("flatten", 18), ((1,), 6)):
        scan = scan_boundaries(model, data, ce, M=4, K=4, boundaries=["0"], reduce=reduce)
        assert scan.sites[0].d == d
        q = capture(model.double(), "0", data, ce, reduce=reduce).gradients
        assert scan.sites[0].statistics.mean_squared.estimate == pytest.approx(
            alignment_statistics(q).mean_squared.estimate, rel=1e-9
        )


def test_loaders_of_single_samples_and_frozen_models():
    data = signals(60)
    whole = scan_boundaries(Signals(NAMES), data, linear_loss, M=4, K=4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=1)
    parts = scan_boundaries(Signals(NAMES), loader, linear_loss, M=4, K=4)
    assert [site.bound for site in parts.sites] == [site.bound for site in whole.sites]
    model = seeded(lambda: nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3)))
    data = (normal(60, 5), torch.arange(60) % 3)
    trainable = scan_boundaries(model, data, ce, M=4, K=4, pairs=2)
    frozen = scan_boundaries(model.requires_grad_(False), data, ce, M=4, K=4, pairs=2)
    assert [site.change for site in frozen.sites] == [site.change for site in trainable.sites]


def test_a_tied_embedding_and_a_model_on_meta():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.mix = nn.Embedding(5, 4), nn.Linear(4, 4)

        def forward(self, tokens):
            return torch.tanh(self.mix(self.token(tokens))) @ self.token.weight.T

    tokens = torch.randint(5, (60,), generator=torch.Generator().manual_seed(0))
    scan = scan_boundaries(seeded(Tied), (tokens, tokens), ce, M=4, K=4)
    assert {site.boundary for site in scan.sites} == {"token", "mix"}
    assert not any("path round" in note for site in scan.sites for note in site.notes)
    meta = scan_boundaries(seeded(Tied).to("meta"), (tokens, tokens), ce, M=4, K=4)
    assert not meta.sites
    assert all("meta" in reason for reason in meta.refused.values())


def test_small_steps_fail_no_more_often_than_the_bound_says(trained):
    # The certificate bounds Pr(X <= 0), and at a small step a loss that does not fall is X <= 0.
    site = Site.of(trained.network, "blocks.1", trained.held_out, ce)
    scan = scan_boundaries(
        trained.network, trained.held_out, ce, M=16, K=16, pairs=30, boundaries=["blocks.1"], step=1e-4
    )
    seen = scan.sites[0]
    _, drawn = _split(1197, 16, 16, 30, 0)
    assert seen.failures == np.mean([site.response(each[:16], each[16:]).X <= 0 for each in drawn])
    assert seen.failures <= seen.bound.estimate + 3.3 * (0.25 / 30) ** 0.5


def test_refusals():
    model, data = Signals(NAMES), signals(60)
    for options, match in (
        ({"pairs": 6}, "6 pairs of M=4 and K=4 samples leave 12 of 60 to rank by"),
        ({"pairs": 1}, "no pairs or at least 2"),
        ({"M": 0}, "M, K >= 1"),
        ({"boundaries": ["stron"]}, "no module 'stron'; did you mean 'strong'"),
    ):
        with pytest.raises(InputError, match=match):
            scan_boundaries(model, data, linear_loss, **{"M": 4, "K": 4, **options})
    for few, match in (((data[0][:1], data[1][:1]), "leave 1 of 1"), ([], "empty loader")):
        with pytest.raises(InputError, match=match):
            scan_boundaries(model, few, linear_loss, M=4, K=4)
