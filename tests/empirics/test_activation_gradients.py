"""Captured gradients against loops and torch.func, the reductions, what is refused, and that no trace is left."""

import warnings

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from empirics.alignment import CaptureWarning, capture, capture_activation_gradients, sum_over_groups
from theory import InputError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def seeded(make):
    """A model built from seed 0 without touching the global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ce(output, y):
    return cross_entropy(output, y, reduction="sum")


def perceptron(dtype=torch.float64):
    return seeded(
        lambda: nn.Sequential(
            nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 3)
        ).to(dtype)
    )


X, Y = normal(10, 5), torch.arange(10) % 3


def loop(model, boundary, x, y, loss):
    """One forward and backward pass a sample, by the plain means of autograd."""
    kept = []
    handle = dict(model.named_modules())[boundary].register_forward_hook(lambda m, i, o: kept.append(o) or o)
    try:
        rows = []
        for i in range(len(y)):
            kept.clear()
            total = loss(model(x[i : i + 1]), y[i : i + 1])
            rows.append(torch.autograd.grad(total, kept[0])[0][0])
        return torch.stack(rows)
    finally:
        handle.remove()


@pytest.mark.parametrize("boundary", ["0", "1", "2", "4", "5"])
def test_equal_to_a_loop_over_samples(boundary):
    model = perceptron()
    q = capture_activation_gradients(model, boundary, (X, Y), ce)
    assert torch.allclose(q, loop(model, boundary, X, Y, ce), rtol=1e-12, atol=1e-15)


def test_equal_to_torch_func():
    model = perceptron()
    below, above = model[:3], model[3:]

    def one(z, label):
        return cross_entropy(above(z[None]), label[None])

    expected = vmap(grad(one))(below(X).detach(), Y)
    assert torch.allclose(capture_activation_gradients(model, "2", (X, Y), ce), expected, rtol=1e-12, atol=1e-15)


def test_does_not_depend_on_the_batches():
    model = perceptron()
    whole = capture_activation_gradients(model, "2", (X, Y), ce)
    for size in (1, 3, 4, 9):
        batches = list(zip(X.split(size), Y.split(size), strict=True))
        for data in (batches, tuple(batches), iter(batches), (pair for pair in batches)):
            q = capture(model, "2", data, ce).gradients
            assert torch.allclose(q, whole, rtol=1e-12, atol=1e-15)
    assert whole.shape == (10, 6)


def test_a_mean_loss_of_a_twice_larger_batch_would_be_half_as_large():
    # Why a mean is refused: the reference of the test above, scaled by 1/n.
    model = perceptron()
    with pytest.raises(InputError, match=r"must sum over samples: .*mean over samples.*reduction='sum'"):
        capture_activation_gradients(model, "2", (X, Y), cross_entropy)


def test_one_pair_may_be_a_list_and_loaders_are_taken():
    model = perceptron()
    whole = capture_activation_gradients(model, "2", (X, Y), ce)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=4)
    for data in ([X, Y], loader):
        assert torch.allclose(capture_activation_gradients(model, "2", data, ce), whole, rtol=1e-12, atol=1e-15)


class Recorder(nn.Module):
    """Everything that capture must put back: statistics, power iterations, counters that are reassigned."""

    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.spectral_norm(nn.Linear(5, 6))
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.last(self.drop(torch.tanh(self.first(x))))


def snapshot(model):
    return (
        [(name, p.detach().clone(), p.requires_grad) for name, p in model.named_parameters()],
        [(name, id(b), b.clone()) for name, b in model.named_buffers()],
        [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        [(name, m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for name, m in model.named_modules()],
        torch.get_rng_state(),
        torch.is_grad_enabled(),
    )


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b) and a.dtype == b.dtype
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_leaves_no_trace():
    model = seeded(lambda: Recorder().double())
    model(X).sum().backward()
    model.train()
    model.drop.p = 0.5
    model.last.bias.requires_grad_(False)
    before = snapshot(model)
    x, y = X.clone(), Y.clone()
    with pytest.warns(CaptureWarning, match="random numbers"):
        capture_activation_gradients(model, "first", (x, y), ce)
    assert same(before, snapshot(model))
    assert torch.equal(x, X)
    assert torch.equal(y, Y)
    model.eval()
    before = snapshot(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capture_activation_gradients(model, "first", (x, y), ce)
    assert same(before, snapshot(model))


def test_the_comparison_above_notices_a_forward_pass():
    model = seeded(lambda: Recorder().double())
    before = snapshot(model)
    model(X)
    after = snapshot(model)
    assert not same(before[1], after[1])
    assert not same(before[4], after[4])


def test_shuffled_loaders_draw_as_if_nothing_had_happened():
    model = perceptron()
    torch.manual_seed(3)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=4, shuffle=True)
    before = torch.get_rng_state()
    capture_activation_gradients(model, "2", loader, ce)
    assert torch.equal(before, torch.get_rng_state())


class Explodes(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.inner, self.error = nn.Linear(5, 5), error

    def forward(self, x):
        z = self.inner(x)
        if self.error:
            raise self.error
        return z


@pytest.mark.parametrize("error", [RuntimeError("midway"), KeyboardInterrupt()])
def test_an_exception_leaves_no_hook(error):
    model = nn.Sequential(Explodes(error), nn.Linear(5, 3)).double()
    before = snapshot(model)
    with pytest.raises(type(error)):
        capture_activation_gradients(model, "0.inner", (X, Y), ce)
    assert same(before, snapshot(model))
    with pytest.raises(ZeroDivisionError):
        capture_activation_gradients(perceptron(), "2", (X, Y), lambda output, y: 1 / 0)
    assert torch.is_grad_enabled()


def test_frozen_models_and_switched_off_autograd():
    model = perceptron()
    expected = capture_activation_gradients(model, "2", (X, Y), ce)
    model.requires_grad_(False)
    assert torch.equal(capture_activation_gradients(model, "2", (X, Y), ce), expected)
    with torch.no_grad():
        assert torch.equal(capture_activation_gradients(model, "2", (X, Y), ce), expected)
        assert not torch.is_grad_enabled()
    with torch.inference_mode():
        q = capture_activation_gradients(model, "2", (X, Y), ce)
    assert torch.equal(q, expected)


def test_inputs_that_require_gradients():
    x = X.clone().requires_grad_()
    q = capture_activation_gradients(perceptron(), "2", (x, Y), ce)
    assert x.grad is None
    assert not q.requires_grad


def test_the_network_above_may_work_in_place():
    model = seeded(lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double())
    expected = capture_activation_gradients(model, "0", (X, Y), ce)
    model[1].inplace = True
    assert torch.equal(capture_activation_gradients(model, "0", (X, Y), ce), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_dtype_is_that_of_the_activation(dtype):
    q = capture_activation_gradients(perceptron(dtype), "2", (X.to(dtype), Y), ce)
    exact = capture_activation_gradients(perceptron(), "2", (X, Y), ce)
    assert q.dtype == dtype
    bound = {torch.float64: 0, torch.float32: 1e-5, torch.bfloat16: 0.1}[dtype]
    assert float((q.double() - exact).norm() / exact.norm()) <= bound


def test_a_dtype_that_does_not_fit_is_named():
    with pytest.raises(InputError, match=r"inputs are torch.float32, the model is torch.float64: convert one"):
        capture_activation_gradients(perceptron(), "2", (X.float(), Y), ce)


# --- shapes ---------------------------------------------------------------------------------------


class Sequence(nn.Module):
    """Tokens (n, T): embedding plus position embedding, one causal mixing step, a tied head; loss per token."""

    def __init__(self, T=6, N=4, vocabulary=5):
        super().__init__()
        self.token = nn.Embedding(vocabulary, N)
        self.position = nn.Embedding(T, N)
        self.mix = nn.Linear(N, N)
        self.norm = nn.LayerNorm(N)

    def forward(self, tokens, keep=None):
        T = tokens.shape[1]
        z = self.norm(self.token(tokens) + self.position(torch.arange(T)))
        z = torch.cumsum(torch.tanh(self.mix(z)), 1)
        if keep is not None:
            z = z * keep[..., None]
        return z @ self.token.weight.T


TOKENS = torch.randint(5, (9, 6), generator=torch.Generator().manual_seed(0))
NEXT = TOKENS.roll(-1, 1)


def token_loss(output, y):
    return cross_entropy(output.flatten(0, 1), y.flatten(), reduction="sum")


def test_sequences_are_summed_over_positions():
    model = seeded(lambda: Sequence().double())
    full = loop(model, "norm", TOKENS, NEXT, token_loss)
    assert full.shape == (9, 6, 4)
    q = capture_activation_gradients(model, "norm", (TOKENS, NEXT), token_loss)
    assert torch.allclose(q, full.sum(1), rtol=1e-12, atol=1e-15)
    flat = capture_activation_gradients(model, "norm", (TOKENS, NEXT), token_loss, reduce="flatten")
    assert torch.allclose(flat, full.flatten(1), rtol=1e-12, atol=1e-15)
    channels = capture_activation_gradients(model, "norm", (TOKENS, NEXT), token_loss, reduce=(-1,))
    assert torch.allclose(channels, full.sum(2), rtol=1e-12, atol=1e-15)


def test_padding_is_masked():
    model = seeded(lambda: Sequence().double())
    full = loop(model, "norm", TOKENS, NEXT, token_loss)
    keep = torch.arange(6) < torch.tensor([6, 3, 1, 2, 6, 5, 4, 3, 2])[:, None]
    expected = (full * keep[..., None]).sum(1)
    batches = list(zip(TOKENS.split(4), NEXT.split(4), keep.split(4), strict=True))
    data = [(x, y) for x, y, _ in batches]
    masks = iter([k for _, _, k in batches])
    for mask in (keep, lambda x, y: next(masks)):
        q = capture_activation_gradients(model, "norm", data, token_loss, mask=mask)
        assert torch.allclose(q, expected, rtol=1e-12, atol=1e-15)
    assert not torch.allclose(expected, full.sum(1))


def test_masked_positions_may_carry_anything():
    class Poisoned(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut = nn.Identity()

        def forward(self, x):
            return torch.sqrt(self.cut(x)).sum((1, 2))

    x = torch.tensor([[[4.0], [0.0]], [[1.0], [0.0]]])
    model, y = Poisoned(), torch.zeros(2)

    def loss(output, y):
        return output.sum()

    with pytest.raises(InputError, match="gradients of 2 of 2 samples in batch 1 are not finite"):
        capture_activation_gradients(model, "cut", (x, y), loss, probe=False)
    q = capture_activation_gradients(model, "cut", (x, y), loss, mask=x[..., 0] > 0, probe=False)
    assert q.tolist() == [[0.25], [0.5]]


def test_sequences_of_different_length():
    model = seeded(lambda: Sequence().double())
    data = [(TOKENS[:4], NEXT[:4]), (TOKENS[4:, :3], NEXT[4:, :3])]
    q = capture_activation_gradients(model, "norm", data, token_loss)
    assert torch.allclose(q[:4], loop(model, "norm", *data[0], token_loss).sum(1), rtol=1e-12, atol=1e-15)
    assert torch.allclose(q[4:], loop(model, "norm", *data[1], token_loss).sum(1), rtol=1e-12, atol=1e-15)
    with pytest.raises(InputError, match="different length"):
        capture_activation_gradients(model, "norm", data, token_loss, reduce="flatten")


def test_convolutional_maps():
    model = seeded(lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3)).double())
    x = normal(10, 2, 4, 5)
    full = loop(model, "0", x, Y, ce)
    assert full.shape == (10, 3, 2, 3)
    for reduce, expected in (
        ("sum", full.sum((2, 3))),
        ("flatten", full.flatten(1)),
        ((1,), full.sum(1).flatten(1)),
    ):
        q = capture_activation_gradients(model, "0", (x, Y), ce, reduce=reduce)
        assert torch.allclose(q, expected, rtol=1e-12, atol=1e-15)
    keep = torch.ones(10, 2, 3, dtype=torch.bool)
    keep[:, 1] = False
    q = capture_activation_gradients(model, "0", (x, Y), ce, mask=keep)
    assert torch.allclose(q, full[:, :, 0].sum(2), rtol=1e-12, atol=1e-15)


def test_sums_over_positions_are_formed_in_float64():
    # The gradient is the weight itself: its float64 sum, rounded once, and not a sum of rounded parts.
    weight = normal(4, 4096, 3, dtype=torch.float32)

    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut = nn.Identity()

        def forward(self, x):
            return self.cut(x)

    q = capture_activation_gradients(
        Weighted(), "cut", (torch.rand(4, 4096, 3), weight), lambda output, y: (output * y).sum()
    )
    assert torch.equal(q, weight.double().sum(1).float())
    assert not torch.equal(q, weight.sum(1))


def test_groups():
    model = perceptron()
    q = capture_activation_gradients(model, "2", (X, Y), ce)
    labels = [7, 7, 3, 3, 7, 1, 1, 3, 9, 9]
    data = list(zip(X.split(4), Y.split(4), strict=True))
    expected = torch.stack([q[torch.tensor(labels) == label].sum(0) for label in (7, 3, 1, 9)])
    parts = iter([labels[:4], labels[4:8], labels[8:]])
    for groups in (labels, torch.tensor(labels), lambda x, y: next(parts)):
        grouped = capture_activation_gradients(model, "2", data, ce, groups=groups)
        assert torch.allclose(grouped, expected, rtol=1e-12, atol=1e-15)
    with pytest.raises(InputError, match="one label a sample"):
        capture_activation_gradients(model, "2", data, ce, groups=labels[:5])
    with pytest.raises(InputError, match="groups has 11 entries for 10 samples"):
        capture_activation_gradients(model, "2", data, ce, groups=[*labels, 0])


def test_sum_over_groups_keeps_the_dtype():
    q = torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float32)
    assert sum_over_groups(q, torch.tensor([5, 2, 5])).tolist() == [[5.0], [2.0]]
    assert sum_over_groups(q, ["a", "a", "a"]).dtype == torch.float32


# --- kinds of models ------------------------------------------------------------------------------


def test_tied_embedding():
    model = seeded(lambda: Sequence().double())
    full = loop(model, "token", TOKENS, NEXT, token_loss)
    # Only the embedding's output is the boundary: the head's use of the same matrix is no path for the input.
    q = capture(model, "token", (TOKENS, NEXT), token_loss)
    assert torch.allclose(q.gradients, full.sum(1), rtol=1e-12, atol=1e-15)
    assert q.partial is False


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(5, 4), nn.Linear(4, 3), nn.Linear(4, 2)

    def forward(self, x, *, scale):
        z = self.body(x)
        return {"logits": self.a(z) * scale, "value": (self.b(z),)}


def test_several_outputs_and_keyword_inputs():
    model = seeded(lambda: Several().double())

    def loss(output, y):
        return ce(output["logits"], y) + output["value"][0].square().sum()

    scale = normal(10, 1, seed=1).abs()
    captured = capture(model, "body", ({"x": X, "scale": scale}, Y), loss)
    z = model.body(X).detach().requires_grad_()
    expected = torch.autograd.grad(ce(model.a(z) * scale, Y) + model.b(z).square().sum(), z)[0]
    assert torch.allclose(captured.gradients, expected, rtol=1e-12, atol=1e-15)
    # The scale is read behind the cut, but it is an input of its own, not a detour of the first one.
    assert captured.partial is False


def test_positional_inputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(5, 3)

        def forward(self, x, shift):
            return self.body(x) + shift

    model = seeded(lambda: Two().double())
    shift = normal(10, 3, seed=2)
    q = capture_activation_gradients(model, "body", [((X, shift), Y)], ce)
    z = model.body(X).detach().requires_grad_()
    assert torch.allclose(q, torch.autograd.grad(ce(z + shift, Y), z)[0], rtol=1e-12, atol=1e-15)


def test_the_report():
    captured = capture(perceptron(), "2", (X, Y), ce)
    assert (captured.boundary, captured.shape, captured.partial, captured.random) == ("2", (6,), False, False)
    assert captured.notes == ()
    unprobed = capture(perceptron(), "2", (X, Y), ce, probe=False)
    assert unprobed.partial is None
    assert torch.equal(unprobed.gradients, captured.gradients)


# --- refusals -------------------------------------------------------------------------------------


class Reuses(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.unused, self.head = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 3)
        self.recurrent = nn.GRU(5, 5, batch_first=True)

    def forward(self, x):
        z = self.shared(torch.tanh(self.shared(x)))
        return self.head(z + self.recurrent(z[:, None])[0][:, 0])


def test_boundaries_that_are_no_cut():
    model = seeded(lambda: Reuses().double())
    for boundary, match in (
        ("heads", "no module 'heads'; did you mean 'head'"),
        ("zzz", "there are shared, unused, head, recurrent"),
        ("shared", "exactly once in a forward pass; it was called 2 times"),
        ("unused", "it was called 0 times"),
        ("recurrent", "must return one floating-point tensor .* returned tuple"),
    ):
        with pytest.raises(InputError, match=match):
            capture_activation_gradients(model, boundary, (X, Y), ce)


def test_a_meta_model_has_nothing_to_measure():
    model = perceptron().to("meta")
    with pytest.raises(InputError, match="on meta"):
        capture_activation_gradients(model, "2", (X, Y), ce)


def test_data_that_cannot_be_used():
    model = perceptron()
    used_up = iter([(X, Y)])
    list(used_up)
    for data, match in (
        ([], "no batch: an empty loader"),
        (used_up, "used up before"),
        (X, "got Tensor"),
        (3, "got int"),
        ([X], "batch 1 must be a pair"),
        ([(X, Y), (X, Y, Y)], "batch 2 must be a pair"),
        ([(X[:0], Y[:0])], "batch 1 is empty"),
        ([(X, Y[:4])], r"x has 10 samples .* y has shape \[\(4,\)\]"),
        ([(None, Y)], "no input tensor"),
    ):
        with pytest.raises(InputError, match=match):
            capture_activation_gradients(model, "2", data, ce)


def test_losses_that_cannot_be_used():
    model = perceptron()
    for loss, match in (
        (
            lambda output, y: cross_entropy(output, y, reduction="none"),
            r"one number, the sum over samples; got \(10,\)",
        ),
        (lambda output, y: 3.0, "got float"),
        (lambda output, y: ce(output.detach(), y), "does not depend differentiably"),
        (lambda output, y: torch.zeros((), requires_grad=True) * 1, "does not depend differentiably"),
        (lambda output, y: ce(output, y) + 1, "no sum of one term a sample"),
    ):
        with pytest.raises(InputError, match=match):
            capture_activation_gradients(model, "2", (X, Y), loss)


def test_options_that_cannot_be_used():
    model = seeded(lambda: Sequence().double())
    for options, match in (
        ({"reduce": "mean"}, "reduce must be 'sum', 'flatten' or a tuple"),
        ({"reduce": (0, 1)}, "those are the samples"),
        ({"mask": torch.ones(9, 5)}, r"mask must have shape \(9, 6\), samples and positions; got \(9, 5\)"),
        ({"mask": torch.ones(10, 6)}, "mask has 10 entries for 9 samples"),
        ({"memory_limit": 100}, "would take 288 bytes .4 numbers of 8 bytes a sample., above memory_limit=100"),
    ):
        with pytest.raises(InputError, match=match):
            capture_activation_gradients(model, "norm", (TOKENS, NEXT), token_loss, **options)


def test_memory_is_forecast_from_the_first_batch():
    model = perceptron()
    seen = []

    class Loader(list):
        def __iter__(self):
            for pair in super().__iter__():
                seen.append(pair)
                yield pair

    with pytest.raises(InputError, match="would take 240 bytes"):
        capture_activation_gradients(model, "2", Loader([(X[:1], Y[:1])] * 5), ce, memory_limit=200)
    assert len(seen) == 1
