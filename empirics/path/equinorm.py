"""Equinormalisation of a network, the rescaling that path conditioning is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from numerics.path.baselines import enorm

from .condition import change_scales
from .gram import analyse, pairs

__all__ = ["equinormalise"]


def equinormalise(model: nn.Module, example: Any, *, order: float = 2.0) -> dict[str, Tensor]:
    """Rescale `model` in place to the least sum of abs(theta)^order; the function stays the same.

    ENorm at convergence: at every unit the incoming parameters, biases included, and the outgoing ones then have one sum of
    abs(theta)^order. Channels share factors as under `path_condition`, whose exactness, refusals and roll-back apply. Frozen
    parameters do not count. Returns the log-factors z by module, incoming parameters having been multiplied by e^(z/2).
    Source: seed 003 (baseline), its fixed point derived here.

    >>> net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1, bias=False)).double()
    >>> for weight, value in zip(net.parameters(), (8.0, 0.5)):
    ...     _ = nn.init.constant_(weight, value)
    >>> _ = equinormalise(net, torch.zeros(1, 1).double())
    >>> [round(each.item(), 9) for each in net.parameters()]
    [2.0, 2.0]
    """
    analysis = analyse(model, example)
    parameters, parts = dict(model.named_parameters()), []
    for entry, out, into in zip(analysis.wiring.entries, analysis.out, analysis.into, strict=True):
        if not entry.frozen:
            power = parameters[entry.name].detach().to("cpu", torch.float64).abs() ** order
            parts.append(pairs(power, None, 0.0, out, into))
    out, into, logs, _ = (np.concatenate(each) for each in zip(*parts, strict=True))
    z = np.concatenate(([0.0], enorm(out, into, logs, labels=analysis.labels, order=order)))
    change_scales(model, example, analysis, z)
    return {name: torch.from_numpy(z[labels]) for name, labels in analysis.units.items()}
