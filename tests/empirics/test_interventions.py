"""Predicted against measured change of the held-out loss: closed forms, gradients of real branches, kinds of networks."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, rms_norm, scaled_dot_product_attention

from empirics.alignment import alignment_statistics, capture_activation_gradients
from empirics.alignment.interventions import Site, hadamard_gram, intervene, preservation
from empirics.networks import residual_mlp, trained_on_digits
from theory import InputError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained():
    torch.set_num_threads(1)
    return trained_on_digits(32, 0, 24)


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ce(output, y):
    return cross_entropy(output, y, reduction="sum")


def token_loss(output, y):
    return cross_entropy(output.flatten(0, 1), y.flatten(), reduction="sum")


TRAIN, TEST = torch.tensor([0, 3, 4, 7]), torch.tensor([1, 2, 5, 6, 8, 9])
X, Y = normal(10, 5), torch.arange(10) % 3


class Cut(nn.Module):
    """z -> above(z), cut at z."""

    def __init__(self, above=lambda z: z):
        super().__init__()
        self.z, self.above = nn.Identity(), above

    def forward(self, x):
        return self.above(self.z(x))


# --- closed forms ---------------------------------------------------------------------------------


def test_a_quadratic_loss_in_closed_form():
    # L = (Az - y)^2/2: q = A'(Az - y), Hessian A'A for every sample, no third derivative.
    A, y = normal(3, 5, seed=1), normal(10, 3, seed=2)
    site = Site.of(Cut(lambda z: z @ A.T), "z", (X, y), lambda out, y: ((out - y) ** 2).sum() / 2)
    r = site.response(TRAIN, TEST)
    q = (X @ A.T - y) @ A
    mu, g = q[TRAIN].mean(0), q[TEST].mean(0)
    assert pytest.approx(float(mu @ g), rel=1e-12) == r.X
    assert r.slope == pytest.approx(-r.X, rel=1e-12)
    assert r.curvature == pytest.approx(float((A @ mu).square().sum()), rel=1e-12)
    assert r.newton == pytest.approx(float(mu @ g / (A @ mu).square().sum()), rel=1e-12)
    assert abs(r.third) < 1e-12
    assert r.risk == pytest.approx(float(((X @ A.T - y)[TEST] ** 2).sum() / 2 / len(TEST)), rel=1e-12)
    assert r.unit_step == pytest.approx(float((X[TRAIN].square().sum(1).mean() / mu.square().sum()).sqrt()), rel=1e-12)
    for x in (0.02, 0.5, 1.0, 2.0, 3.0):
        assert r.ratio(x * r.newton) == pytest.approx(1 - x / 2, abs=1e-10)
    assert r.change(r.newton) == pytest.approx(-(r.X**2) / (2 * r.curvature), rel=1e-10)


def test_the_third_order_in_closed_form():
    # L = sum z^3: r = mean of (z - eta s)^3, r' = -3 s z^2, r'' = 6 s^2 z, r''' = -6 s^3, and nothing beyond.
    x = normal(10, 1).abs() + 1
    r = Site.of(Cut(), "z", (x, Y), lambda out, y: (out**3).sum()).response(TRAIN, TEST)
    s, z = float((3 * x[TRAIN] ** 2).mean()), x[TEST]
    assert pytest.approx(float((3 * s * z**2).mean()), rel=1e-12) == r.X
    assert r.curvature == pytest.approx(float((6 * s**2 * z).mean()), rel=1e-12)
    assert r.third == pytest.approx(-6 * s**3, rel=1e-12)
    for x in (0.05, 0.5, -1.0):
        eta = x * r.newton
        assert r.ratio(eta) == pytest.approx(r.predicted_ratio(eta), rel=1e-10)
        assert abs(r.ratio(eta) - (1 - x / 2)) > 1e-4


def test_concave_directions_and_negative_newton_steps_are_told_apart():
    y = torch.zeros(10, 1, dtype=torch.float64)
    x = torch.linspace(0.1, 1, 10, dtype=torch.float64)[:, None]
    hill = Site.of(Cut(), "z", (x, y), lambda out, y: torch.sin(out).sum()).response(TRAIN, TEST)
    assert hill.X > 0
    assert hill.concave
    assert hill.newton < 0
    assert hill.ratio(0.1 * abs(hill.newton)) > 1
    # A convex loss whose train and test samples disagree: eta_N < 0, but nothing is concave.
    y = torch.where(torch.isin(torch.arange(10), TRAIN), 2.0, -2.0).double()[:, None]
    bowl = Site.of(Cut(), "z", (x, y), lambda out, y: ((out - y) ** 2).sum()).response(TRAIN, TEST)
    assert bowl.X < 0
    assert not bowl.concave
    assert bowl.newton < 0
    assert bowl.change(0.01) > 0
    assert bowl.ratio(0.08 * abs(bowl.newton)) == pytest.approx(1 + 0.04, abs=1e-10)


def test_a_straight_line_has_no_newton_step():
    data, loss = (X.abs(), Y), lambda out, y: out.sum()
    r = Site.of(Cut(), "z", data, loss).response(TRAIN, TEST)
    assert (r.curvature, r.third, r.newton) == (0, 0, float("inf"))
    with pytest.raises(InputError, match=r"no curvature along an insertion, so no Newton step; leave fractions=\(\)"):
        intervene(Cut(), "z", data, loss, M=2, K=2, pairs=6, seed=0)
    seen = intervene(Cut(), "z", data, loss, M=2, K=2, pairs=6, seed=0, fractions=())
    assert [step.kind for step in seen.steps] == ["relative"] * 4
    assert all(step.sign_accuracy.estimate == 1 for step in seen.steps)


def test_what_is_left_is_of_fourth_order(trained):
    # ratio - prediction ~ eta^3: a wrong second or third order would leave eta or eta^2.
    site = Site.of(trained.network, trained.boundary, trained.held_out, ce)
    r = site.response(torch.arange(256), torch.arange(256, 768))
    coarse, fine = (abs(r.ratio(x * r.newton) - r.predicted_ratio(x * r.newton)) for x in (0.2, 0.1))
    assert 6 < coarse / fine < 10
    assert abs(r.third) * r.newton**2 / (6 * r.X) > 1e-3


# --- branches -------------------------------------------------------------------------------------


class Grown(nn.Module):
    """A network with the branch in place, V a parameter: the definition of what is being predicted."""

    def __init__(self, model, boundary, branch, V):
        super().__init__()
        self.model, self.V = model, V
        model.get_submodule(boundary).register_forward_hook(lambda m, i, z: z + branch(z) @ self.V.T)

    def forward(self, x):
        return self.model(x)


def grown_gradients(model, boundary, branch, shape, x, y, loss):
    """dL_i/dV at V = 0, one sample at a time, by the plain means of autograd."""
    V = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    grown = Grown(copy.deepcopy(model).double(), boundary, branch, V)
    return torch.stack([torch.autograd.grad(loss(grown(x[i : i + 1]), y[i : i + 1]), V)[0] for i in range(len(y))])


class Sequence(nn.Module):
    def __init__(self, attention=False):
        super().__init__()
        self.token, self.norm, self.mix = nn.Embedding(5, 4), nn.LayerNorm(4), nn.Linear(4, 4)
        self.attention = attention

    def forward(self, tokens):
        z = self.norm(self.token(tokens))
        if self.attention:
            heads = (t.unflatten(2, (2, 2)).transpose(1, 2) for t in (z, torch.tanh(self.mix(z)), z))
            z = z + scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        else:
            z = torch.cumsum(torch.tanh(self.mix(z)), 1)
        return z @ self.token.weight.T


TOKENS = torch.randint(5, (10, 6), generator=torch.Generator().manual_seed(0))
NEXT = TOKENS.roll(-1, 1)
PERCEPTRON = seeded(
    lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3))
)


@pytest.mark.parametrize("kind", ["vectors", "sequences"])
def test_branches_grow_as_their_own_gradients_say(kind):
    U = normal(7, 4, seed=3)

    def branch(z):
        return gelu(z @ U.T)

    model, boundary, x, y, loss = {
        "vectors": (PERCEPTRON, "2", X, Y, ce),
        "sequences": (seeded(Sequence), "norm", TOKENS, NEXT, token_loss),
    }[kind]
    s = grown_gradients(model, boundary, branch, (4, 7), x, y, loss)
    site = Site.of(model, boundary, (x, y), loss, branch=branch)
    gram = hadamard_gram(site.q, branch(site.z))
    assert torch.allclose(gram, s.flatten(1) @ s.flatten(1).T, rtol=1e-11, atol=1e-14)
    r = site.response(TRAIN, TEST)
    gamma = s[TRAIN].mean(0)
    assert pytest.approx(float((gamma * s[TEST].mean(0)).sum()), rel=1e-11) == r.X
    assert r.slope == pytest.approx(-r.X, rel=1e-11)
    # The step itself: V = -eta Gamma_M in the grown network.
    eta = 0.5 * r.unit_step
    V = torch.nn.Parameter(torch.zeros(4, 7, dtype=torch.float64))
    grown = Grown(copy.deepcopy(model).double(), boundary, branch, V)
    with torch.no_grad():
        before = float(loss(grown(x[TEST]), y[TEST])) / len(TEST)
        V.copy_(-eta * gamma)
        after = float(loss(grown(x[TEST]), y[TEST])) / len(TEST)
    assert r.risk == pytest.approx(before, rel=1e-12)
    assert r.change(eta) == pytest.approx(after - before, rel=1e-9)
    moved = (branch(site.z[TRAIN]) @ gamma.T).square().sum()
    assert r.unit_step == pytest.approx(float((site.z[TRAIN].square().sum() / moved).sqrt()), rel=1e-12)


def test_hadamard_grams_in_strips_and_between_two_samples(monkeypatch):
    q, phi, p, psi = normal(6, 3, 2), normal(6, 3, 5, seed=1), normal(4, 2, 2, seed=2), normal(4, 2, 5, seed=3)
    explicit = torch.einsum("itd,ith->idh", q, phi), torch.einsum("itd,ith->idh", p, psi)
    expected = explicit[0].flatten(1) @ explicit[1].flatten(1).T
    assert torch.allclose(hadamard_gram(q, phi, p, psi), expected, rtol=1e-12, atol=1e-13)
    monkeypatch.setattr("empirics.alignment.interventions.TILE_BYTES", 1)
    assert torch.allclose(hadamard_gram(q, phi, p, psi), expected, rtol=1e-12, atol=1e-13)
    with pytest.raises(InputError, match="same samples and positions"):
        hadamard_gram(q, phi[:, :2])


def test_dimensions_of_a_branch_from_its_gram_alone():
    # Everything depends on the Gram matrix: any factor of it has the statistics of the d h vectors that were not formed.
    q, phi = normal(60, 3) + 1, normal(60, 4, seed=1) + 1
    vectors = torch.einsum("id,ih->idh", q, phi).flatten(1)
    values, columns = torch.linalg.eigh(hadamard_gram(q, phi))
    factor = columns * values.clamp(min=0).sqrt()
    a, b = alignment_statistics(vectors), alignment_statistics(factor)
    assert a.d_align.estimate == pytest.approx(b.d_align.estimate, rel=1e-8)
    assert a.d_align.interval == pytest.approx(b.d_align.interval, rel=1e-8)


def test_a_branch_given_as_a_module_is_copied():
    branch = seeded(lambda: nn.Sequential(nn.Linear(4, 7), nn.GELU()))
    r = Site.of(PERCEPTRON, "2", (X, Y), ce, branch=branch).response(TRAIN, TEST)
    assert branch[0].weight.dtype == torch.float32
    assert branch[0].weight.requires_grad
    assert r.slope == pytest.approx(-r.X, rel=1e-11)


# --- shared vectors -------------------------------------------------------------------------------


@pytest.mark.parametrize(("reduce", "axes"), [("sum", (1,)), ("flatten", ()), ((2,), (2,)), ((-1,), (2,))])
def test_vectors_shared_by_positions(reduce, axes):
    model = seeded(Sequence)
    r = Site.of(model, "norm", (TOKENS, NEXT), token_loss, reduce=reduce).response(TRAIN, TEST)
    q = capture_activation_gradients(model.double(), "norm", (TOKENS, NEXT), token_loss, reduce=reduce)
    assert pytest.approx(float(q[TRAIN].mean(0) @ q[TEST].mean(0)), rel=1e-11) == r.X
    assert r.slope == pytest.approx(-r.X, rel=1e-11)
    # The insertion lies at every position that shares it: |D|^2 counts each.
    z = Site.of(model, "norm", (TOKENS, NEXT), token_loss).z[TRAIN]
    copies = {"sum": 6, "flatten": 1}.get(reduce, 4)
    size = copies * float(q[TRAIN].mean(0).square().sum())
    assert r.unit_step == pytest.approx(float((z.square().sum() / len(z) / size).sqrt()), rel=1e-11)


def test_channels_of_convolutions():
    model = seeded(lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 3)))
    r = Site.of(model, "0", (normal(10, 2, 4, 5), Y), ce).response(TRAIN, TEST)
    assert r.slope == pytest.approx(-r.X, rel=1e-11)
    # It is the bias of the convolution that moves: the same change, made in its parameter.
    q = capture_activation_gradients(model.double(), "0", (normal(10, 2, 4, 5), Y), ce)
    other = copy.deepcopy(model)
    eta = 0.3 * r.unit_step
    with torch.no_grad():
        other[0].bias -= eta * q[TRAIN].mean(0)
        risks = [float(ce(m(normal(10, 2, 4, 5)[TEST]), Y[TEST])) / len(TEST) for m in (model, other)]
    assert r.change(eta) == pytest.approx(risks[1] - risks[0], rel=1e-9)


# --- kinds of networks ----------------------------------------------------------------------------


def test_fused_attention_has_its_second_derivative():
    model = seeded(lambda: Sequence(attention=True))
    r = Site.of(model, "norm", (TOKENS, NEXT), token_loss).response(TRAIN, TEST)
    x = 0.02
    assert r.ratio(x * r.newton) == pytest.approx(r.predicted_ratio(x * r.newton), abs=1e-5)


def test_the_users_model_is_left_alone(trained):
    model = trained.network
    model.zero_grad()
    before = (
        [(p.clone(), p.dtype, p.requires_grad, p.grad) for p in model.parameters()],
        [(m.training, len(m._forward_hooks)) for m in model.modules()],
    )
    state = torch.get_rng_state()
    with torch.no_grad():
        intervene(model, "blocks.1", trained.held_out, ce, M=4, K=4, pairs=6, seed=0)
    assert torch.equal(state, torch.get_rng_state())
    for p, (value, dtype, wants, grad) in zip(model.parameters(), before[0], strict=True):
        assert torch.equal(p, value)
        assert (p.dtype, p.requires_grad, p.grad) == (dtype, wants, grad)
    assert before[1] == [(m.training, len(m._forward_hooks)) for m in model.modules()]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_measured_in_float64_whatever_the_model_is_stored_in(dtype):
    model = copy.deepcopy(PERCEPTRON).to(dtype)
    r = Site.of(model, "2", (X.to(dtype), Y), ce).response(TRAIN, TEST)
    # So small a step that nothing would be left of its effect in float32: eps r is 1e-7 of r, the effect 1e-8.
    eta = 1e-8 * r.risk / abs(r.X)
    assert r.ratio(eta) == pytest.approx(1, abs=1e-5)
    single = float(torch.tensor(r.risk, dtype=torch.float32) + r.change(eta)) - float(torch.tensor(r.risk).float())
    assert single == 0


def test_frozen_models_and_inference_mode():
    expected = Site.of(PERCEPTRON, "2", (X, Y), ce).response(TRAIN, TEST)
    frozen = copy.deepcopy(PERCEPTRON).requires_grad_(False)
    with torch.inference_mode():
        r = Site.of(frozen, "2", (X, Y), ce).response(TRAIN, TEST)
        assert r.change(0.1) == expected.change(0.1)
    assert (r.X, r.curvature, r.third) == (expected.X, expected.curvature, expected.third)


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(5, 4), nn.Linear(4, 3), nn.Linear(4, 2)

    def forward(self, x, *, scale):
        z = self.body(x)
        return {"logits": self.a(z) * scale, "value": (self.b(z),)}


def test_several_outputs_keyword_inputs_and_batches():
    model = seeded(Several)
    x = {"x": X, "scale": normal(10, 1, seed=1).abs()}

    def loss(output, y):
        return ce(output["logits"], y) + output["value"][0].square().sum()

    whole = Site.of(model, "body", (x, Y), loss).response(TRAIN, TEST)
    assert whole.slope == pytest.approx(-whole.X, rel=1e-11)
    batches = [({"x": X[i : i + 4], "scale": x["scale"][i : i + 4]}, Y[i : i + 4]) for i in (0, 4, 8)]
    parts = Site.of(model, "body", batches, loss).response(TRAIN, TEST)
    assert pytest.approx(whole.X, rel=1e-12) == parts.X
    assert parts.change(0.1) == pytest.approx(whole.change(0.1), rel=1e-10)


def test_a_tied_embedding_moves_its_output_only():
    model = seeded(Sequence)

    def loss(output, y):  # the softmax would not see a shift of all rows
        return ((output - 1) ** 2).sum()

    r = Site.of(model, "token", (TOKENS, NEXT), loss).response(TRAIN, TEST)
    assert r.slope == pytest.approx(-r.X, rel=1e-11)
    # Had the shared matrix moved, the head would have moved as well.
    moved = copy.deepcopy(model).double()
    q = capture_activation_gradients(moved, "token", (TOKENS, NEXT), loss)
    eta = 0.1 * r.unit_step
    with torch.no_grad():
        before = float(loss(moved(TOKENS[TEST]), NEXT[TEST])) / len(TEST)
        moved.token.weight -= eta * q[TRAIN].mean(0)
        after = float(loss(moved(TOKENS[TEST]), NEXT[TEST])) / len(TEST)
    assert abs(after - before - r.change(eta)) > 1e-3 * abs(r.change(eta))


def test_a_skip_round_the_boundary_stays_as_it_is():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.branch, self.head = nn.Linear(5, 5), nn.Linear(5, 3)

        def forward(self, x):
            return self.head(torch.tanh(x + self.branch(x)))

    r = Site.of(seeded(Skip), "branch", (X, Y), ce).response(TRAIN, TEST)
    assert r.slope == pytest.approx(-r.X, rel=1e-11)


def test_networks_and_boundaries_that_are_refused():
    narrow = nn.Sequential(nn.Linear(5, 5), Cut(lambda z: z.float()), nn.Identity())

    def distances(z):
        return torch.cdist(z[:, None], torch.ones(1, 2, 5, dtype=z.dtype).expand(len(z), 2, 5), p=3)[:, 0]

    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.position, self.head = nn.Embedding(5, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.head(x + self.position(torch.arange(5))).sum(1)

    def flat(output, y):
        return output.sum()

    noisy = nn.Sequential(nn.Linear(5, 5), nn.Dropout(0.5), nn.Linear(5, 3))
    meta = copy.deepcopy(PERCEPTRON).to("meta")
    for model, boundary, data, loss, match in (
        (narrow, "2", (X, Y), flat, "computes in torch.float32 although its parameters are float64"),
        (narrow, "0", (X, Y), flat, "the loss is torch.float32 for float64 inputs"),
        (Cut(distances), "z", (X, Y), flat, "no derivative of order 2"),
        (
            Positions(),
            "position",
            (normal(5, 5)[:, None].expand(5, 5, 5)[:, :, :3], Y[:5]),
            flat,
            "without an axis of 5",
        ),
        (noisy, "0", (X, Y), ce, "cannot be measured where noise changes the loss.*model.eval"),
        (meta, "0", (X, Y), ce, "meta"),
        (PERCEPTRON, "2", [], ce, "no batch: an empty loader"),
        (PERCEPTRON, "2", [(X, Y, Y)], ce, r"no pairs \(x, y\)"),
        (PERCEPTRON, "2", 3, ce, r"no pairs \(x, y\)"),
        (PERCEPTRON, "2", [(X, Y), (X[:, :4], Y)], ce, "batches must fit together"),
        (PERCEPTRON, "2", (X, Y), cross_entropy, "must sum over samples"),
        (PERCEPTRON, "zzz", (X, Y), ce, "no module 'zzz'"),
    ):
        with pytest.raises(InputError, match=match):
            Site.of(model, boundary, data, loss).response(torch.tensor([0, 3]), torch.tensor([1, 2]))
    for options, match in (({"reduce": (0,)}, "behind the samples"), ({"reduce": "mean"}, "'sum', 'flatten'")):
        with pytest.raises(InputError, match=match):
            Site.of(PERCEPTRON, "2", (X, Y), ce, **options)
    conv = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(18, 3))
    with pytest.raises(InputError, match=r"channels last; got \(10, 3, 2, 3\)"):
        Site.of(conv, "0", (normal(10, 2, 4, 5), Y), ce, branch=lambda z: z)


def test_a_zero_head_has_nothing_to_insert():
    x, y = normal(20, 64), torch.arange(20) % 10
    with pytest.raises(InputError, match="train gradients is zero"):
        intervene(residual_mlp(16), "blocks.1", (x, y), ce, M=4, K=4, pairs=6, seed=0)
    r = Site.of(PERCEPTRON, "2", (X, Y), ce)
    silent = Site(r.cut, r.x, r.y, r.z, r.q * torch.isin(torch.arange(10), TRAIN)[:, None], r.positions, None)
    assert silent.response(TRAIN, TEST).X == 0


# --- many pairs -----------------------------------------------------------------------------------


def test_pairs_on_the_trained_network(trained):
    seen = intervene(trained.network, trained.boundary, trained.held_out, ce, M=64, K=64, pairs=30, seed=0)
    newton, relative = seen.steps[:3], seen.steps[3:]
    for step in newton:
        assert step.sign_accuracy.estimate == 1
        # 1 - x/2, second order alone; what third order adds to the median is below 2e-3 here.
        assert abs(step.median_ratio.estimate - (1 - step.size / 2)) < 2e-3
        assert step.worst_gap < 1e-4
    assert [step.size for step in relative] == [0.003, 0.01, 0.03, 0.1]
    assert relative[0].sign_accuracy.estimate >= 0.95
    assert 0.95 < relative[0].median_ratio.estimate < 1
    medians = [step.median_ratio.estimate for step in relative]
    assert medians == sorted(medians, reverse=True)
    assert medians[-1] < 0.7
    assert seen.slope_error < 1e-10
    assert 0.02 < seen.newton_size < 0.3
    low, high = newton[0].sign_accuracy.interval
    assert high == 1
    assert low == pytest.approx(0.025 ** (1 / 30), rel=1e-9)


def test_misaligned_pairs_are_predicted_to_lose(trained):
    seen = intervene(
        trained.network, trained.boundary, trained.held_out, ce, M=4, K=4, pairs=40, seed=1, steps=(0.001,)
    )
    assert 0.1 < seen.misaligned < 0.6
    assert seen.steps[-1].sign_accuracy.estimate >= 0.95
    assert seen.concave == 0


def test_a_fixed_step_knows_nothing_of_the_test_samples(trained):
    site = Site.of(trained.network, trained.boundary, trained.held_out, ce)
    train = torch.arange(8)
    a, b = (site.response(train, torch.arange(start, start + 8)) for start in (8, 16))
    assert a.unit_step == b.unit_step
    assert a.newton != b.newton
    other = site.response(torch.arange(100, 108), torch.arange(8, 16))
    assert other.unit_step != a.unit_step


def test_determined_by_the_seed_alone(trained):
    def run(seed):
        return intervene(trained.network, "blocks.1", trained.held_out, ce, M=4, K=4, pairs=6, seed=seed, steps=())

    torch.manual_seed(1)
    first = run(3)
    torch.manual_seed(2)
    assert run(3) == first
    assert run(4).steps != first.steps
    assert first.steps[0].sign_accuracy.seed == 3


def test_budgets_that_do_not_fit():
    for options, match in (
        ({"M": 6, "K": 5}, r"M \+ K <= 10 samples, 6 pairs; got M=6, K=5, pairs=6"),
        ({"M": 0, "K": 5}, "M=0"),
        ({"M": 2, "K": 2, "pairs": 5}, "pairs=5"),
    ):
        with pytest.raises(InputError, match=match):
            intervene(PERCEPTRON, "2", (X, Y), ce, **{"pairs": 6, "seed": 0, **options})


def test_the_interval_of_the_median_is_between_order_statistics(trained):
    # 6 ratios: 2/2^6 = 3.1 % of samples lie on one side of the median, so the interval is their range.
    site = Site.of(trained.network, "blocks.1", trained.held_out, ce)
    seen = intervene(trained.network, "blocks.1", trained.held_out, ce, M=3, K=5, pairs=6, seed=0, steps=(0.01,))
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randperm(1197, generator=generator)[:8] for _ in range(6)]
    responses = [site.response(d[:3], d[3:]) for d in drawn]
    ratios = [r.ratio(0.01 * r.unit_step) for r in responses]
    # Along -D for either sign of X: the step is |eta_N|, and 1 + x/2 is right where the pair is misaligned.
    assert 0 < seen.misaligned < 1
    ratios_at_newton = [r.ratio(0.05 * abs(r.newton)) for r in responses]
    ends = seen.steps[1].median_ratio.interval
    assert ends == (pytest.approx(min(ratios_at_newton)), pytest.approx(max(ratios_at_newton)))
    assert ends[0] < 0.98 < 1.02 < ends[1]
    last = seen.steps[-1].median_ratio
    assert last.interval == (pytest.approx(min(ratios)), pytest.approx(max(ratios)))
    assert last.estimate == pytest.approx(sum(sorted(ratios)[2:4]) / 2)


# --- the receipt of preservation ------------------------------------------------------------------


def test_report_11_a_block_with_zero_output_changes_nothing(trained):
    block = seeded(lambda: nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)))
    nn.init.zeros_(block[2].weight)
    nn.init.zeros_(block[2].bias)
    receipt = preservation(trained.network, block, trained.held_out[0], boundary="blocks.1")
    assert receipt.max_change == 0
    assert receipt.preserved
    assert receipt.max_output > 1
    nn.init.constant_(block[2].bias, 1e-9)
    receipt = preservation(trained.network, block, trained.held_out[0], boundary="blocks.1")
    assert 1e-12 < receipt.max_change < 1e-7
    assert not receipt.preserved


def test_report_11_a_widened_network():
    narrow = seeded(lambda: nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)))
    wide = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    twins = torch.tensor([0, 1, 2, 3, 4, 5, 0, 3])
    share = torch.tensor([0.3, 1, 1, 0.7, 1, 1, 0.7, 0.3], dtype=torch.float64)
    with torch.no_grad():
        wide.double()
        wide[0].weight.copy_(narrow[0].weight[twins])
        wide[0].bias.copy_(narrow[0].bias[twins])
        wide[2].weight.copy_(narrow[2].weight[:, twins] * share)
        wide[2].bias.copy_(narrow[2].bias)
    assert 0 < preservation(narrow, wide, X).max_change < 1e-12
    # Split in float32 the halves do not add up, and the receipt says so.
    wide[2].weight.data = wide[2].weight.float().double()
    receipt = preservation(narrow, wide, X)
    assert receipt.max_change > 1e-10
    assert not receipt.preserved


def test_what_no_receipt_can_be_given_for():
    with pytest.raises(InputError, match="differ in shape"):
        preservation(nn.Linear(5, 3), nn.Linear(5, 4), X)
    with pytest.raises(InputError, match="not finite"):
        preservation(PERCEPTRON, lambda z: 0 * (z / 0), X, boundary="2")


def test_rms_normalised_branch_of_a_residual_network(trained):
    U = normal(48, 32, seed=5) / 32**0.5

    def branch(z):
        return gelu(rms_norm(z, (32,)) @ U.T)

    held_out = tuple(each[:400] for each in trained.held_out)
    seen = intervene(trained.network, "blocks.1", held_out, ce, M=64, K=64, pairs=12, seed=0, branch=branch)
    assert seen.slope_error < 1e-10
    for step in seen.steps[:3]:
        assert abs(step.median_ratio.estimate - (1 - step.size / 2)) < 2e-3
    assert seen.steps[3].sign_accuracy.estimate == 1
