"""Pooling on labels and masses: windows tie a channel's positions, and every window entry is a path of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.modules.utils import _ntuple

from theory import InputError

from .wiring import Signal, Wiring

__all__ = ["pool_adaptive", "pool_average", "pool_max", "reduce"]


def _pooled(wiring: Wiring, x: Signal, axes: int, operation: Callable[[Tensor], Tensor]) -> Signal:
    """Windows overlap, so a channel has one label; labels stay with their channels."""
    spatial = set(range(x.labels.dim() - axes, x.labels.dim()))
    labels = wiring.labels.constant_along(x.labels, spatial)
    mass = wiring.tape.linear(operation, x.flow)
    return Signal(labels.expand(mass.value.shape), mass)


def _window(axes: int, sizes: Any) -> tuple[int, ...]:
    # Pooling in one dimension is pooling in two over windows of height 1: only there can the divisor be set.
    return (1, *_ntuple(1)(sizes)) if axes == 1 else _ntuple(axes)(sizes)


def _average(
    v: Tensor, axes: int, size: Any, stride: Any, padding: Any, ceil: bool, count_pad: bool, divisor: int | None
) -> Tensor:
    pads = (0, *_ntuple(1)(padding)) if axes == 1 else _ntuple(axes)(padding)
    operation = F.avg_pool3d if axes == 3 else F.avg_pool2d
    lifted = v.unsqueeze(-2) if axes == 1 else v
    out = operation(lifted, _window(axes, size), _window(axes, stride), pads, ceil, count_pad, divisor)
    return out.squeeze(-2) if axes == 1 else out


def pool_max(
    wiring: Wiring, x: Signal, axes: int, size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Signal:  # fmt: skip
    """The lifting has a path from every entry of the window: the squared network sums (or, to match a peer, takes the max)."""
    if return_indices or any(each != 1 for each in _ntuple(axes)(dilation)):
        raise InputError("max-pooling with dilation or returned indices is not supported")
    step = size if stride is None or stride == [] else stride
    if wiring.maxpool == "max":
        operation = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[axes]
        return _pooled(wiring, x, axes, lambda v: operation(v, size, step, padding, ceil_mode=ceil_mode))
    return _pooled(wiring, x, axes, lambda v: _average(v, axes, size, step, padding, ceil_mode, True, 1))


def pool_average(
    wiring: Wiring, x: Signal, axes: int, size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Signal:  # fmt: skip
    """Edges of weight 1/divisor, squared window by window: the average over the divisor, which may differ at the border."""
    step = size if stride is None or stride == [] else stride

    def operation(v: Tensor) -> Tensor:
        one = torch.ones_like(v)
        entries = _average(one, axes, size, step, padding, ceil_mode, count_include_pad, 1)
        inverse = _average(one, axes, size, step, padding, ceil_mode, count_include_pad, divisor_override) / entries
        return _average(v, axes, size, step, padding, ceil_mode, count_include_pad, divisor_override) * inverse

    return _pooled(wiring, x, axes, operation)


def pool_adaptive(wiring: Wiring, x: Signal, axes: int, output_size: Any, *, average: bool) -> Signal:
    """Adaptive windows: the average times the inverse of the window's size, or the sum."""
    operation = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}[axes]

    def squared(v: Tensor) -> Tensor:
        out = operation(v, output_size)
        for axis in range(-axes, 0):
            n, m = v.shape[axis], out.shape[axis]
            sizes = torch.tensor([-(-(k + 1) * n // m) - k * n // m for k in range(m)], dtype=torch.float64)
            shape = [-1 if each == axis else 1 for each in range(-axes, 0)]
            out = out * (1 / sizes if average else sizes).view(shape)
        return out

    if wiring.maxpool == "max" and not average:
        peer = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}[axes]
        return _pooled(wiring, x, axes, lambda v: peer(v, output_size))
    return _pooled(wiring, x, axes, squared)


def reduce(wiring: Wiring, x: Signal, axes: Any = None, keepdim: bool = False, *, average: bool) -> Signal:
    """Mean or sum over axes other than the first: all positions along them share their labels."""
    dims = x.labels.dim()
    listed = range(dims) if axes is None else (axes,) if isinstance(axes, int) else axes
    reduced = sorted({axis % dims for axis in listed})
    if 0 in reduced:
        raise InputError("a mean or sum over the first axis mixes samples")
    count = 1
    for axis in reduced:
        count *= x.labels.shape[axis]
    labels = wiring.labels.constant_along(x.labels, set(reduced))
    mass = wiring.tape.linear(lambda v: v.sum(reduced, keepdim=keepdim) / (count**2 if average else 1), x.flow)
    return Signal(labels.reshape(mass.value.shape), mass)
