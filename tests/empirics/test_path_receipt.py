"""What path_condition promises beside the function: nothing else is touched, all is told, and what fails is put back."""

import json
import math
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from empirics.path import equinormalise, path_condition
from theory import InputError


def mlp(dtype=torch.float64, widths=(6, 20, 5, 3), seed=0, scale=1.0):
    torch.manual_seed(seed)
    layers = []
    for below, above in pairwise(widths):
        layers += [nn.Linear(below, above), nn.ReLU()]
    model = nn.Sequential(*layers[:-1]).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model, torch.randn(7, widths[0], dtype=torch.float64).to(dtype)


def bits(model):
    return {name: each.detach().clone() for name, each in model.state_dict().items()}


def test_incoming_parameters_and_biases_are_multiplied_and_outgoing_ones_divided():
    model, x = mlp()
    old = bits(model)
    z = path_condition(model, x).factors
    up = {name: torch.exp(each / 2) for name, each in z.items()}
    assert torch.allclose(model[0].weight, old["0.weight"] * up["0"][:, None], rtol=1e-14)
    assert torch.allclose(model[0].bias, old["0.bias"] * up["0"], rtol=1e-14)
    assert torch.allclose(model[2].weight, old["2.weight"] * up["2"][:, None] / up["0"], rtol=1e-14)
    assert torch.allclose(model[4].weight, old["4.weight"] / up["2"], rtol=1e-14)
    assert torch.equal(model[4].bias, old["4.bias"])
    assert {name: len(each) for name, each in z.items()} == {"0": 20, "2": 5, "4": 3}


def test_the_receipt_is_plain_json():
    model, x = mlp()
    receipt = path_condition(model, x)
    told = json.loads(json.dumps(receipt.to_dict()))
    assert told["gap_after"] == receipt.gap_after
    assert (told["parameters"], told["labels"], told["settings"]["max_abs_z"]) == (6 * 20 + 20 + 105 + 18, 25, None)
    assert "25 rescalings of 263 parameters" in str(receipt)


def test_the_model_is_never_called_and_its_mode_is_kept():
    calls = []

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.norm, self.two = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)

        def forward(self, x):
            calls.append(id(self))
            return self.two(F.relu(self.norm(self.one(x))))

    model = Counting().double().train()
    model.norm.eval()
    state = bits(model)
    path_condition(model, torch.randn(5, 4).double())
    assert id(model) not in calls
    assert model.training
    assert not model.norm.training
    assert all(
        torch.equal(state[name], each)
        for name, each in model.state_dict().items()
        if "running" in name or "num" in name
    )


def test_random_numbers_are_left_alone():
    model, _ = mlp()
    net = nn.Sequential(model, nn.Dropout(0.5), nn.Linear(3, 2)).double().train()
    x = torch.randn(4, 6).double()
    before = torch.random.get_rng_state()
    assert path_condition(net, x).max_output_change < 1e-12
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_batch_of_one_has_no_training_mode_under_batch_normalisation():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)).double().train()
    assert path_condition(model, torch.randn(1, 4).double()).max_output_change < 1e-12


def test_frozen_parameters_keep_every_bit_and_leave_p():
    """Their units keep their scale; gradient flow does not move them, so they are not among the p parameters of the gap."""
    model, x = mlp()
    for parameter in model[2].parameters():
        parameter.requires_grad_(False)
    old = bits(model)
    receipt = path_condition(model, x)
    assert all(torch.equal(each, old[name]) for name, each in model.state_dict().items())
    assert receipt.labels == 0
    assert receipt.parameters == 6 * 20 + 20 + 18
    assert receipt.gap_after == receipt.gap_before
    assert {name: reason[:6] for name, _, reason in receipt.skipped} == {"2.weight": "frozen", "2.bias": "frozen"}
    model[2].requires_grad_(True)
    model[0].bias.requires_grad_(False)
    old = bits(model)
    receipt = path_condition(model, x)
    assert torch.equal(model[0].bias, old["0.bias"])
    assert torch.equal(model[0].weight, old["0.weight"])  # the bias' units are pinned
    assert receipt.labels == 5
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(InputError, match="everything frozen"):
        path_condition(model, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes_stay_and_change_by_their_rounding(dtype):
    model, x = mlp(dtype)
    receipt = path_condition(model, x)
    assert all(each.dtype == dtype for each in model.parameters())
    assert receipt.max_output_change < (1e-6 if dtype == torch.float32 else 0.05)
    assert receipt.settings["max_abs_z"] == 60
    exact, y = mlp()
    assert receipt.gap_after == pytest.approx(
        path_condition(exact, y).gap_after, abs=1e-6 if dtype == torch.float32 else 0.05
    )


def test_deep_float32_networks_are_held_by_the_box_and_say_so():
    """Notes, section 11: depth 40, scale 0.1, z = -212 unbounded: e^(z/2) would be 0 in float32 and entries vanish."""
    model, x = mlp(torch.float32, (30,) * 41, scale=0.1)
    receipt = path_condition(model, x)
    assert receipt.clipped
    assert max(float(each.abs().max()) for each in receipt.factors.values()) == 60
    assert receipt.gap_after < receipt.gap_before
    assert receipt.certificate < 1e-10
    assert all(int((each == 0).sum()) == 0 for each in model.parameters())
    clipped = sum(map(len, receipt.clipped.values()))
    assert 0 < clipped < receipt.labels
    one, channels = next(iter(receipt.clipped.items()))
    assert all(abs(float(receipt.factors[one][each])) == 60 for each in channels)

    model, x = mlp(torch.float32, (30,) * 41, scale=0.1)
    before = bits(model)
    with pytest.raises(InputError, match=r"would leave the range of torch.float32.*Give a smaller max_abs_z"):
        path_condition(model, x, max_abs_z=math.inf)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())

    model, x = mlp(torch.float64, (30,) * 41, scale=0.1)
    free = path_condition(model, x)
    assert not free.clipped
    assert min(float(each.min()) for each in free.factors.values()) < -180
    assert free.gap_after < receipt.gap_after
    with pytest.raises(InputError, match="max_abs_z must be positive"):
        path_condition(model, x, max_abs_z=-1)


@pytest.mark.parametrize("make", [
    lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0),
])  # fmt: skip
def test_the_optimiser_goes_on_from_the_same_gradients(make):
    """Moments scale as gradients do: m' = m/factor, v' = v/factor^2, and .grad likewise."""
    model, x = mlp()
    optimizer = make(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    model(x).square().sum().backward()
    old = {name: each.detach().clone() for name, each in model.named_parameters()}
    grads = {name: each.grad.clone() for name, each in model.named_parameters()}
    moments = {
        name: {key: value.clone() for key, value in optimizer.state[each].items() if torch.is_tensor(value)}
        for name, each in model.named_parameters()
    }
    path_condition(model, x, optimizer=optimizer)
    fresh = {name: each.grad.clone() for name, each in model.named_parameters()}
    model.zero_grad()
    (2 * model(x).square().sum()).backward()  # two backward passes had been summed
    for name, each in model.named_parameters():
        factor = each.detach() / old[name]
        assert torch.allclose(fresh[name] * factor, grads[name], rtol=1e-12, atol=0), name
        for key, power in (("momentum_buffer", 1), ("exp_avg", 1), ("exp_avg_sq", 2), ("max_exp_avg_sq", 2)):
            if key in moments[name]:
                assert torch.allclose(
                    optimizer.state[each][key] * factor**power, moments[name][key], rtol=1e-12, atol=0
                )
        if "step" in moments[name]:
            assert torch.equal(optimizer.state[each]["step"], moments[name]["step"])


def test_gradients_kept_are_those_of_the_new_point():
    model, x = mlp()
    model(x).square().sum().backward()
    path_condition(model, x)
    kept = [each.grad.clone() for each in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    assert all(torch.allclose(a, b.grad, rtol=1e-10, atol=1e-14) for a, b in zip(kept, model.parameters(), strict=True))


def test_an_unknown_optimiser_with_state_is_refused_and_nothing_changed():
    model, x = mlp()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    path_condition(model, x, optimizer=optimizer)  # no state yet
    model, x = mlp()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    model(x).sum().backward()
    optimizer.step()
    before = bits(model)
    with pytest.raises(InputError, match=r"RMSprop has gathered state .* make the optimiser after conditioning"):
        path_condition(model, x, optimizer=optimizer)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


def test_a_forward_pass_that_the_graph_does_not_show_is_put_back():
    """A hook doubles an inner activation: the trace cannot know, the comparison of outputs does."""

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 6), nn.Linear(6, 2)

        def forward(self, x):
            return self.two(F.relu(self.one(x)))

    model = Hidden().double()
    model.one.register_forward_hook(lambda module, args, y: torch.tanh(y))
    before = bits(model)
    with pytest.raises(InputError, match="does something that its traced graph does not show"):
        path_condition(model, torch.randn(5, 4).double())
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


def test_a_change_that_shows_in_the_models_own_mode_alone_is_put_back():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).double().train()
    model[0].register_forward_hook(lambda module, args, y: torch.tanh(y) if module.training else y)
    before = bits(model)
    with pytest.raises(InputError, match="does something that its traced graph does not show"):
        path_condition(model, torch.randn(5, 4).double())
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert path_condition(model.eval(), torch.randn(5, 4).double()).max_output_change < 1e-12


def test_small_cases():
    """One layer: nothing to rescale; a module that is itself a layer; two inputs, several outputs."""
    layer = nn.Linear(4, 3).double()
    receipt = path_condition(layer, torch.randn(2, 4).double())
    assert (receipt.labels, receipt.max_output_change, list(receipt.factors)) == (0, 0, [""])
    assert receipt.parameters == 15

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.d = nn.Linear(3, 5), nn.Linear(2, 5), nn.Linear(5, 4), nn.Linear(4, 1)

        def forward(self, x, y, scale=None):
            h = F.relu(self.a(x) + self.b(y))
            return {"deep": self.d(F.relu(self.c(h))), "wide": h}

    receipt = path_condition(Two().double(), (torch.randn(4, 3).double(), torch.randn(4, 2).double()))
    assert receipt.max_output_change < 1e-12
    assert receipt.labels == 4  # the output h is ground
    dead = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False)).double()
    nn.init.zeros_(dead[2].weight)
    receipt = path_condition(dead, torch.randn(2, 3).double())
    assert receipt.max_output_change == 0
    assert {name for name, *_ in receipt.skipped} == {"0.weight", "0.bias"}
    assert all(torch.isfinite(each).all() for each in receipt.factors.values())


def test_equinormalisation_balances_every_unit_and_is_not_path_conditioning():
    model, x = mlp(scale=2.0)
    y = model(x)
    z = equinormalise(model, x)
    assert torch.allclose(model(x), y, rtol=1e-12)
    squares = [each.detach() ** 2 for each in model.parameters()]
    into = [squares[0].sum(1) + squares[1], squares[2].sum(1) + squares[3]]
    assert torch.allclose(into[0], squares[2].sum(0), rtol=1e-8)
    assert torch.allclose(into[1], squares[4].sum(0), rtol=1e-8)
    other, x = mlp(scale=2.0)
    assert not torch.allclose(path_condition(other, x).factors["0"], z["0"], atol=0.1)
