"""Whether a network still computes what it did: outputs of copies, in evaluation mode and in its own."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from theory import InputError

__all__ = ["deviation", "outputs"]

Outputs = dict[str, list[Tensor]]


def outputs(model: nn.Module, example: Any) -> Outputs:
    """Floating-point outputs on the example by mode, "evaluation" and, where it differs, "own"; the model is copied, not called.

    Both modes draw the same random numbers each time. Batch normalisation of a batch of one has no training mode: skipped.
    """
    inputs = example if isinstance(example, tuple) else (example,)
    twin = copy.deepcopy(model)
    flags = {module: module.training for module in twin.modules()}
    found = {"evaluation": _run(twin.eval(), inputs)}
    if any(flags.values()):
        for module, training in flags.items():
            module.training = training
        try:
            found["own"] = _run(twin, inputs)
        except ValueError as fault:
            if "more than 1 value per channel" not in str(fault):
                raise
    return found


def deviation(before: Outputs, after: Outputs) -> float:
    """max abs(dy) / max abs(y), the worst of all modes.

    >>> deviation({"own": [torch.tensor([2.0, -4.0])]}, {"own": [torch.tensor([2.0, -3.0])]})
    0.25
    """
    worst = 0.0
    for mode, old in before.items():
        change = max(
            (float((b - a).abs().max()) for a, b in zip(old, after[mode], strict=True) if a.numel()), default=0.0
        )
        size = max((float(a.abs().max()) for a in old if a.numel()), default=0.0)
        worst = max(worst, change / size if size > 0 else math.inf if change > 0 else 0.0)
    return worst


def _run(model: nn.Module, inputs: tuple[Any, ...]) -> list[Tensor]:
    devices = {each.device for each in model.parameters() if each.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)), torch.no_grad(), _full_precision(bool(devices)):
        torch.manual_seed(0)
        try:
            result = model(*inputs)
        except ValueError:
            raise
        except Exception as fault:
            raise InputError(
                f"path conditioning: the model fails on the example: {type(fault).__name__}: {fault}"
            ) from None
    found = [
        each.detach().to(torch.float64)
        for each in tree_flatten(result)[0]
        if isinstance(each, Tensor) and each.is_floating_point()
    ]
    if not all(bool(torch.isfinite(each).all()) for each in found):
        raise InputError("path conditioning: the model's outputs on the example are not finite")
    return found


@contextlib.contextmanager
def _full_precision(cuda: bool) -> Iterator[None]:
    """Reduced-precision matrix products would look like a change of the function."""
    if not cuda:
        yield
        return
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
