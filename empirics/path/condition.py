"""path_condition: rescale a network in place, before training, so that its path kernel is as even as rescaling can make it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from numerics.path.solver import Solution, solve
from theory import InputError

from .apply import rescale
from .gram import Analysis, analyse
from .unchanged import deviation, outputs

__all__ = ["Receipt", "change_scales", "path_condition"]

BOX = 60.0
"""Default max_abs_z where a parameter is not float64: e^(60/2) is 1e13, and a float32 ends at 1e-38."""
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest relative change of the outputs that rounding of the parameters to their dtype explains."""


@dataclass(frozen=True)
class Receipt:
    """What was done to a network.

    * `factors`: by Linear, convolution and norm, the log-factors z of its output channels, float64. Incoming parameters were
      multiplied by e^(z/2), outgoing ones by e^(-z/2); 0 is "not rescaled".
    * `gap_before`, `gap_after`: log(AM/GM) of g. `certificate`: how far gap_after is above the least possible, at most.
    * `max_output_change`: max abs(dy)/max abs(y) on the example, over evaluation mode and the model's own.
    * `skipped`: (parameter, number of entries, reason). `clipped`: by module, the channels that max_abs_z holds.
    * `parameters`: p. `labels`: the number of free rescalings. `steps`: of Newton's method.
    """

    factors: dict[str, Tensor]
    gap_before: float
    gap_after: float
    certificate: float
    max_output_change: float
    skipped: tuple[tuple[str, int, str], ...]
    clipped: dict[str, list[int]]
    parameters: int
    labels: int
    steps: int
    settings: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; a certificate that does not exist is null."""
        return {
            "factors": {name: z.tolist() for name, z in self.factors.items()},
            "gap_before": self.gap_before,
            "gap_after": self.gap_after,
            "certificate": self.certificate if math.isfinite(self.certificate) else None,
            "max_output_change": self.max_output_change,
            "skipped": [list(each) for each in self.skipped],
            "clipped": self.clipped,
            "parameters": self.parameters,
            "labels": self.labels,
            "steps": self.steps,
            "settings": self.settings,
        }

    def __str__(self) -> str:
        gaps = f"gap {self.gap_before:.6g} -> {self.gap_after:.6g}, least possible within {self.certificate:.1e}"
        what = f"{self.labels} rescalings of {self.parameters} parameters"
        return f"{what}: {gaps}; outputs changed by {self.max_output_change:.1e}"


def path_condition(
    model: nn.Module,
    example: Any,
    *,
    maxpool: str = "sum",
    smooth: bool = False,
    max_abs_z: float | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Receipt:
    """Rescale `model` in place to the minimum of the PathCond criterion; the function it computes stays the same.

    g_i, the diagonal of the path Gram matrix, is made as even as rescaling can: the gap log(AM/GM) of g over all p
    trainable parameters with g > 0 is minimised exactly, biases and norm gains included. Channels that a skip joins share
    a factor; inputs, outputs, what feeds a normalisation, gates, queries and keys keep their scale, and so do the units
    that a frozen parameter (requires_grad=False) touches.

    `example`: an input or a tuple of them, samples along the first axis. `maxpool="max"` takes the largest path of a window,
    as the authors' code, for comparison. `smooth=True` rescales through GELU and SiLU as if they were homogeneous: the
    function then changes, and the receipt says how much. `max_abs_z` bounds every log-factor (by default 60, no bound in
    float64). `optimizer` (SGD, Adam, AdamW) has its moments rescaled along, as gradients are. Modes, buffers and dtypes stay.

    All is worked out on a copy. Then the model is changed, and outputs before and after are compared in evaluation mode and
    in its own: if they differ by more than rounding, or an entry would leave its dtype's range, everything is put back.
    Returns a `Receipt`. Raises InputError for that, and for any module or operation that is not on the closed list
    (`empirics.path.modules`), by name and with the reason. Source: seed 003; solver, certificate, graphs derived here.

    >>> _ = torch.manual_seed(0)
    >>> net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    >>> receipt = path_condition(net, torch.zeros(1, 8, dtype=torch.float64))
    >>> round(receipt.gap_before, 3), round(receipt.gap_after, 3), receipt.max_output_change < 1e-12
    (1.562, 0.309, True)
    """
    box = max_abs_z if max_abs_z is not None else _box(model)
    analysis = analyse(model, example, maxpool=maxpool, smooth=smooth)
    objective, start, dead = analysis.criterion()
    found = solve(objective, start=start, max_abs_z=box)
    z = np.concatenate(([0.0], found.z))
    change = change_scales(model, example, analysis, z, optimizer, exact=not smooth)
    settings = {"maxpool": maxpool, "smooth": smooth, "max_abs_z": box if math.isfinite(box) else None}
    return _receipt(model, analysis, found, z, change, dead, objective.parameters, settings)


def change_scales(
    model: nn.Module,
    example: Any,
    analysis: Analysis,
    z: np.ndarray,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    exact: bool = True,
) -> float:
    """Rescale in place by the log-factors z (H+1,), z[0] = 0; the outputs' relative change, or an error and all put back."""
    exponents = {
        entry.name: np.broadcast_to((z[out] - z[into]) / 2, entry.mass.value.shape)
        for entry, out, into in zip(analysis.wiring.entries, analysis.out, analysis.into, strict=True)
        if not entry.frozen
    }
    before = outputs(model, example)
    undo = rescale(model, exponents, optimizer)
    try:
        change = deviation(before, outputs(model, example))
        tolerance = TOLERANCES[_coarsest(model)]
        if exact and not change <= tolerance:
            raise InputError(
                f"path conditioning changed the outputs by {change:.2e} of their size, more than {tolerance:.0e}: the forward "
                "pass does something that its traced graph does not show. Everything was put back"
            )
    except BaseException:
        undo()
        raise
    return change


def _coarsest(model: nn.Module) -> torch.dtype:
    dtypes = [each.dtype for each in model.parameters() if each.is_floating_point()]
    unknown = [each for each in dtypes if each not in TOLERANCES]
    if unknown:
        raise InputError(f"path conditioning: parameters of {unknown[0]} are not supported")
    return max(dtypes, key=lambda each: TOLERANCES[each], default=torch.float64)


def _box(model: nn.Module) -> float:
    return math.inf if _coarsest(model) is torch.float64 else BOX


def _receipt(
    model: nn.Module,
    analysis: Analysis,
    found: Solution,
    z: np.ndarray,
    change: float,
    dead: dict[str, int],
    p: float,
    settings: dict[str, Any],
) -> Receipt:
    assert found.gap_before is not None
    assert found.gap is not None
    entries = {entry.name: entry for entry in analysis.wiring.entries}
    skipped = []
    for name, each in model.named_parameters():
        entry = entries.get(name)
        if entry is None:
            skipped.append((name, each.numel(), "no path parameter: an activation's slope, or not on the traced graph"))
        elif entry.frozen:
            skipped.append((name, each.numel(), "frozen: the units it touches keep their scale"))
        elif name in dead:
            skipped.append((name, dead[name], "no path with weight leads through: g = 0"))
    held = np.concatenate(([False], found.clipped))
    clipped = {
        name: np.flatnonzero(held[labels]).tolist() for name, labels in analysis.units.items() if held[labels].any()
    }
    return Receipt(
        factors={name: torch.from_numpy(z[labels]) for name, labels in analysis.units.items()},
        gap_before=found.gap_before,
        gap_after=found.gap,
        certificate=found.certificate,
        max_output_change=change,
        skipped=tuple(skipped),
        clipped=clipped,
        parameters=int(p),
        labels=analysis.labels,
        steps=found.steps,
        settings=settings,
    )
