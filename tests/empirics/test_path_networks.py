"""Path conditioning keeps the function of every network it accepts, in both modes, and its second call finds nothing to do.

Networks are drawn by Hypothesis: chains of blocks of every supported kind, with frozen parameters, dead units, random
running statistics. Controls break one rule of the treatment at a time and must be caught, with everything put back.
"""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from empirics.path import diag_path_gram, path_condition
from empirics.path.labels import Labels
from empirics.path.unchanged import deviation, outputs
from theory import InputError

EXACT = settings(derandomize=True, deadline=None, max_examples=25)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Residual(nn.Module):
    def __init__(self, block, shortcut=None, subtract=False):
        super().__init__()
        self.block, self.shortcut, self.subtract = block, shortcut or nn.Identity(), subtract

    def forward(self, x):
        return self.shortcut(x) - self.block(x) if self.subtract else self.block(x) + self.shortcut(x)


class Concat(nn.Module):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x):
        return torch.cat([self.one(x), 0.5 * self.other(x), x], 1)


class Reshaped(nn.Module):
    """(n, 6) to an image of 3 channels and back: a flattened channel's entries share a label."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 2, padding=1)

    def forward(self, x):
        return F.relu(self.conv(x.view(x.size(0), 3, -1)))[:, :, :2].flatten(1)


@st.composite
def images(draw):
    """A network on (2, 8, 8) images, in float64, ready to train, with numbers that are not those of an initialisation."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    torch.manual_seed(int(rng.integers(2**31)))
    bias = bool(rng.integers(2))
    layers, channels = [nn.Conv2d(2, 4, 3, padding=1, bias=bias), nn.ReLU()], 4

    def conv(below, above, size=3, **options):
        return nn.Conv2d(below, above, size, padding=size // 2, bias=bool(rng.integers(2)), **options)

    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(
                ["conv", "depthwise", "grouped", "residual", "wide", "concat", "norm", "pool", "average", "prelu"]
            )
        )
        if kind == "conv":
            layers += [conv(channels, 6), nn.LeakyReLU(0.2)]
            channels = 6
        elif kind == "depthwise":
            layers += [conv(channels, 2 * channels, groups=channels), nn.ReLU(), conv(2 * channels, 4, 1), nn.ReLU()]
            channels = 4
        elif kind == "grouped":
            layers += [conv(channels, 8, groups=2), nn.ReLU()]
            channels = 8
        elif kind == "residual":
            body = nn.Sequential(conv(channels, 5), nn.ReLU(), conv(5, channels))
            layers += [Residual(body, subtract=bool(rng.integers(2))), nn.ReLU()]
        elif kind == "wide":
            body = nn.Sequential(conv(channels, 6, stride=2), nn.BatchNorm2d(6), nn.ReLU(), conv(6, 6))
            layers += [Residual(body, conv(channels, 6, 1, stride=2)), nn.ReLU()]
            channels = 6
        elif kind == "concat":
            layers.append(Concat(nn.Sequential(conv(channels, 3), nn.ReLU()), conv(channels, 2)))
            layers.append(nn.ReLU())
            channels += 5
        elif kind == "norm":
            layers += [conv(channels, channels), nn.BatchNorm2d(channels, affine=bool(rng.integers(4))), nn.ReLU()]
        elif kind == "prelu":
            layers += [conv(channels, channels), nn.PReLU(channels), nn.Dropout2d(0.3)]
        else:
            pool = (
                nn.MaxPool2d(2, 1, padding=1)
                if kind == "pool"
                else nn.AvgPool2d(3, 2, 1, count_include_pad=bool(rng.integers(2)))
            )
            layers += [conv(channels, channels), nn.ReLU(), pool]
    head = draw(st.sampled_from(["flat", "global"]))
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2 if head == "flat" else 1), nn.Flatten())
    size = channels * (4 if head == "flat" else 1)
    model.extend([nn.Linear(size, 6), nn.ReLU(), Reshaped(), nn.Linear(6, 3)]).double().train()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-1, 1)
                module.running_var.uniform_(0.3, 3)
        for parameter in model.parameters():
            parameter.mul_(float(rng.uniform(0.3, 3)))
        if draw(st.booleans()):
            model[0].weight[1] = 0  # a channel that is dead without its bias
    if draw(st.booleans()):
        list(model.parameters())[int(rng.integers(len(list(model.parameters()))))].requires_grad_(False)
    return model, torch.randn(3, 2, 8, 8, dtype=torch.float64)


def bits(model):
    return {name: each.detach().clone() for name, each in model.state_dict().items()}


@given(images())
@EXACT
def test_the_function_stays_and_the_second_call_starts_where_the_first_ended(case):
    model, x = case
    before, modes = bits(model), [module.training for module in model.modules()]
    frozen = {name for name, each in model.named_parameters() if not each.requires_grad}
    old = outputs(model, x)
    g = diag_path_gram(model, x)
    receipt = path_condition(model, x)
    assert receipt.max_output_change < 1e-12
    assert deviation(old, outputs(model, x)) < 1e-12
    assert receipt.certificate < 1e-10
    assert receipt.gap_after <= receipt.gap_before + 1e-15
    assert [module.training for module in model.modules()] == modes
    parameters = dict(model.named_parameters())
    for name, each in model.state_dict().items():
        if name not in parameters or name in frozen:
            assert torch.equal(each, before[name]), name
        assert each.dtype == before[name].dtype
    # g' = g / (theta'/theta)^2: G transforms by congruence.
    for name, each in diag_path_gram(model, x).items():
        ratio = (parameters[name].detach() / before[name])[before[name] != 0]
        assert torch.allclose(each[before[name] != 0] * ratio**2, g[name][before[name] != 0], rtol=1e-9, atol=0), name
    live = torch.cat([each[each > 0] for name, each in diag_path_gram(model, x).items() if name not in frozen])
    assert len(live) == receipt.parameters
    assert math.log(float(live.mean())) - float(live.log().mean()) == pytest.approx(receipt.gap_after, abs=1e-11)
    again = path_condition(model, x)
    assert again.gap_before == pytest.approx(receipt.gap_after, abs=1e-12)
    assert again.gap_after == pytest.approx(receipt.gap_after, abs=1e-12)


@given(images(), st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=8)
def test_the_result_does_not_depend_on_the_scales_it_starts_from(case, seed):
    """A network and the same function in other scales are conditioned to the same g."""
    model, x = case
    other = copy.deepcopy(model)
    rng = np.random.default_rng(seed)
    import empirics.path.condition as module

    real = module.solve

    def shaken(objective, **options):
        found = real(objective, **options)
        return type(found)(**(vars(found) | {"z": found.z + rng.uniform(-1, 1, len(found.z))}))

    module.solve = shaken
    try:
        path_condition(other, x)
    finally:
        module.solve = real
    one, two = path_condition(model, x), path_condition(other, x)
    assert two.gap_after == pytest.approx(one.gap_after, abs=1e-11)


# Controls: each breaks one rule, on a network where that rule matters.


def residual_net():
    torch.manual_seed(1)
    body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    return nn.Sequential(nn.Linear(4, 8), Residual(body), nn.ReLU(), nn.Linear(8, 3)).double(), torch.randn(
        5, 4
    ).double()


def norm_net():
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3), nn.Flatten())
    return net.double().train(), torch.randn(4, 2, 6, 6).double()


def refused_and_restored(model, x):
    before, modes = bits(model), [module.training for module in model.modules()]
    with pytest.raises(InputError, match=r"changed the outputs by .* Everything was put back"):
        path_condition(model, x)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes


def test_control_the_skip_tie_ignored(monkeypatch):
    model, x = residual_net()
    monkeypatch.setattr(Labels, "tie", lambda self, one, other: None)
    refused_and_restored(model, x)


def test_control_a_scale_pushed_through_batch_normalisation(monkeypatch):
    model, x = norm_net()
    monkeypatch.setattr(Labels, "pin", lambda self, labels: None)
    refused_and_restored(model, x)
    # In evaluation mode alone it would be seen as well, since the running statistics stay.
    refused_and_restored(model.eval(), x)


def test_control_the_bias_left_out_of_the_incoming_parameters(monkeypatch):
    import empirics.path.apply as module

    model, x = residual_net()
    real = module.rescale
    import empirics.path.condition as condition

    monkeypatch.setattr(
        condition, "rescale", lambda m, e, o: real(m, {n: each for n, each in e.items() if not n.endswith("bias")}, o)
    )
    refused_and_restored(model, x)


def test_control_nothing_rescaled_leaves_the_gap(monkeypatch):
    import empirics.path.condition as condition

    model, x = residual_net()
    monkeypatch.setattr(condition, "rescale", lambda m, e, o: lambda: None)
    receipt = path_condition(model, x)
    assert path_condition(model, x).gap_before == receipt.gap_before > receipt.gap_after + 0.01


def test_control_the_factors_the_other_way_round(monkeypatch):
    import empirics.path.apply as module
    import empirics.path.condition as condition

    model, x = residual_net()
    monkeypatch.setattr(condition, "rescale", lambda m, e, o: module.rescale(m, {n: -each for n, each in e.items()}, o))
    receipt = path_condition(model, x)  # still an invariance, but away from the minimum
    assert path_condition(model, x).gap_before > receipt.gap_before
