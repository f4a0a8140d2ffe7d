"""diag G in one backward pass against every path written out, and against what must hold on any network."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_path_networks import images
from torch import nn

from empirics.path import diag_path_gram, path_condition
from empirics.path.gram import analyse
from numerics.path import Chain, Criterion, solve
from theory import InputError
from theory.path.lifting import mlp

EXACT = settings(derandomize=True, deadline=None, max_examples=30)


class Paths:
    """Edges (head, parameter or None, factor) by tail, None the constant 1; g by enumeration of all paths, in plain Python."""

    def __init__(self):
        self.leaving, self.value = {}, {}

    def edge(self, tail, head, factor=1.0, parameter=None, value=1.0):
        self.leaving.setdefault(tail, []).append((head, factor, parameter))
        if parameter is not None:
            self.value[parameter] = value

    def gram(self, inputs, outputs):
        g, count = dict.fromkeys(self.value, 0.0), 0

        def walk(node, factor, met):
            nonlocal count
            if node in outputs:
                count += 1
                for each in met:
                    g[each] += (factor * math.prod(self.value[other] for other in met if other != each)) ** 2
            for head, weight, parameter in self.leaving.get(node, ()):
                walk(head, factor * weight, met if parameter is None else (*met, parameter))

        for start in (*inputs, None):
            walk(start, 1.0, ())
        return g, count


def unrolled(model, length):
    """A Sequential of one-dimensional modules, pixel by pixel; nodes are (stage, channel, position) or (stage, feature)."""
    paths, shape = Paths(), (1, length)
    nodes = {(0, c, i): (c, i) for c in range(shape[0]) for i in range(length)}
    inputs = list(nodes)
    for stage, (name, m) in enumerate(model.named_children(), 1):
        if isinstance(m, nn.Conv1d):
            (k,), (s,), (p,), groups = m.kernel_size, m.stride, m.padding, m.groups
            width = (shape[1] + 2 * p - k) // s + 1
            per = m.out_channels // groups
            for o, j in product(range(m.out_channels), range(width)):
                for c, t in product(range(m.in_channels // groups), range(k)):
                    i = j * s + t - p
                    if 0 <= i < shape[1]:
                        tail = (stage - 1, o // per * (m.in_channels // groups) + c, i)
                        paths.edge(tail, (stage, o, j), 1.0, (name, "weight", o, c, t), m.weight[o, c, t].item())
                if m.bias is not None:
                    paths.edge(None, (stage, o, j), 1.0, (name, "bias", o), m.bias[o].item())
            shape = (m.out_channels, width)
        elif isinstance(m, nn.BatchNorm1d):
            for c, i in product(range(shape[0]), range(shape[1])):
                sigma = math.sqrt(m.running_var[c].item() + m.eps)
                gamma = (name, "weight", c)
                paths.edge((stage - 1, c, i), (stage, c, i), 1 / sigma, gamma, m.weight[c].item())
                paths.edge(None, (stage, c, i), -m.running_mean[c].item() / sigma, gamma, m.weight[c].item())
                paths.edge(None, (stage, c, i), 1.0, (name, "bias", c), m.bias[c].item())
        elif isinstance(m, (nn.MaxPool1d, nn.AvgPool1d)):
            k, s, p = (each[0] if isinstance(each, tuple) else each for each in (m.kernel_size, m.stride, m.padding))
            top = shape[1] + 2 * p - k
            width = (-(-top // s) if m.ceil_mode else top // s) + 1
            width -= (
                m.ceil_mode and (width - 1) * s >= shape[1] + p
            )  # a window may not begin in the padding on the right
            for c, j in product(range(shape[0]), range(width)):
                window = [i for i in range(j * s - p, j * s - p + k) if 0 <= i < shape[1]]
                factor = 1.0
                if isinstance(m, nn.AvgPool1d):
                    inside = min(j * s - p + k, shape[1] + p) - (j * s - p)
                    factor = 1 / (inside if m.count_include_pad else len(window))
                for i in window:
                    paths.edge((stage - 1, c, i), (stage, c, j), factor)
            shape = (shape[0], width)
        elif isinstance(m, (nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d)):
            n, width = shape[1], m.output_size
            for c, j in product(range(shape[0]), range(width)):
                window = range(j * n // width, -(-(j + 1) * n // width))
                for i in window:
                    factor = 1 / len(window) if isinstance(m, nn.AdaptiveAvgPool1d) else 1.0
                    paths.edge((stage - 1, c, i), (stage, c, j), factor)
            shape = (shape[0], width)
        elif isinstance(m, nn.Flatten):
            for c, i in product(range(shape[0]), range(shape[1])):
                paths.edge((stage - 1, c, i), (stage, c * shape[1] + i))
        elif isinstance(m, nn.Linear):
            for o in range(m.out_features):
                for c in range(m.in_features):
                    paths.edge((stage - 1, c), (stage, o), 1.0, (name, "weight", o, c), m.weight[o, c].item())
                if m.bias is not None:
                    paths.edge(None, (stage, o), 1.0, (name, "bias", o), m.bias[o].item())
            outputs = {(stage, o) for o in range(m.out_features)}
        else:  # an activation
            for tail in {head for heads in paths.leaving.values() for head, *_ in heads if head[0] == stage - 1}:
                paths.edge(tail, (stage, *tail[1:]))
    return paths.gram(inputs, outputs)


@st.composite
def sequences(draw):
    torch.manual_seed(draw(st.integers(0, 2**31)))
    pick = lambda *options: draw(st.sampled_from(options))  # noqa: E731
    layers = [nn.Conv1d(1, 2, 2, padding=pick(0, 1), bias=pick(True, False)), nn.ReLU()]
    if pick(True, False):
        layers.insert(1, nn.BatchNorm1d(2))
    layers.append(
        pick(
            nn.MaxPool1d(2, 1),
            nn.MaxPool1d(3, 2, padding=1, ceil_mode=True),
            nn.AvgPool1d(2, 1),
            nn.AdaptiveAvgPool1d(3),
            nn.AdaptiveMaxPool1d(3),
            nn.AvgPool1d(3, 2, padding=1, ceil_mode=True),
            nn.AvgPool1d(3, 2, padding=1, ceil_mode=True, count_include_pad=False),
        )
    )
    if pick(True, False):
        layers += [nn.Conv1d(2, 2, 2, groups=pick(1, 2)), nn.PReLU()]
    model = nn.Sequential(*layers, nn.Flatten()).double()
    width = model.eval()(torch.zeros(1, 1, 5, dtype=torch.float64)).shape[1]
    model.extend([nn.Linear(width, 2, bias=pick(True, False)), nn.ReLU(), nn.Linear(2, 2)]).double()
    for m in model:
        if isinstance(m, nn.BatchNorm1d):
            m.running_mean.uniform_(-1, 1)
            m.running_var.uniform_(0.3, 2)
            nn.init.uniform_(m.weight, -2, 2)
            nn.init.uniform_(m.bias, -1, 1)
    return model


@given(sequences())
@EXACT
def test_every_path_written_out_gives_the_same_g(model):
    found = diag_path_gram(model, torch.zeros(1, 1, 5, dtype=torch.float64))
    g, count = unrolled(model, 5)
    assert count > 20
    assert len(g) == sum(each.numel() for each in found.values())
    for (name, kind, *index), value in g.items():
        assert float(found[f"{name}.{kind}"][tuple(index)]) == pytest.approx(value, rel=1e-12), (name, kind, index)


def test_maximum_for_sum_in_a_pool_is_another_number():
    """A control: the authors' squared network keeps max-pooling."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(1, 2, 2), nn.ReLU(), nn.MaxPool1d(2, 1), nn.Flatten(), nn.Linear(6, 1)).double()
    x = torch.zeros(1, 1, 5).double()
    g, _ = unrolled(model, 5)
    wrong = diag_path_gram(model, x, maxpool="max")["4.weight"]
    right = diag_path_gram(model, x)["4.weight"]
    expected = torch.tensor([g["4", "weight", 0, c] for c in range(6)], dtype=torch.float64)
    assert torch.allclose(right[0], expected, rtol=1e-12)
    assert (wrong[0] < 0.6 * expected).all()
    with pytest.raises(InputError, match="'sum', the exact lifting, or 'max'"):
        diag_path_gram(model, x, maxpool="mean")


def test_the_symbolic_lifting_gives_the_same_g():
    graph, theta = mlp([2, 3, 2]), {}
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    for layer, m in ((1, model[0]), (2, model[2])):
        for j in range(m.out_features):
            theta[f"b{layer}_{j}"] = m.bias[j].item()
            theta |= {f"w{layer}_{j}{k}": m.weight[j, k].item() for k in range(m.in_features)}
    J = graph.jacobian.subs({each: theta[each.name] for each in graph.parameters})
    expected = dict(
        zip((each.name for each in graph.parameters), (float((J.T * J)[i, i]) for i in range(J.shape[1])), strict=True)
    )
    found = diag_path_gram(model, torch.zeros(1, 2))
    for layer, name in ((1, "0"), (2, "2")):
        for (j, k), value in np.ndenumerate(found[f"{name}.weight"].numpy()):
            assert value == pytest.approx(expected[f"w{layer}_{j}{k}"], rel=1e-12)
        for j, value in enumerate(found[f"{name}.bias"].tolist()):
            assert value == pytest.approx(expected[f"b{layer}_{j}"], rel=1e-12)


@given(images())
@EXACT
def test_as_much_flows_into_every_label_as_out_of_it(case):
    """sum_i (B)_ih g_i theta_i^2 = 0 for every free label h, whatever the network: skips, norms, concatenations."""
    model, x = case
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    analysis = analyse(model, x)
    parameters, total = dict(model.named_parameters()), np.zeros(analysis.labels + 1)
    size = np.zeros(analysis.labels + 1)
    for (entry, value, exponent), o, i in zip(analysis.grams(), analysis.out, analysis.into, strict=True):
        flow = (value * parameters[entry.name].detach() ** 2).numpy() * 2.0**exponent
        for labels, sign in ((o, -1), (i, 1)):
            np.add.at(total, np.broadcast_to(labels, flow.shape), sign * flow)
            np.add.at(size, np.broadcast_to(labels, flow.shape), flow)
    assert np.abs(total[1:]).max() <= 1e-11 * size[1:].max()
    assert (size[1:] > 0).any()


class Form(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, x):
        return self.form(x)


@pytest.mark.parametrize(
    ("form", "same"),
    [
        (lambda x: x.mean((2, 3)), nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())),
        (lambda x: x.sum((2, 3)), nn.Sequential(nn.AvgPool2d(4, divisor_override=1), nn.Flatten())),
        (lambda x: (x * -3).flatten(1), nn.Sequential(nn.AvgPool2d(1, divisor_override=3), nn.Flatten())),
        (lambda x: (x / 2).flatten(1), nn.Sequential(nn.AvgPool2d(1, divisor_override=2), nn.Flatten())),
    ],
)
def test_fixed_edges_are_squared(form, same):
    """Means, sums and numbers, against pools whose windows were written out: the factor of a product against its inverse."""
    torch.manual_seed(6)
    top, bottom = nn.Conv2d(2, 3, 3), nn.LazyLinear(2)
    one, other = nn.Sequential(top, Form(form), bottom).double(), nn.Sequential(top, same, bottom).double()
    x = torch.zeros(1, 2, 6, 6).double()
    one(x)
    a, b = diag_path_gram(one, x), diag_path_gram(other, x)
    power = 81.0 if form(torch.ones(1, 1, 1, 1)).min() < 0 else 1.0  # -3 squared, where the pool has 1/3 squared
    for name in ("0.weight", "0.bias", "2.weight"):
        assert torch.allclose(a[name], power * b[name], rtol=1e-13, atol=0), name
    assert torch.allclose(a["2.bias"], b["2.bias"])


def test_the_reference_with_batch_normalisation_and_pools():
    """Section 11 of the notes: gap, p, H, and the log-factors of the norm; nothing else may be rescaled."""
    layers = [nn.Conv1d(1, 2, 2, padding=1), nn.BatchNorm1d(2), nn.ReLU(), nn.MaxPool1d(2, 1), nn.AvgPool1d(2, 1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(6, 2)).double()
    with torch.no_grad():
        for layer, m in enumerate((model[0], model[1], model[6])):
            m.weight.view(-1).copy_(torch.sin(1.0 + layer + torch.arange(m.weight.numel(), dtype=torch.float64)))
            m.bias.copy_(0.5 * torch.cos(layer + torch.arange(m.bias.numel(), dtype=torch.float64)))
        model[1].running_mean.copy_(torch.tensor([0.3, -0.7], dtype=torch.float64))
        model[1].running_var.copy_(torch.tensor([0.5, 2.0], dtype=torch.float64))
    receipt = path_condition(
        model, torch.randn(2, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    assert receipt.gap_before == pytest.approx(1.2808709578382245, abs=1e-13)
    assert receipt.gap_after == pytest.approx(0.8007960089049906, abs=1e-13)
    assert (receipt.parameters, receipt.labels) == (24, 2)
    # The root of the gradient in 40 digits; the notes' own z stopped 2e-7 before it.
    assert receipt.factors["1"].tolist() == pytest.approx([0.16516095622592953, 3.4086863674221503], abs=1e-10)
    assert receipt.factors["0"].tolist() == [0, 0]
    assert receipt.factors["6"].tolist() == [0, 0]


def test_net_a_end_to_end():
    """References 3, 4, 7 and 8 of the notes."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)).double()
    with torch.no_grad():
        for layer, m in ((1, model[0]), (2, model[2]), (3, model[4])):
            j, k = torch.meshgrid(torch.arange(m.out_features), torch.arange(m.in_features), indexing="ij")
            m.weight.copy_(torch.sin((1 + j + 2 * k + 3 * layer).double()))
            m.bias.copy_(0.5 * torch.cos((torch.arange(m.out_features) + layer).double()))
    g = diag_path_gram(model, torch.zeros(1, 3).double())
    assert float(g["0.weight"][0, 0]) == pytest.approx(1.0139864083996852, rel=1e-14)
    assert float(g["2.weight"][1, 2]) == pytest.approx(0.7421381011506295, rel=1e-14)
    assert sum(float(each.sum()) for each in g.values()) == pytest.approx(44.18307658636196, rel=1e-14)
    receipt = path_condition(model, torch.zeros(1, 3).double())
    assert receipt.gap_before == pytest.approx(0.24583024037926782, abs=1e-15)
    assert receipt.gap_after == pytest.approx(0.031816281772062624, abs=1e-15)
    z = [
        -0.4994307574090645,
        -1.1954260711549478,
        -0.2566881952700674,
        -0.7610838326838953,
        -0.3824248200809542,
        -1.2332140463326333,
    ]
    assert torch.cat([receipt.factors["0"], receipt.factors["2"]]).tolist() == pytest.approx(z, abs=1e-9)


def test_a_chain_and_the_same_network_as_a_list_have_one_criterion():
    torch.manual_seed(4)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 4, bias=False), nn.ReLU(), nn.Linear(4, 3)
    ).double()
    chain, start, dead = analyse(model, torch.zeros(2, 2, 3)).criterion()
    assert isinstance(chain, Chain)
    assert not dead
    listed = analyse(nn.Sequential(model, nn.Identity()), torch.zeros(2, 2, 3))
    listed.wiring.layers[0] = ("moved", *listed.wiring.layers[0][1:])  # so that it is not recognised
    listed.units["moved"] = listed.units["0.1"]
    entries, other, _ = listed.criterion()
    assert isinstance(entries, Criterion)
    assert entries.mean_log == pytest.approx(chain.mean_log, abs=1e-14)
    one, two = solve(chain, start=start), solve(entries, start=other)
    assert one.z == pytest.approx(two.z, abs=1e-8)
    assert (one.gap_before, one.gap) == pytest.approx((two.gap_before, two.gap), abs=1e-14)


def test_underflow_is_not_death_and_death_is_not_underflow():
    """Notes, section 11: deep nets of small weights have g below the range of float64; they are conditioned all the same."""
    torch.manual_seed(5)
    deep = nn.Sequential(
        *[each for _ in range(56) for each in (nn.Linear(12, 12), nn.ReLU())], nn.Linear(12, 2)
    ).double()
    with torch.no_grad():
        for parameter in deep.parameters():
            parameter.mul_(1e-3)
        deep[6].weight[3] = 0  # one unit reads nothing: alive by its bias
        deep[20].weight[:, 5] = 0  # one unit is read by nobody: dead, its incoming entries with it
    x = torch.zeros(1, 12).double()
    with pytest.raises(InputError, match=r"leaves the range of float64"):
        diag_path_gram(deep, x)
    receipt = path_condition(deep, x)
    assert receipt.max_output_change < 1e-12
    assert dict((name, count) for name, count, _ in receipt.skipped) == {"18.weight": 12, "18.bias": 1}
    assert receipt.certificate < 1e-10
    # A spread beyond float64 within one tensor cannot be told from death by its value, but is by its reach.
    wide = nn.Sequential(
        nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False)
    ).double()
    with torch.no_grad():
        for parameter in wide.parameters():
            parameter.fill_(1.0)
        wide[0].weight[1] = 1e-120
        wide[4].weight[0, 1] = 1e-120
    with pytest.raises(InputError, match=r"1 entries of g of 0.2.weight are positive"):
        path_condition(nn.Sequential(wide, nn.Identity(), nn.BatchNorm1d(1)).double(), torch.zeros(1, 1).double())
