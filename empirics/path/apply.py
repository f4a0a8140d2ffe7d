"""Multiplying parameters by their factors in place, with all that hangs on them, and putting everything back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theory import InputError

__all__ = ["rescale"]

_POWERS: dict[type, dict[str, int]] = {
    torch.optim.SGD: {"momentum_buffer": -1},
    torch.optim.Adam: {"exp_avg": -1, "exp_avg_sq": -2, "max_exp_avg_sq": -2},
    torch.optim.AdamW: {"exp_avg": -1, "exp_avg_sq": -2, "max_exp_avg_sq": -2},
}
"""Optimiser state by the power of the parameter's factor it scales with: gradients go with its inverse."""


def rescale(
    model: nn.Module, exponents: Mapping[str, np.ndarray], optimizer: torch.optim.Optimizer | None = None
) -> Callable[[], None]:
    """Multiply each named parameter by e^exponent in place; returns a function that puts every bit back.

    The product is formed in float64 and rounded once to the parameter's dtype. Gradients that are there are divided by
    the factors, as the gradient at the new point is; so is the optimiser's momentum, and Adam's second moment by their squares.

    Raises InputError, with everything as it was, where an entry that is not 0 would become 0, infinite, or subnormal in
    its dtype, and for an optimiser with state other than that of SGD, Adam and AdamW.

    >>> net = nn.Linear(1, 1, bias=False)
    >>> before = net.weight.item()
    >>> undo = rescale(net, {"weight": np.full((1, 1), np.log(2.0))})
    >>> net.weight.item() == 2 * before, undo(), net.weight.item() == before
    (True, None, True)
    """
    parameters = dict(model.named_parameters())
    changed = {name: exponent for name, exponent in exponents.items() if exponent.any()}
    held: list[tuple[str, Tensor, np.ndarray]] = [(name, parameters[name], changed[name]) for name in changed]
    for name, exponent in changed.items():
        if parameters[name].grad is not None:
            held.append((f"the gradient of {name}", parameters[name].grad, -exponent))
    if optimizer is not None:
        held += _state(optimizer, {parameters[name]: (name, exponent) for name, exponent in changed.items()})
    saved = [tensor.detach().clone() for _, tensor, _ in held]

    def undo() -> None:
        with torch.no_grad():
            for (_, tensor, _), old in zip(held, saved, strict=True):
                tensor.copy_(old)

    try:
        with torch.no_grad():
            for (what, tensor, exponent), old in zip(held, saved, strict=True):
                with np.errstate(over="ignore"):  # what overflows is refused below, by name
                    factor = torch.from_numpy(np.exp(exponent)).to(tensor.device)
                tensor.copy_((old.to(torch.float64) * factor).to(tensor.dtype))
                _survived(what, old, tensor, float(np.abs(exponent).max()))
    except BaseException:
        undo()
        raise
    return undo


def _survived(what: str, old: Tensor, new: Tensor, largest: float) -> None:
    tiny = torch.finfo(new.dtype).tiny
    lost = ((old != 0) & ((new == 0) | ~torch.isfinite(new))) | ((old.abs() >= tiny) & (new.abs() < tiny))
    if bool(lost.any()):
        raise InputError(
            f"path conditioning: {int(lost.sum())} entries of {what} would leave the range of {new.dtype} (log-factors up to "
            f"{largest:.3g}); nothing was changed. Give a smaller max_abs_z, or use float64"
        )


def _state(
    optimizer: torch.optim.Optimizer, changed: Mapping[Any, tuple[str, np.ndarray]]
) -> list[tuple[str, Tensor, np.ndarray]]:
    held = []
    for parameter, state in optimizer.state.items():
        if parameter not in changed or not state:
            continue
        name, exponent = changed[parameter]
        powers = _POWERS.get(type(optimizer))
        if powers is None:
            raise InputError(
                f"path conditioning: {type(optimizer).__name__} has gathered state that cannot be rescaled (SGD, Adam and AdamW "
                "can): make the optimiser after conditioning"
            )
        for key, power in powers.items():
            if isinstance(state.get(key), Tensor):
                held.append((f"{key} of {name}", state[key], power * exponent))
    return held
