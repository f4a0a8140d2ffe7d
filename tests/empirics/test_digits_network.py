"""The built-in network: deterministic by seed, muP widths, and the theory's first claims seen on its gradients."""

import pytest
import torch

from empirics.alignment import alignment_statistics, capture, resampled_misalignment
from empirics.networks import cross_entropy_sum, digits, mup_groups, residual_mlp, trained_on_digits
from theory import InputError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained():
    return trained_on_digits(64, seed=0, steps=24)


def test_determined_by_the_seed_alone():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    a = trained_on_digits(16, seed=3, steps=8)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    b, c = trained_on_digits(16, seed=3, steps=8), trained_on_digits(16, seed=4, steps=8)
    weights = [[p.detach() for p in t.network.parameters()] for t in (a, b, c)]
    assert all(map(torch.equal, weights[0], weights[1]))
    assert not any(map(torch.equal, weights[0], weights[2]))
    assert a.losses == b.losses
    assert torch.equal(a.held_out[0], b.held_out[0])
    assert not torch.equal(a.held_out[0], c.held_out[0])


def test_the_split():
    (x, y), (held_x, held_y) = digits(seed=5)
    assert (x.shape, held_x.shape, x.dtype) == ((600, 64), (1197, 64), torch.float32)
    assert torch.bincount(torch.cat([y, held_y]), minlength=10).tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]
    # No image lies on both sides, and none is lost.
    assert len(torch.unique(torch.cat([x, held_x]), dim=0)) == 1797


def test_more_steps_continue_the_same_run():
    assert trained_on_digits(16, steps=9).losses == trained_on_digits(16, steps=20).losses[:9]


def test_epochs_see_every_image_once():
    # 6 steps of 100 are one epoch of 600: a rate of almost nothing leaves the network, whose loss is ln 10 throughout.
    losses = trained_on_digits(16, steps=6, rate=1e-12).losses
    assert torch.allclose(torch.tensor(losses), torch.tensor(10.0).log())


def test_initial_network():
    network = residual_mlp(256, depth=2, seed=0, expansion=2)
    assert not network.head.weight.any()
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    assert not network(x).any()
    # Entries have variance 1/fan_in (V: over the depth besides), to 4 standard errors of a sample variance.
    for name, fan_in in (("embed", 64), ("blocks.0.U", 256), ("blocks.1.V", 512 * 2)):
        weight = network.get_submodule(name).weight
        variance = float(weight.detach().double().var()) * fan_in
        assert abs(variance - 1) < 4 * (2 / weight.numel()) ** 0.5, name
    assert len(list(network.parameters())) == 2 + 2 * 2


def test_block_is_the_residual_formula():
    network = residual_mlp(8, depth=1, seed=1).double()
    z = torch.randn(5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    block = network.blocks[0]
    normed = z / (z.square().mean(1, keepdim=True) + torch.finfo(torch.float64).eps).sqrt()
    hidden = normed @ block.U.weight.T
    hidden = hidden * torch.special.ndtr(hidden)
    assert torch.allclose(block(z), z + hidden @ block.V.weight.T, rtol=1e-12)


def test_mup_groups():
    groups = mup_groups(residual_mlp(128, depth=3), 0.01)
    assert {group["name"]: group["lr"] for group in groups} == {"embed": 0.01, "blocks": 0.005, "head": 0.005}
    assert sum(len(group["params"]) for group in groups) == 1 + 6 + 1


def test_first_step_moves_the_output_by_the_same_amount_at_every_width():
    # Coordinate check: the slope of log rms change of the logits in log width is 0 in muP, 1 with one rate for all.
    (x, y), _ = digits()
    change = {"mup": [], "one rate": []}
    for width in (32, 64, 128, 256):
        for kind, moved in change.items():
            network = residual_mlp(width, depth=2, seed=0)
            groups = (
                mup_groups(network, 1e-3) if kind == "mup" else [{"params": list(network.parameters()), "lr": 1e-3}]
            )
            optimizer = torch.optim.Adam(groups)
            torch.nn.functional.cross_entropy(network(x[:100]), y[:100]).backward()
            optimizer.step()
            moved.append(float(network(x).detach().square().mean().sqrt().log2()))
    slopes = {kind: (moved[-1] - moved[0]) / 3 for kind, moved in change.items()}
    assert abs(slopes["mup"]) < 0.15
    assert slopes["one rate"] > 0.85


def test_it_learns(trained):
    assert trained.losses[0] == pytest.approx(2.302585, abs=1e-5)  # ln 10 at a zero head
    assert trained.losses[-1] < 1.6
    assert trained.accuracy > 0.85
    assert trained.boundary == "blocks.1"
    assert not trained.network.training
    assert all(p.grad is None for p in trained.network.parameters())


def test_no_signal_before_training():
    start = trained_on_digits(16, steps=0)
    captured = capture(start.network, start.boundary, start.held_out, cross_entropy_sum)
    assert not captured.gradients.any()
    s = alignment_statistics(captured.gradients, unit="image")
    assert not s.detected
    assert not any(torch.isnan(torch.tensor(m.estimate)) for m in (s.mean_squared, s.trace_squared))


def test_gradients_of_the_trained_network(trained):
    captured = capture(trained.network, trained.boundary, trained.held_out, cross_entropy_sum)
    assert captured.gradients.shape == (1197, 64)
    assert (captured.partial, captured.random, captured.notes) == (False, False, ())
    s = alignment_statistics(captured.gradients, unit="image")
    assert s.detected
    # Where trained networks live: d_2 far below d_parallel (notes on alignment, section 7).
    assert s.d_align.estimate == s.d_2.estimate < 0.1 * s.d_parallel.estimate


@pytest.mark.parametrize("M", [4, 16, 64])
def test_misalignment_and_the_exact_bound(trained, M):
    q = capture(trained.network, trained.boundary, trained.held_out, cross_entropy_sum).gradients
    seen = resampled_misalignment(q, M, M, 2000, seed=0)
    # Cantelli's inequality holds for the pool itself, with the pool's own exact mean and variance.
    mean, variance = seen.settings["pool_mean"], seen.settings["pool_variance"]
    assert seen.interval[0] <= variance / (variance + mean**2)
    # Var of 2000 draws: 8 standard errors at a kurtosis of 30 are 8 sqrt(31/2000) = 1.
    assert seen.settings["variance"] == pytest.approx(variance, rel=1)
    spread = (variance / 2000) ** 0.5
    assert abs(seen.settings["mean"] - mean) < 4 * spread


def test_refusals():
    with pytest.raises(InputError, match="at least 1; got width=0"):
        residual_mlp(0)
    with pytest.raises(InputError, match="steps=-1"):
        trained_on_digits(8, steps=-1)
