"""Activation gradients: q_i = dL_i/dz_i, the gradient of sample i's loss at the output z_i of one module.

The network is cut behind that module. Below the cut it runs without autograd, its output is replaced by a leaf, and one
backward pass of the summed loss down to the leaf gives every q_i of the batch at once: row i of the gradient of a sum
over samples is the gradient of sample i's own loss, as long as samples do not interact (`coupling` holds that to the
test). Weight gradients are never formed, so frozen parameters are as good as trainable ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import length_hint
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from theory import InputError

from .coupling import Findings, examine
from .cut import Cut, tensors, untouched

__all__ = ["Capture", "CaptureWarning", "capture", "capture_activation_gradients", "sum_over_groups"]

MEMORY_LIMIT = 2**33
PerBatch = Callable[[Any, Any], Any]


class CaptureWarning(UserWarning):
    """The gradients are what was asked for, but not quite what one may think: the message says in which respect."""


@dataclass(frozen=True)
class Capture:
    """Gradients (n, d) in the model's dtype on its device, and what is known about them.

    `shape` is the shape of one sample's activation before the reduction to d numbers; `partial` says whether the
    network reads its input round the boundary (None: not decided); `random` whether forward passes draw random numbers;
    `notes` holds in words all that a user should know.
    """

    gradients: Tensor
    boundary: str
    shape: tuple[int, ...]
    partial: bool | None
    random: bool
    notes: tuple[str, ...]


def capture_activation_gradients(
    model: nn.Module,
    boundary: str,
    data: Iterable[tuple[Any, Any]] | tuple[Any, Any],
    loss: Callable[[Any, Any], Tensor],
    *,
    reduce: Literal["sum", "flatten"] | tuple[int, ...] = "sum",
    mask: Tensor | PerBatch | None = None,
    groups: Sequence[Any] | Tensor | PerBatch | None = None,
    probe: bool = True,
    memory_limit: int = MEMORY_LIMIT,
) -> Tensor:
    """The gradients q_i of each sample's loss at the output of the module named `boundary`, as one tensor (n, d).

    `data` is an iterable of batches (x, y), or one pair; x is a tensor, a tuple of positional or a mapping of keyword
    inputs, samples along the first axis; the batches are moved to the model's device. `loss(output, y)` returns the sum
    over samples: q_i is then per sample, whatever the batch size (a mean would divide it by n).

    `reduce` says what becomes of further axes. "sum": the gradient of an insertion shared by all positions; summed over
    axis 1 of (n, T, N) and over all axes after the channels of (n, C, H, W). "flatten": the gradient of an insertion of
    its own at every position. A tuple names the axes to sum over (channels last: (1, 2); Conv1d: (2,)).
    `mask` (or mask(x, y) for each batch) is True where a position counts; padded positions contribute zero.
    `groups` (or groups(x, y)) labels dependent samples: the gradients that carry one label are *summed* into one
    sample, as the loss sums them. Samples must be independent, or every error bar is too small.

    The first batch is probed (`coupling.examine`; `probe=False` spares a scan over checkpoints the few extra passes).
    A network whose samples interact, a loss that is not a sum, a module that is not called exactly once with one tensor
    are refused with the reason. A path that goes round the boundary, or noise in the forward pass, is told as a
    `CaptureWarning`; `capture` returns the same as data. Mode, parameters, buffers, .grad fields and torch's generators
    are bit for bit as before; state that a model keeps in plain attributes cannot be.

    Returns a tensor (n, d) in the dtype and on the device of the activation, sums over positions formed in float64.
    Raises InputError for all of the above, for no data, gradients that are not finite, or more than `memory_limit`
    bytes (8 GiB) of them. Source: notes on alignment, sections 7 and 10.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten())
    >>> x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    >>> capture_activation_gradients(net, "0", (x, y), lambda output, y: ((output - y) ** 2).sum() / 2).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    captured = capture(
        model, boundary, data, loss, reduce=reduce, mask=mask, groups=groups, probe=probe, memory_limit=memory_limit
    )
    for note in captured.notes:
        warnings.warn(note, CaptureWarning, stacklevel=2)
    return captured.gradients


def capture(
    model: nn.Module,
    boundary: str,
    data: Iterable[tuple[Any, Any]] | tuple[Any, Any],
    loss: Callable[[Any, Any], Tensor],
    *,
    reduce: Literal["sum", "flatten"] | tuple[int, ...] = "sum",
    mask: Tensor | PerBatch | None = None,
    groups: Sequence[Any] | Tensor | PerBatch | None = None,
    probe: bool = True,
    memory_limit: int = MEMORY_LIMIT,
) -> Capture:
    """As `capture_activation_gradients`, but what there is to know about the gradients comes as data, not warnings."""
    cut = Cut(model, boundary, loss)
    findings, probed = Findings(), 0
    parts: list[Tensor] = []
    labels: list[Any] = []
    held, n = 0, 0
    shape: tuple[int, ...] = ()
    batches = _batches(data)
    with torch.inference_mode(False), untouched(model):
        for number, batch in enumerate(batches, 1):
            x, y, size = _batch(model, batch, number)
            if probe and probed < min(size, 2):
                (findings, q), probed = examine(cut, x, y, size), size
                cut = Cut(model, boundary, loss, findings.broadcast)
            else:
                q = cut.gradient(x, y).gradient
            shape = tuple(q.shape[1:])
            q = _reduced(q, reduce, _part(mask, x, y, n, size))
            bad = size - int(torch.isfinite(q).all(1).sum())
            if bad:
                raise InputError(f"the gradients of {bad} of {size} samples in batch {number} are not finite")
            parts.append(q)
            labels.extend(_listed(_part(groups, x, y, n, size), size) if groups is not None else ())
            n, held = n + size, held + q.nbytes
            expected = held * max(number, length_hint(batches)) // number
            if expected > memory_limit:
                raise InputError(
                    f"the gradients would take {expected} bytes ({q.shape[1]} numbers of {q.element_size()} bytes a "
                    f"sample), above memory_limit={memory_limit}; sum over positions, or add up Moments batch by batch"
                )
    if not parts:
        raise InputError("data yielded no batch: an empty loader, or an iterator that was used up before")
    for name, given in (("mask", mask), ("groups", groups)):
        if given is not None and not callable(given) and len(given) != n:
            raise InputError(f"{name} has {len(given)} entries for {n} samples")
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError("the size of q differs between batches (sequences of different length): use reduce='sum'")
    gradients = torch.cat(parts)
    gradients = sum_over_groups(gradients, labels) if groups is not None else gradients
    return Capture(gradients, boundary, shape, findings.partial if probe else None, findings.random, findings.notes)


def sum_over_groups(q: Tensor, labels: Sequence[Any] | Tensor) -> Tensor:
    """One row for each label: the sum of the gradients (n, d) that carry it, in order of first appearance.

    Summed, not averaged: a group's loss is the sum of its samples' losses. The sums are formed in float64.

    >>> import torch
    >>> sum_over_groups(torch.tensor([[1.0], [2.0], [4.0]]), ["a", "b", "a"]).tolist()
    [[5.0], [2.0]]
    """
    names = _listed(labels, len(q))
    number = {name: position for position, name in enumerate(dict.fromkeys(names))}
    index = torch.tensor([number[name] for name in names], device=q.device)
    sums = torch.zeros(len(number), q.shape[1], dtype=torch.float64, device=q.device)
    return sums.index_add_(0, index, q.to(torch.float64)).to(q.dtype)


def _batches(data: Any) -> Iterable[Any]:
    if isinstance(data, (tuple, list)) and len(data) == 2 and isinstance(data[1], Tensor) and tensors(data[0]):
        return [data]
    if not isinstance(data, Iterable) or isinstance(data, Tensor):
        raise InputError(f"data must be batches (x, y), or one pair (x, y) of tensors; got {type(data).__name__}")
    return data


def _batch(model: nn.Module, batch: Any, number: int) -> tuple[Any, Any, int]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise InputError(f"batch {number} must be a pair (x, y); got {type(batch).__name__}")
    devices = {each.device for each in [*model.parameters(), *model.buffers()]}
    if len(devices) == 1:
        (device,) = devices
        batch = tree_map_only(Tensor, lambda t: t.to(device), tuple(batch))
    x, y = batch
    sizes = [t.shape[:1] for t in tensors((x, y)) if t.dim()]
    if not tensors(x) or not sizes or not tensors(x)[0].dim():
        raise InputError(f"batch {number} has no input tensor with samples along its first axis")
    if len(tensors(x)[0]) == 0:
        raise InputError(f"batch {number} is empty")
    if any(t.dim() and t.shape[:1] != sizes[0] for t in tensors(y)):
        got = [tuple(t.shape) for t in tensors(y)]
        raise InputError(f"batch {number}: x has {sizes[0][0]} samples along its first axis, y has shape {got}")
    return x, y, sizes[0][0]


def _part(given: Any, x: Any, y: Any, start: int, size: int) -> Any:
    """The rows of a per-sample option that belong to this batch."""
    if given is None:
        return None
    return given(x, y) if callable(given) else given[start : start + size]


def _listed(labels: Any, n: int) -> list[Any]:
    listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(listed) != n:
        raise InputError(f"groups must give one label a sample: {len(listed)} labels for {n} samples")
    return listed


def _reduced(q: Tensor, reduce: str | tuple[int, ...], mask: Tensor | None) -> Tensor:
    """(n, ...) to (n, d)."""
    positions = (1,) if q.dim() == 3 else tuple(range(2, q.dim()))
    if not isinstance(reduce, str):
        positions = tuple(axis % q.dim() for axis in reduce)
        if 0 in positions:
            raise InputError(f"reduce={reduce} sums over axis 0 of q, shape {tuple(q.shape)}: those are the samples")
    elif reduce not in ("sum", "flatten"):
        raise InputError(f"reduce must be 'sum', 'flatten' or a tuple of axes; got {reduce!r}")
    if mask is not None:
        expected = (len(q), *(q.shape[axis] for axis in sorted(positions)))
        if tuple(mask.shape) != expected or not positions:
            raise InputError(f"the mask must have shape {expected}, samples and positions; got {tuple(mask.shape)}")
        shape = [length if axis == 0 or axis in positions else 1 for axis, length in enumerate(q.shape)]
        # A choice, not a product: padded positions may carry NaN.
        q = torch.where(mask.to(q.device, torch.bool).reshape(shape), q, torch.zeros_like(q))
    if positions and reduce != "flatten":
        q = q.sum(positions, dtype=torch.float64).to(q.dtype)
    return q.reshape(len(q), -1)
