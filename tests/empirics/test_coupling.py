"""The probes: interacting samples are refused with the module named, paths round the boundary and noise are told."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from empirics.alignment import CaptureWarning, capture, capture_activation_gradients
from empirics.alignment.coupling import tolerance
from empirics.networks import residual_mlp
from theory import InputError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ce(output, y):
    return cross_entropy(output, y, reduction="sum")


X, Y = normal(12, 5), torch.arange(12) % 3


def stack(*middle, dtype=torch.float64):
    """`below`, the given modules, `above`: cut behind `below` they lie above the cut."""
    return seeded(lambda: nn.Sequential(nn.Linear(5, 6), *middle, nn.Linear(6, 3)).to(dtype))


class Named(nn.Module):
    """A module from a function, so that messages have a class to name."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, z):
        return self.function(z)


class Capacity(nn.Module):
    """An expert that serves the first half of a batch that asks for it, and lets the others through unchanged."""

    def __init__(self):
        super().__init__()
        self.router, self.expert = nn.Linear(6, 1), nn.Linear(6, 6)

    def forward(self, z):
        asks = self.router(z)[:, 0] > self.router(z)[:, 0].median()
        return torch.where(asks[:, None], self.expert(z), z)


# --- what couples ---------------------------------------------------------------------------------


def test_batch_normalisation_in_training_mode_is_named():
    model = stack(nn.BatchNorm1d(6), nn.ReLU())
    with pytest.raises(
        InputError, match=r"samples interact.*module '1' \(BatchNorm1d, in training mode\).*model.eval\(\)"
    ):
        capture_activation_gradients(model, "0", (X, Y), ce)
    model.eval()
    q = capture_activation_gradients(model, "0", (X, Y), ce)
    alone = torch.cat(
        [capture_activation_gradients(model, "0", (X[i : i + 1], Y[i : i + 1]), ce, probe=False) for i in range(12)]
    )
    assert torch.allclose(q, alone, rtol=1e-12, atol=1e-15)


def test_the_module_may_lie_below_the_cut():
    model = seeded(lambda: nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 6), nn.Linear(6, 3)).double())
    with pytest.raises(InputError, match=r"module '0' \(BatchNorm1d"):
        capture_activation_gradients(model, "1", (X, Y), ce)


def test_statistics_of_the_batch_in_evaluation_mode():
    model = stack(nn.BatchNorm1d(6, track_running_stats=False)).eval()
    with pytest.raises(InputError, match=r"module '1' \(BatchNorm1d, in evaluation mode\)\.$"):
        capture_activation_gradients(model, "0", (X, Y), ce)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 12])
@pytest.mark.parametrize(
    "middle",
    [
        lambda: nn.BatchNorm1d(6),
        lambda: Named(lambda z: z - z.mean(0)),
        lambda: Named(lambda z: z + 1e-3 * z.roll(1, 0)),
        lambda: Named(lambda z: z + 1e-3 * z.flip(0)),
        lambda: Named(lambda z: torch.softmax(z, 0)),
        lambda: nn.MultiheadAttention(6, 1),
    ],
)
def test_couplings_of_many_kinds_and_batch_sizes(n, middle):
    made = seeded(middle)
    if isinstance(made, nn.MultiheadAttention):  # (n, d) is taken for one sequence of n tokens
        made = AttentionOverTheBatch(made)
    model = stack(made)
    with pytest.raises(InputError, match=r"samples interact.*module '1"):
        capture_activation_gradients(model, "0", (X[:n], Y[:n]), ce)


class AttentionOverTheBatch(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, z):
        return self.attention(z, z, z)[0]


@pytest.mark.parametrize("n", [4, 12, 40])
def test_a_mixture_with_a_capacity(n):
    model = stack(Capacity())
    x, y = normal(n, 5), torch.arange(n) % 3
    with pytest.raises(InputError, match=r"module '1' \(Capacity"):
        capture_activation_gradients(model, "0", (x, y), ce)


def test_capacities_of_small_batches():
    # A discrete rule can decide alike in every composition that is tried, but seldom does.
    missed = 0
    for seed in range(40):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Linear(5, 6), Capacity(), nn.Linear(6, 3)).double()
        try:
            capture(model, "0", (normal(8, 5, seed=seed), Y[:8]), ce)
            missed += 1
        except InputError:
            continue
    assert missed <= 3


def test_a_capacity_that_only_a_full_batch_exhausts():
    def scarce(z):
        served = torch.arange(len(z)) < 36 - len(z)
        return torch.where(served[:, None], torch.tanh(z), z)

    model = stack(Named(scarce))
    x, y = normal(35, 5), torch.arange(35) % 3
    with pytest.raises(InputError, match=r"samples interact.*Among 16 samples no single module"):
        capture_activation_gradients(model, "0", (x, y), ce)


class MixesItself(nn.Module):
    def __init__(self):
        super().__init__()
        self.below, self.above = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x):
        out = self.above(torch.tanh(self.below(x)))
        return out - out.mean(0)


def test_a_mixing_forward_method_is_named():
    model = seeded(lambda: MixesItself().double())
    with pytest.raises(InputError, match=r"the model's own forward method \(MixesItself"):
        capture_activation_gradients(model, "below", (X, Y), ce)


def test_a_module_that_only_passes_the_mixture_on_is_not_blamed():
    class MixesInside(MixesItself):
        def forward(self, x):
            z = torch.tanh(self.below(x))
            return self.above(z - z.mean(0))

    model = seeded(lambda: nn.Sequential(MixesInside(), nn.Tanh()).double())
    with pytest.raises(InputError, match=r"module '0' \(MixesInside"):
        capture_activation_gradients(model, "0.below", (X, Y), ce)


def test_a_loss_that_joins_samples_is_named():
    def centred(output, y):
        return (output - output.mean(0)).square().sum()

    def contrastive(output, y):
        return cross_entropy(output @ output.T, torch.arange(len(output)), reduction="sum")

    model = stack(nn.Tanh())
    with pytest.raises(InputError, match=r"samples interact.*the loss does"):
        capture_activation_gradients(model, "0", (X, Y), centred)
    # Twice the same batch is not twice this loss: refused at the earlier check.
    with pytest.raises(InputError, match="no sum of one term a sample"):
        capture_activation_gradients(model, "0", (X, Y), contrastive)


def test_a_coupling_of_gradients_alone():
    model = stack(Named(lambda z: z + z.mean(0) - z.mean(0).detach()))
    with pytest.raises(InputError, match=r"samples interact.*no single module shows it"):
        capture_activation_gradients(model, "0", (X, Y), ce)


def test_under_dropout_too():
    model = stack(nn.Dropout(0.5), nn.BatchNorm1d(6))
    with pytest.raises(InputError, match=r"module '2' \(BatchNorm1d"):
        capture_activation_gradients(model, "0", (X, Y), ce)


def test_refusal_puts_running_statistics_back():
    model = stack(nn.BatchNorm1d(6))
    before = [b.clone() for b in model.buffers()]
    with pytest.raises(InputError):
        capture_activation_gradients(model, "0", (X, Y), ce)
    assert all(map(torch.equal, before, model.buffers()))


# --- what does not --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_independent_samples_pass(dtype, n):
    model = stack(nn.LayerNorm(6), nn.GroupNorm(2, 6), nn.Softmax(1), nn.BatchNorm1d(6).eval(), dtype=dtype)
    q = capture_activation_gradients(model, "0", [(X[:n].to(dtype), Y[:n]), (X.to(dtype), Y)], ce)
    assert q.shape == (n + 12, 6)


def test_nearly_fitted_samples_are_not_taken_for_coupled():
    # Gradients of confident samples in float32 are differences of nearly equal numbers.
    model = stack(nn.Tanh(), dtype=torch.float32)
    with torch.no_grad():
        model[-1].weight.mul_(30)
    labels = model(X.float()).argmax(1)
    capture_activation_gradients(model, "0", (X.float(), labels), ce)


def test_tolerances():
    assert tolerance(torch.zeros(1, dtype=torch.float64)) == 1e-6
    assert tolerance(torch.zeros(1)) == 1e-4
    assert tolerance(torch.zeros(1, dtype=torch.float16)) == 8 * 2**-10


# --- noise ----------------------------------------------------------------------------------------


def test_dropout_in_training_mode_is_told():
    model = stack(nn.Dropout(0.5), nn.Tanh())
    with pytest.warns(CaptureWarning, match=r"random numbers \(dropout in training mode: 1\)"):
        first = capture_activation_gradients(model, "0", (X, Y), ce)
    captured = capture(model, "0", (X, Y), ce)
    assert captured.random
    assert torch.equal(captured.gradients, first)  # the same state of the generator, the same noise
    assert capture(model.eval(), "0", (X, Y), ce).notes == ()


def test_noise_without_a_dropout_module_is_told():
    model = stack(Named(lambda z: z + 0.1 * torch.randn_like(z))).eval()
    captured = capture(model, "0", (X, Y), ce)
    assert captured.random
    assert "dropout in training mode:" not in captured.notes[0]


# --- paths round the boundary ---------------------------------------------------------------------


def trained_a_little():
    model = residual_mlp(8, depth=3, seed=0, inputs=5, outputs=3).double()
    with torch.no_grad():
        model.head.weight.normal_(generator=torch.Generator().manual_seed(0))
    return model


@pytest.mark.parametrize("boundary", ["embed", "blocks.0", "blocks.1", "blocks", "norm", "head"])
def test_full_cuts(boundary):
    captured = capture(trained_a_little(), boundary, (X, Y), ce)
    assert captured.partial is False
    assert captured.notes == ()


@pytest.mark.parametrize("boundary", ["blocks.0.V", "blocks.1.U", "blocks.2.norm"])
def test_a_branch_beside_a_skip_connection(boundary):
    model = trained_a_little()
    with pytest.warns(CaptureWarning, match="by a path round .*skip connection.*partial derivative"):
        q = capture_activation_gradients(model, boundary, (X, Y), ce)
    captured = capture(model, boundary, (X, Y), ce)
    assert captured.partial is True
    assert torch.equal(captured.gradients, q)


def test_the_gradient_at_a_branch_is_that_at_its_sum():
    # V's output is added to the stream: its partial derivative is the full one behind the block.
    model = trained_a_little()
    branch, block = (capture(model, name, (X, Y), ce).gradients for name in ("blocks.1.V", "blocks.1"))
    assert torch.allclose(branch, block, rtol=1e-12, atol=1e-15)


def test_a_zero_head_leaves_it_undecided():
    captured = capture(residual_mlp(8, depth=2, inputs=5, outputs=3).double(), "blocks.0.V", (X, Y), ce)
    assert captured.partial is None
    assert "could not be decided" in captured.notes[0]
    assert not captured.gradients.any()


def test_a_single_sample_leaves_it_undecided():
    captured = capture(trained_a_little(), "blocks.0", (X[:1], Y[:1]), ce)
    assert captured.partial is None
    assert "could not be decided" in captured.notes[0]
    # A later batch of two decides.
    assert capture(trained_a_little(), "blocks.0", [(X[:1], Y[:1]), (X[1:3], Y[1:3])], ce).partial is False


def test_a_mask_made_from_the_input_is_told_and_one_given_apart_is_not():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.below, self.above = nn.Embedding(4, 6), nn.Linear(6, 3)

        def forward(self, tokens, keep=None):
            keep = tokens > 0 if keep is None else keep
            return (self.above(self.below(tokens)) * keep[..., None]).sum(1)

    model = seeded(lambda: Masked().double())
    tokens = torch.randint(4, (12, 5), generator=torch.Generator().manual_seed(1))
    assert capture(model, "below", (tokens, Y), ce).partial is True
    assert capture(model, "below", ({"tokens": tokens, "keep": tokens > 0}, Y), ce).partial is False


# --- layouts --------------------------------------------------------------------------------------


def test_samples_that_do_not_lie_along_the_first_axis():
    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.flat, self.head = nn.Flatten(0, 1), nn.Linear(5, 3)

        def forward(self, x):
            return self.head(self.flat(x)).unflatten(0, x.shape[:2]).sum(1)

    model = seeded(lambda: Folded().double())
    x = normal(12, 4, 5)
    with pytest.raises(InputError, match=r"shape \(64, 5\) for 16 samples and \(60, 5\) for 15.*batch_first"):
        capture_activation_gradients(model, "flat", (x, Y), ce)
    with pytest.raises(InputError, match=r"shape \(48, 5\) for 12 samples"):
        capture_activation_gradients(model, "flat", (x, Y), ce, probe=False)


def test_memory_shared_round_the_boundary():
    class Alias(nn.Module):
        def __init__(self):
            super().__init__()
            self.below, self.cut, self.above = nn.Linear(5, 6), nn.Identity(), nn.Linear(6, 3)

        def forward(self, x):
            z = self.below(x)
            same = self.cut(z)
            same.add_(1)
            return self.above(z + same)

    with pytest.raises(InputError, match="replaced by a copy of itself"):
        capture_activation_gradients(seeded(lambda: Alias().double()), "cut", (X, Y), lambda o, y: ce(o, y))
