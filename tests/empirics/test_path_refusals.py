"""Each failure of the authors' code, with the right outcome; what is refused, by name and reason; what is accepted."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from empirics.path import path_condition
from theory import InputError


class Net(nn.Module):
    """Modules by keyword, forward(self, x) by function: what a test is about stands in one line."""

    def __init__(self, forward, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)
        self.run = forward

    def forward(self, x):
        return self.run(self, x)


def kept(model, *shape, training=True):
    """Condition a float64 copy with random running statistics; the receipt, the function having been kept."""
    torch.manual_seed(0)
    model = copy.deepcopy(model).double().train(training)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
    x = torch.randn(3, *shape, dtype=torch.float64)
    receipt = path_condition(model, x)
    assert receipt.max_output_change < 1e-12
    assert receipt.gap_after < receipt.gap_before
    assert model.training is training
    return receipt


# Section 7 of the notes and field reports 32, 34, 35, one by one.


def test_an_identity_skip_ties_its_channels():
    """Their chain of convolutions changed this function by 48 %, that of a residual perceptron by 331 %, without a word."""
    torch.manual_seed(1)
    net = Net(
        lambda s, x: s.c(F.relu(s.b(F.relu(s.a(x))) + s.a(x).relu())),
        a=nn.Conv2d(3, 6, 3, padding=1),
        b=nn.Conv2d(6, 6, 3, padding=1),
        c=nn.Conv2d(6, 2, 3, padding=1),
    )
    with pytest.raises(InputError, match="a is used more than once"):
        kept(net, 3, 5, 5)
    once = Net(
        lambda s, x: (lambda h: s.c(F.relu(s.b(h) + h)))(F.relu(s.a(x))),
        a=nn.Conv2d(3, 6, 3, padding=1),
        b=nn.Conv2d(6, 6, 3, padding=1),
        c=nn.Conv2d(6, 2, 3, padding=1),
    )
    receipt = kept(once, 3, 5, 5)
    assert torch.equal(receipt.factors["a"], receipt.factors["b"])
    assert receipt.labels == 6


def test_batch_normalisation_is_exact_in_both_modes():
    """27 to 44 % in training mode there; here the factor goes on gamma and beta alone."""
    layers = [
        nn.Conv2d(3, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 4, 1),
        nn.BatchNorm2d(4),
    ]
    net = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(4, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    for training in (True, False):
        receipt = kept(net, 3, 8, 8, training=training)
        assert not receipt.factors["0"].any()
        assert receipt.factors["1"].all()
        assert receipt.labels == 12


def test_the_order_of_registration_does_not_matter():
    """Layers taken in the order of registration: 48 %."""
    net = Net(lambda s, x: s.c(F.relu(s.a(F.relu(s.b(x))))), a=nn.Linear(5, 5), c=nn.Linear(5, 2), b=nn.Linear(5, 5))
    kept(net, 5)


@pytest.mark.parametrize("activation", [nn.Tanh(), nn.Sigmoid(), nn.ELU(), nn.ReLU6(), nn.Softplus(), nn.Hardtanh()])
def test_what_is_not_homogeneous_is_refused(activation):
    """Tanh was accepted: 11 to 13 %."""
    net = nn.Sequential(nn.Linear(3, 4), activation, nn.Linear(4, 2))
    with pytest.raises(InputError, match=f"path conditioning: 1: {type(activation).__name__} is not homogeneous"):
        path_condition(net, torch.zeros(1, 3))


def test_a_unit_without_outgoing_weights_stays_finite():
    """TorchScript raised "non-positive root"; elsewhere NaN became 0."""
    net = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        net[2].weight[:, 1] = 0
        net[4].weight[:, 2] = 0
        net[0].weight[3] = 0
        net[0].bias[3] = 0
    receipt = kept(net, 3)
    assert all(torch.isfinite(each).all() for each in receipt.factors.values())
    dead = {name: count for name, count, reason in receipt.skipped if "g = 0" in reason}
    # Unit 1 of layer 0 is read by nobody, unit 2 of layer 2 neither; unit 3 is 0 itself, so nothing comes out of it.
    assert dead == {"0.weight": 3, "0.bias": 1, "2.weight": 6 + 4 - 1, "2.bias": 1}


def test_other_sizes_groups_and_dtypes():
    """28 x 28 was a shape error, float64 a dtype error, a grouped convolution an assertion."""
    layers = [
        nn.Conv2d(1, 4, 5),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3, groups=2, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
    ]
    kept(nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(8 * 9 * 9, 10)), 1, 28, 28)


def test_the_perceptron_on_top_of_convolutions_is_rescaled_too():
    """Theirs left the last convolution and the hidden Linear layers alone."""
    net = nn.Sequential(nn.Conv2d(2, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 16, 12), nn.ReLU(), nn.Linear(12, 3))
    receipt = kept(net, 2, 6, 6)
    assert receipt.factors["0"].all()
    assert receipt.factors["3"].all()
    assert receipt.labels == 17


# What is refused, by name.


class Scaled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


def free_parameter():
    net = Net(lambda s, x: s.b(F.relu(s.a(x)) * s.scale), a=nn.Linear(4, 4), b=nn.Linear(4, 2))
    net.scale = nn.Parameter(torch.ones(4))
    return net


def shared_tensor():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    net[2].weight = net[0].weight
    return net


def shared_memory():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    net[2].weight = nn.Parameter(net[0].weight.data.t())
    return net


def branching(s, x):
    return s.a(x) if x.sum() > 0 else -s.a(x)


REFUSED = {
    "LayerNorm": (lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), "1: LayerNorm mixes the channels"),
    "GroupNorm": (lambda: nn.Sequential(nn.Linear(4, 4), nn.GroupNorm(2, 4)), "1: GroupNorm mixes"),
    "attention module": (
        lambda: Net(lambda s, x: s.a(x, x, x)[0], a=nn.MultiheadAttention(4, 2)),
        "a: MultiheadAttention packs its projections",
    ),
    "recurrent": (lambda: Net(lambda s, x: s.a(x)[0], a=nn.LSTM(4, 4)), "a: LSTM uses its weights several times"),
    "transposed": (
        lambda: nn.Sequential(nn.ConvTranspose1d(1, 2, 2)),
        "ConvTranspose1d is not on the list of supported modules",
    ),
    "embedding": (lambda: nn.Sequential(nn.Embedding(5, 4)), "Embedding is not on the list"),
    "subclass": (lambda: nn.Sequential(Scaled(4, 4)), "linear, at linear: uses a parameter|uses a parameter outside"),
    "used twice": (
        lambda: Net(lambda s, x: s.a(F.relu(s.a(x))), a=nn.Linear(4, 4)),
        "a is used more than once, with one weight for both places",
    ),
    "one tensor": (shared_tensor, "2.weight and 0.weight are one tensor"),
    "one memory": (shared_memory, "share memory"),
    "parametrised": (lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 4))), "0 is parametrised"),
    "weight norm": (lambda: nn.Sequential(_old_weight_norm(nn.Linear(4, 4))), "cannot be copied .*weight_norm"),
    "free parameter": (
        free_parameter,
        "scale: uses a parameter outside of any supported module|uses a parameter outside",
    ),
    "control flow": (lambda: Net(branching, a=nn.Linear(4, 4)), "cannot be traced .*control flow"),
    "function": (
        lambda: Net(lambda s, x: s.a(x).exp(), a=nn.Linear(4, 4)),
        "exp, at exp: is not on the list of operations",
    ),
    "constant": (lambda: Net(lambda s, x: s.a(x) + 1, a=nn.Linear(4, 4)), "adds a constant"),
    "broadcast": (
        lambda: Net(lambda s, x: s.a(x) + s.a.weight.new_zeros(1) + 0, a=nn.Linear(4, 4)),
        "parameter|constant",
    ),
    "shapes": (
        lambda: Net(lambda s, x: s.a(x) + s.b(x), a=nn.Linear(4, 4), b=nn.Linear(4, 1)),
        r"adds activations of shapes \(1, 4\) and \(1, 1\)",
    ),
    "alpha": (lambda: Net(lambda s, x: torch.add(s.a(x), x, alpha=2), a=nn.Linear(4, 4)), "alpha=2"),
    "division": (lambda: Net(lambda s, x: 1 / s.a(x), a=nn.Linear(4, 4)), "neither a number nor an activation"),
    "samples": (
        lambda: Net(lambda s, x: s.a(x) - s.a(x).mean(0), a=nn.Linear(4, 4)),
        "used more than once|mixes samples",
    ),
    "mean over samples": (lambda: Net(lambda s, x: s.a(x).mean(), a=nn.Linear(4, 4)), "mixes samples"),
    "dilation": (lambda: nn.Sequential(nn.MaxPool1d(2, dilation=2)), "dilation"),
    "indices": (lambda: nn.Sequential(nn.MaxPool1d(2, return_indices=True)), "returned indices"),
    "padding": (lambda: Net(lambda s, x: F.pad(s.a(x), (0, 1)), a=nn.Linear(4, 4)), "pad, at pad"),
    "not finite": (lambda: _filled(nn.Linear(4, 4), float("nan")), "weight has an entry that is not finite"),
    "all frozen": (lambda: nn.Linear(4, 4).requires_grad_(False), "everything frozen"),
}


def _old_weight_norm(module):
    with pytest.warns(FutureWarning):
        return torch.nn.utils.weight_norm(module)


def _filled(module, value):
    nn.init.constant_(module.weight, value)
    return module


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_place_and_the_reason(name):
    build, message = REFUSED[name]
    model = build()
    shape = (1, 1, 4) if name in ("transposed", "dilation", "indices") else (1, 4)
    x = torch.zeros(shape) if name != "embedding" else torch.zeros(1, 3, dtype=torch.int64)
    before = {key: each.clone() for key, each in model.state_dict().items()}
    with pytest.raises(InputError, match=message):
        path_condition(model, x)
    assert all(torch.equal(each, before[key]) or each.isnan().all() for key, each in model.state_dict().items())


def test_bad_examples_are_refused():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    for example in ([1.0, 2.0, 3.0], torch.tensor(1.0), torch.zeros(0, 3), (torch.zeros(1, 3), None)):
        with pytest.raises(InputError, match="the example must be a tensor, or a tuple of tensors"):
            path_condition(net, example)
    with pytest.raises(InputError, match="the example does not fit the model"):
        path_condition(net, torch.zeros(2, 5))
    two = Net(lambda s, x: s.a(x), a=nn.Linear(3, 2))
    with pytest.raises(InputError, match="has 2 inputs, more than the model takes"):
        path_condition(two, (torch.zeros(1, 3), torch.zeros(1, 3)))


def bilinear(s, x):
    u, w = s.a(x.flatten(1)).relu().chunk(2, dim=1)
    return s.b(u * w)


# What is accepted, in the forms in which people write it.

ACCEPTED = {
    "methods": (
        lambda s, x: s.b(s.a(x).relu().permute(0, 2, 3, 1).contiguous().flatten(1)),
        {"a": nn.Conv2d(2, 4, 3), "b": nn.Linear(4 * 16, 3)},
    ),
    "global mean": (lambda s, x: s.b(F.relu(s.a(x)).mean((2, 3))), {"a": nn.Conv2d(2, 4, 3), "b": nn.Linear(4, 3)}),
    "global sum": (
        lambda s, x: s.b(torch.sum(F.relu(s.a(x)), dim=(2, 3))),
        {"a": nn.Conv2d(2, 4, 3), "b": nn.Linear(4, 3)},
    ),
    "functional pools": (
        lambda s, x: s.b(F.adaptive_avg_pool2d(F.max_pool2d(F.avg_pool2d(F.relu(s.a(x)), 2), 2, 1), 1).flatten(1)),
        {"a": nn.Conv2d(2, 4, 3), "b": nn.Linear(4, 3)},
    ),
    "bilinear": (
        bilinear,
        {"a": nn.Linear(72, 12), "b": nn.Linear(6, 3)},
    ),
    "stack": (
        lambda s, x: s.c(torch.stack([F.relu(s.a(x.flatten(1))), F.relu(s.b(x.flatten(1)))], 1).flatten(1)),
        {"a": nn.Linear(72, 5), "b": nn.Linear(72, 5), "c": nn.Linear(10, 2)},
    ),
    "scaled skip": (
        lambda s, x: (lambda h: s.c(F.leaky_relu(h / 3 - 0.2 * s.b(h), 0.1)))(F.relu(s.a(x.flatten(1)))),
        {"a": nn.Linear(72, 5), "b": nn.Linear(5, 5), "c": nn.Linear(5, 2)},
    ),
    "tokens": (
        lambda s, x: s.b(F.relu(s.a(x.flatten(2).transpose(1, 2)))).mean(1),
        {"a": nn.Linear(2, 7), "b": nn.Linear(7, 3)},
    ),
    "logits": (
        lambda s, x: F.log_softmax(s.b(F.relu(s.a(x.flatten(1)))), dim=1),
        {"a": nn.Linear(72, 5), "b": nn.Linear(5, 3)},
    ),
    "slices": (
        lambda s, x: s.b((lambda h: torch.cat([h[:, ::2], h[:, 1::2]], 1))(F.relu(s.a(x.flatten(1))))),
        {"a": nn.Linear(72, 6), "b": nn.Linear(6, 3)},
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_forms_keep_the_function(name):
    forward, modules = ACCEPTED[name]
    torch.manual_seed(2)
    receipt = kept(Net(forward, **modules), 2, 6, 6)
    assert receipt.factors["a"].any()


def test_volumes_and_sequences():
    volume = nn.Sequential(
        nn.Conv3d(1, 3, 2),
        nn.BatchNorm3d(3),
        nn.ReLU(),
        nn.MaxPool3d(2, 1),
        nn.AvgPool3d(2, 1),
        nn.Flatten(),
        nn.Linear(3, 2),
    )
    kept(volume, 1, 4, 4, 4)
    sequence = nn.Sequential(
        nn.Conv1d(2, 4, 3, padding=1, padding_mode="circular"), nn.ReLU(), nn.Conv1d(4, 3, 3), nn.Flatten()
    )
    kept(sequence, 2, 7)
