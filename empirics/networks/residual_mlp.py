"""The pre-norm residual perceptron: z_0 = E x, z_l = z_(l-1) + V_l phi(U_l norm(z_(l-1))), f(x) = R norm(z_L)."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from theory import InputError

__all__ = ["Block", "ResidualMLP", "mup_groups", "residual_mlp"]

BASE_WIDTH = 64
"""The width at which every matrix has the learning rate that is named."""


class Block(nn.Module):
    """z + V gelu(U norm(z)); norm divides by the root mean square and has no parameters, matrices have no biases."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width, elementwise_affine=False)
        self.U = skip_init(nn.Linear, width, hidden, bias=False)
        self.V = skip_init(nn.Linear, hidden, width, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        """(n, width) to (n, width)."""
        return z + self.V(nn.functional.gelu(self.U(self.norm(z))))


class ResidualMLP(nn.Module):
    """`embed`, `blocks.0` to `blocks.(depth-1)`, `norm`, `head`; each block's output is a full cut of the network.

    Entries are Gaussian of variance 1/fan_in, those of V divided by `depth` besides, so that the stream keeps its size;
    the head is zero. Weights are drawn from `generator` alone.
    """

    def __init__(
        self, width: int, depth: int, generator: torch.Generator, inputs: int, outputs: int, expansion: int
    ) -> None:
        super().__init__()
        self.embed = skip_init(nn.Linear, inputs, width, bias=False)
        self.blocks = nn.Sequential(*(Block(width, expansion * width) for _ in range(depth)))
        self.norm = nn.RMSNorm(width, elementwise_affine=False)
        self.head = skip_init(nn.Linear, width, outputs, bias=False)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                fan_in = weight.shape[1] * (depth if name.endswith("V.weight") else 1)
                draw = torch.randn(weight.shape, generator=generator, dtype=torch.float64) / sqrt(fan_in)
                weight.copy_(draw if weight is not self.head.weight else torch.zeros(weight.shape))

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs) to (n, outputs)."""
        return self.head(self.norm(self.blocks(self.embed(x))))


def residual_mlp(
    width: int, depth: int = 4, seed: int = 0, *, inputs: int = 64, outputs: int = 10, expansion: int = 4
) -> ResidualMLP:
    """A pre-norm residual perceptron in float32 with weights drawn from `seed`; torch's own generator is not touched.

    `expansion` is the ratio of a block's hidden width to `width`. Zero head: the initial output, and with it every
    activation gradient, is exactly zero.

    >>> network = residual_mlp(16, depth=2)
    >>> [name for name, _ in network.named_parameters()][:3]
    ['embed.weight', 'blocks.0.U.weight', 'blocks.0.V.weight']
    """
    if min(width, depth, inputs, outputs, expansion) < 1:
        sizes = f"width={width}, depth={depth}, inputs={inputs}, outputs={outputs}, expansion={expansion}"
        raise InputError(f"all sizes of a residual perceptron must be at least 1; got {sizes}")
    return ResidualMLP(width, depth, torch.Generator().manual_seed(seed), inputs, outputs, expansion)


def mup_groups(network: ResidualMLP, rate: float) -> list[dict[str, Any]]:
    """Parameter groups for Adam with the learning rates of muP: `rate` for the embedding, rate 64/width for the others.

    Where the fan-in grows with the width, steps of 1/width in every entry move the outputs by an amount of order one;
    the embedding's fan-in is fixed. The groups carry their `name`.

    >>> [group["lr"] for group in mup_groups(residual_mlp(256, depth=1), 0.01)]
    [0.01, 0.0025, 0.0025]
    """
    hidden = rate * BASE_WIDTH / network.embed.out_features
    return [
        {"name": "embed", "params": list(network.embed.parameters()), "lr": rate},
        {"name": "blocks", "params": list(network.blocks.parameters()), "lr": hidden},
        {"name": "head", "params": list(network.head.parameters()), "lr": hidden},
    ]
