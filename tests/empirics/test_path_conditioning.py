"""Path conditioning keeps the function and lowers the gap: chains, convolutions, BatchNorm in both modes, skips, refusals."""

import copy
import math

import pytest
import torch
from torch import nn

from empirics.path import diag_path_gram, path_condition
from theory import InputError


def net_a():
    """The notes' net A: widths 3, 4, 2, 2; W^l[j,k] = sin(1+j+2k+3l), b^l[j] = 0.5 cos(j+l)."""
    layers = []
    for number, (before, after) in enumerate([(3, 4), (4, 2), (2, 2)], 1):
        linear = nn.Linear(before, after).double()
        with torch.no_grad():
            for j in range(after):
                linear.bias[j] = 0.5 * math.cos(j + number)
                for k in range(before):
                    linear.weight[j, k] = math.sin(1 + j + 2 * k + 3 * number)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def test_the_gaps_of_net_a():
    receipt = path_condition(net_a(), torch.ones(1, 3).double())
    assert receipt.gap_before == pytest.approx(0.24583024037926782, rel=1e-12)
    assert receipt.gap_after == pytest.approx(0.031816281772062624, rel=1e-9)
    assert receipt.certificate < 1e-10


def test_the_diagonal_is_the_sum_of_squared_path_products_without_the_weight():
    """Brute force on net A: enumerate every path from an input or a bias to an output."""
    model = net_a()
    linears = [m for m in model if isinstance(m, nn.Linear)]
    found = diag_path_gram(model, torch.ones(1, 3).double())
    expected = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    names = ["0", "2", "4"]

    def walk(layer, unit, used):
        if layer == len(linears):
            squares = [float(p) ** 2 for _, _, p in used]
            for index, (name, where, _) in enumerate(used):
                expected[name][where] += math.prod(squares[:index] + squares[index + 1 :])
            return
        for j in range(linears[layer].out_features):
            walk(layer + 1, j, [*used, (f"{names[layer]}.weight", (j, unit), linears[layer].weight[j, unit].detach())])

    for k in range(3):
        walk(0, k, [])
    for layer, linear in enumerate(linears):
        for j in range(linear.out_features):
            walk(layer + 1, j, [(f"{names[layer]}.bias", (j,), linear.bias[j].detach())])
    for name, each in expected.items():
        assert torch.allclose(found[name], each.double(), rtol=1e-12, atol=0), name


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.act = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        x = self.act(self.norm(self.stem(x)))
        x = x + self.second(self.act(self.first(x)))
        return self.head(torch.flatten(self.pool(self.act(x)), 1))


MODELS = {
    # The unit before a GELU is pinned, the one after it free: exact, as section 12 of the notes decides.
    "gelu": (lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 7), nn.GELU(), nn.Linear(7, 3)), (2, 6)),
    "chain": (lambda: nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 9), nn.ReLU(), nn.Linear(9, 3)), (2, 6)),
    "leaky": (lambda: nn.Sequential(nn.Linear(6, 20), nn.LeakyReLU(0.2), nn.Linear(20, 3)), (2, 6)),
    "residual": (Residual, (2, 3, 8, 8)),
}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", list(MODELS))
def test_the_function_is_kept_in_both_modes_and_a_second_call_finds_nothing(name, mode):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    model = make().double()
    model.train(mode == "train")
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2)).double()
    before = copy.deepcopy(model)(x)
    receipt = path_condition(model, x)
    assert model.training == (mode == "train")
    after = copy.deepcopy(model)(x)
    assert float((after - before).abs().max().detach()) < 1e-12 * max(1.0, float(before.abs().max().detach()))
    assert receipt.max_output_change < 1e-12
    assert receipt.gap_after < receipt.gap_before
    assert receipt.certificate < 1e-10
    again = path_condition(model, x)
    assert again.gap_before == pytest.approx(receipt.gap_after, rel=1e-8)
    assert again.gap_after == pytest.approx(receipt.gap_after, rel=1e-8)


def test_scaling_without_the_tie_of_the_skip_would_have_shown():
    """The control: one channel of the stream scaled as a chain would, its consumers compensated, the skip forgotten."""
    torch.manual_seed(1)
    model = Residual().double().eval()
    x = torch.randn(2, 3, 8, 8).double()
    before = model(x)
    with torch.no_grad():
        model.second.weight[0] *= 2
        model.second.bias[0] *= 2
        model.head.weight.view(5, 8, 16)[:, 0] /= 2
    assert float((model(x) - before).abs().max().detach()) > 1e-3


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), "Tanh"),
        (lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), "LayerNorm"),
        (lambda: nn.Sequential(*[nn.Linear(4, 4)] * 2), "one tensor"),
    ],
)
def test_what_is_not_homogeneous_is_refused_by_name_and_left_alone(model, words):
    model = model().double()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(InputError, match=words):
        path_condition(model, torch.randn(2, 4).double())
    for name, each in model.state_dict().items():
        assert torch.equal(each, before[name])
