"""What people who do this job ran into (../shared/cases/field-reports.md), with the right answers and numbers."""

import numpy as np
import pytest
import torch
from scipy.signal import lfilter
from torch import nn
from torch.nn.functional import cross_entropy

from empirics.alignment import (
    CaptureWarning,
    alignment_statistics,
    capture_activation_gradients,
    forecast,
)
from theory import InputError


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def ce(output, y):
    return cross_entropy(output, y, reduction="sum")


def test_report_1_averaged_noise_scales():
    # g ~ N(mu, I), d = 50, |mu| = .3: tr Sigma/|mu|^2 = 555.6.
    d, batch, batches = 50, 8, 4000
    mean = torch.zeros(d, dtype=torch.float64)
    mean[0] = 0.3
    draws = torch.Generator().manual_seed(0)
    g = mean + torch.randn(batches * batch, d, generator=draws, dtype=torch.float64)
    whole = alignment_statistics(g)
    assert abs(whole.noise_scale.z(d / 0.09)) < 3.5
    assert whole.noise_scale.standard_error < 60
    # Batch by batch: |mu|^2 comes out negative in 49 % of the batches, and their ratios are worthless.
    each = [alignment_statistics(part) for part in g.split(batch)]
    negative = np.mean([s.mean_squared.estimate < 0 for s in each])
    assert abs(negative - 0.49) < 4 * (0.25 / batches) ** 0.5
    ratios = [s.trace.estimate / s.mean_squared.estimate for s in each]
    assert abs(np.median(ratios)) < 100
    # ... and one batch says that it does not know.
    assert np.mean([s.detected for s in each]) < 0.05
    unresolved = next(s for s in each if s.mean_squared.estimate < 0)
    assert not unresolved.noise_scale.detected
    assert unresolved.mean_squared.interval[0] < 0 < unresolved.mean_squared.interval[1]
    # Apart and divided once, in blocks as small as those batches: right again.
    assert abs(alignment_statistics(g, block=batch).noise_scale.z(d / 0.09)) < 3.5


def test_report_2_one_gradient():
    with pytest.raises(InputError, match=r"at least two independent gradients, its noise four.*got 1"):
        alignment_statistics(torch.ones(1, 5))


def test_report_5_batch_normalisation():
    model = seeded(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    )
    x, y = torch.randn(16, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 3
    with pytest.raises(InputError, match=r"per-sample gradients do not exist.*'1' \(BatchNorm2d, in training mode\)"):
        capture_activation_gradients(model, "0", (x, y), ce)
    model.eval()
    assert capture_activation_gradients(model, "0", (x, y), ce).shape == (16, 4)


class WithPositions(nn.Module):
    """Position embeddings as people write them: looked up as (T, N), or as (1, T, N)."""

    def __init__(self, kind, T=5, N=4):
        super().__init__()
        self.kind, self.token, self.head = kind, nn.Embedding(7, N), nn.Linear(N, 3)
        self.position = nn.Embedding(T, N)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        p = self.position(places if self.kind == "table" else places[None])
        return self.head(torch.tanh(self.token(tokens) + p).sum(1))


@pytest.mark.parametrize("kind", ["table", "leading one"])
@pytest.mark.parametrize("n", [1, 4, 5, 10, 11])  # T = 5 samples, and twice as many, are no exception
def test_report_7_broadcast_position_embedding(kind, n):
    model = seeded(lambda: WithPositions(kind).double())
    tokens = torch.randint(7, (n, 5), generator=torch.Generator().manual_seed(0))
    y = torch.arange(n) % 3
    expected = []
    for i in range(n):
        p = model.position(torch.arange(5)).detach().requires_grad_()
        output = model.head(torch.tanh(model.token(tokens[i]) + p).sum(0))
        expected.append(torch.autograd.grad(ce(output[None], y[i : i + 1]), p)[0])
    with pytest.warns(CaptureWarning):  # the tokens go round it, and it says so
        q = capture_activation_gradients(model, "position", (tokens, y), ce, reduce="flatten")
    assert q.shape == (n, 20)
    assert torch.allclose(q, torch.stack(expected).flatten(1), rtol=1e-12, atol=1e-15)


def test_report_8_time_steps_are_not_independent_samples():
    # AR(1), rho = .9, T = 4000: the variance of a sum is 18.955 times that of as many independent steps.
    rho, T, runs = 0.9, 4000, 400
    lags = np.arange(1, T)
    exact = 1 + 2 * np.sum((1 - lags / T) * rho**lags)
    assert exact == pytest.approx(18.955, abs=5e-4)
    noise = np.random.default_rng(0).standard_normal((runs, T))
    noise[:, 1:] *= (1 - rho**2) ** 0.5
    series = torch.from_numpy(lfilter([1.0], [1.0, -rho], noise)).flatten()
    # loss = output y, so that q is y times the weight above the cut.
    model = nn.Sequential(nn.Identity(), nn.Flatten())
    data = [(torch.ones(len(part), 1, dtype=torch.float64), part) for part in series.split(200 * T)]

    def loss(output, y):
        return (output[:, 0] * y).sum()

    with pytest.warns(CaptureWarning, match="could not be decided"):  # all inputs are alike
        steps = capture_activation_gradients(model, "0", data, loss)
    with pytest.warns(CaptureWarning, match="could not be decided"):
        sums = capture_activation_gradients(model, "0", data, loss, groups=torch.arange(runs).repeat_interleave(T))
    assert (len(steps), len(sums)) == (runs * T, runs)
    apart, together = alignment_statistics(steps, unit="step"), alignment_statistics(sums, unit="series")
    inflation = together.trace.estimate / (T * apart.trace.estimate)
    error = exact * (2 / runs) ** 0.5
    assert abs(inflation - exact) < 3.5 * error
    assert abs(inflation - 1) > 8 * error
    # Taken for samples, the steps promise an error bar that is sqrt(18.955) too short.
    ratio = (together.mean_squared.standard_error / T**2) / apart.mean_squared.standard_error
    assert ratio > 3


class Twins(nn.Module):
    """A hidden layer in which units 3 and 4 are copies of 0 and 1, as a widened network starts."""

    def __init__(self):
        super().__init__()
        self.below, self.act, self.above = nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)
        with torch.no_grad():
            self.below.weight[3:] = self.below.weight[:2]
            self.below.bias[3:] = self.below.bias[:2]
            self.above.weight[:, 3:] = self.above.weight[:, :2]

    def forward(self, x):
        return self.above(self.act(self.below(x)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_report_10_duplicated_units(dtype):
    model = seeded(lambda: Twins().to(dtype))
    x = torch.randn(64, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
    q = capture_activation_gradients(model, "below", (x, torch.arange(64) % 3), ce)
    assert torch.allclose(q[:, 3:], q[:, :2], rtol=1e-5)
    s = alignment_statistics(q)
    assert s.distinct_units == 3
    assert "2 of 5 units are silent or copies of another: the rank of Sigma is at most 3" in s.notes
    assert torch.linalg.matrix_rank(torch.cov(q.double().T), rtol=1e-6) <= 3


def test_report_28_out_of_memory():
    # 50000^2 x 4 B = 9.31 GiB for the Gram matrix; tiles of it take a few per cent of that.
    assert round(50_000**2 * 4 / 2**30, 2) == 9.31
    assert forecast(50_000, 100, route="gram").bytes < 0.03 * 50_000**2 * 4
    with pytest.raises(InputError, match=r"1000 gradients of 2 entries need \d+ bytes, above memory_limit=10000"):
        alignment_statistics(torch.ones(1000, 2), memory_limit=10_000)
