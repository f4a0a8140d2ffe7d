"""Handwritten digits (scikit-learn's 1797 images of 8 x 8) and a residual perceptron trained on them, by seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from theory import InputError

from .residual_mlp import ResidualMLP, mup_groups, residual_mlp

__all__ = ["TrainedOnDigits", "cross_entropy_sum", "digits", "trained_on_digits"]

TRAIN, BATCH = 600, 100
Pair = tuple[Tensor, Tensor]


def cross_entropy_sum(output: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy in nats, summed over samples: the loss that activation gradients are captured with."""
    return cross_entropy(output, y, reduction="sum")


@cache
def _images() -> Pair:
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.from_numpy(data.data), torch.from_numpy(data.target).to(torch.int64)


def digits(seed: int = 0) -> tuple[Pair, Pair]:
    """(train, held out): 600 and 1197 digits, x (n, 64) float32, y (n,) int64, split by a permutation from `seed`.

    Pixels are centred and scaled by the mean and standard deviation of all training pixels (two numbers, not 64 pairs).

    >>> (x, y), (held_x, held_y) = digits()
    >>> tuple(x.shape), len(held_y), abs(float(x.mean())) < 1e-6, round(float(x.std()), 4)
    ((600, 64), 1197, True, 1.0)
    """
    x, y = _images()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    x, y = x[order], y[order]
    x = ((x - x[:TRAIN].mean()) / x[:TRAIN].std()).to(torch.float32)
    return (x[:TRAIN], y[:TRAIN]), (x[TRAIN:], y[TRAIN:])


@dataclass(frozen=True)
class TrainedOnDigits:
    """A network in evaluation mode, the data it was fitted to, data that it has not seen, and where to cut it.

    `losses` holds the mean training loss of each step's batch in nats, `accuracy` the fraction of held-out digits that
    are classified correctly.
    """

    network: ResidualMLP
    train: Pair
    held_out: Pair
    boundary: str
    losses: tuple[float, ...]
    accuracy: float


def trained_on_digits(
    width: int,
    seed: int = 0,
    steps: int = 24,
    *,
    depth: int = 4,
    rate: float = 1e-3,
    expansion: int = 4,
) -> TrainedOnDigits:
    """A residual perceptron after `steps` steps of Adam on batches of 100 of 600 digits (24 steps are 4 epochs).

    Mean cross-entropy, learning rates of muP (`mup_groups`), a new order each epoch. Split, weights and order come from
    `seed` alone, torch's own generator is not touched. `boundary` is the block in the middle. Activation gradients for
    a certificate must come from `held_out`: the mean gradient on `train` has been trained towards zero.

    >>> trained = trained_on_digits(32, seed=0, steps=24)
    >>> trained.boundary, trained.losses[-1] < trained.losses[0], trained.accuracy > 0.5
    ('blocks.1', True, True)
    """
    if steps < 0 or rate <= 0:
        raise InputError(f"training takes steps >= 0 and a positive rate; got steps={steps}, rate={rate}")
    network = residual_mlp(width, depth, seed, expansion=expansion)
    (x, y), held_out = digits(seed)
    # A stream of its own: the order must not depend on how many weights were drawn.
    order = torch.Generator().manual_seed(seed + 2**32)
    optimizer = torch.optim.Adam(mup_groups(network, rate))
    losses: list[float] = []
    batches: list[Tensor] = []
    for _ in range(steps):
        batches = batches or list(torch.randperm(TRAIN, generator=order).split(BATCH))
        index = batches.pop()
        loss = cross_entropy(network(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    optimizer.zero_grad()
    network.eval()
    with torch.no_grad():
        accuracy = float((network(held_out[0]).argmax(1) == held_out[1]).double().mean())
    return TrainedOnDigits(network, (x, y), held_out, f"blocks.{(depth - 1) // 2}", tuple(losses), accuracy)
