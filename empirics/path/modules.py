"""What each accepted module does to labels and to masses. The list is closed: what is not on it is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .pools import pool_adaptive, pool_average, pool_max
from .squared import Mass
from .wiring import Signal, Wiring

__all__ = ["MODULES", "REASONS", "activation"]


def _beside(per_channel: Tensor, axes_after: int) -> Tensor:
    """Shape (C,) as (C, 1, ..., 1), to stand at the channel axis."""
    return per_channel.view(-1, *[1] * axes_after)


def _affine(wiring: Wiring, name: str, module: Any, x: Signal) -> Signal:
    """Linear and convolutions: the channels they read get one label at all positions, those they make fresh ones."""
    after = module.weight.dim() - 2
    channel = x.labels.dim() - 1 - after
    into = wiring.labels.constant_along(x.labels, set(range(x.labels.dim())) - {channel}).reshape(-1)
    out = wiring.labels.fresh(module.weight.shape[0])
    groups = getattr(module, "groups", 1)
    columns = into.view(groups, -1).repeat_interleave(len(out) // groups, 0) if groups > 1 else into.view(1, -1)
    weight = wiring.parameter(
        f"{name}.weight", module.weight, _beside(out, after + 1), columns.view(*columns.shape, *[1] * after)
    )
    operation = F.linear if after == 0 else lambda v, w: module._conv_forward(v, w, None)
    mass = wiring.tape.product(operation, x.flow, weight)
    if after == 0:
        wiring.layers.append((name, x.flow, mass))
    if module.bias is not None:
        bias = wiring.parameter(f"{name}.bias", module.bias, out, torch.zeros_like(out))
        mass = wiring.tape.linear(lambda v, b: v + _beside(b, after), mass, bias)
        if after == 0:
            wiring.layers[-1] = (name, x.flow, mass)
    wiring.units[name] = out
    return Signal(_beside(out, after).expand(mass.value.shape), mass)


def _batch_norm(wiring: Wiring, name: str, module: Any, x: Signal) -> Signal:
    """The scale of its input is undone in training mode, so the input is pinned; gain and bias carry fresh labels.

    In the squared network gamma^2 (x + mu^2)/(var + eps) + beta^2 with the running statistics: the subtracted mean is one
    more path. Without running statistics mu = 0 and var = 1.
    """
    after = x.labels.dim() - 2
    wiring.labels.pin(x.labels)
    mass = x.flow
    if module.running_mean is not None:
        mean = wiring.tape.parameter(module.running_mean)
        variance = _beside(module.running_var.to("cpu", torch.float64) + module.eps, after)
        mass = wiring.tape.linear(lambda v, m: (v + _beside(m, after)) / variance, mass, mean)
    else:
        mass = wiring.tape.linear(lambda v: v / (1 + module.eps), mass)
    return _gain(wiring, name, module, mass, lambda per_channel: _beside(per_channel, after))


def _rms_norm(wiring: Wiring, name: str, module: Any, x: Signal) -> Signal:
    """As batch normalisation: input pinned, gain carries fresh labels; the normaliser counts as 1 in the squared network."""
    wiring.labels.pin(x.labels)
    return _gain(wiring, name, module, x.flow, lambda per_entry: per_entry)


def _gain(wiring: Wiring, name: str, module: Any, mass: Mass, beside: Callable[[Tensor], Tensor]) -> Signal:
    if module.weight is None:
        return Signal(torch.zeros(1, dtype=torch.int64).expand(mass.value.shape), mass)
    out = wiring.labels.fresh(module.weight.numel()).view(module.weight.shape)
    ground = torch.zeros_like(out)
    weight = wiring.parameter(f"{name}.weight", module.weight, out, ground)
    mass = wiring.tape.product(lambda v, w: v * beside(w), mass, weight)
    if getattr(module, "bias", None) is not None:
        bias = wiring.parameter(f"{name}.bias", module.bias, out, ground)
        mass = wiring.tape.linear(lambda v, b: v + beside(b), mass, bias)
    wiring.units[name] = out.reshape(-1)
    return Signal(beside(out).expand(mass.value.shape), mass)


def activation(wiring: Wiring, x: Signal, kind: str) -> Signal:
    """`homogeneous` (ReLU, LeakyReLU, PReLU, dropout, identity) passes labels; `smooth` pins its input unless asked not to."""
    if kind == "homogeneous":
        return Signal(x.labels, x.mass, x.gate)
    if kind == "smooth" and wiring.smooth:
        return Signal(x.labels, x.flow, gate=True)
    wiring.labels.pin(x.labels)  # kind is "softmax", or "smooth" and exact
    return Signal(torch.zeros_like(x.labels), x.mass, gate=True)


Handler = Callable[[Wiring, str, Any, Signal], Signal]


def _keeps(kind: str) -> Handler:
    return lambda wiring, name, module, x: activation(wiring, x, kind)


def _max(axes: int) -> Handler:
    return lambda wiring, name, m, x: pool_max(
        wiring, x, axes, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode, m.return_indices
    )


def _avg(axes: int) -> Handler:
    return lambda wiring, name, m, x: pool_average(
        wiring,
        x,
        axes,
        m.kernel_size,
        m.stride,
        m.padding,
        m.ceil_mode,
        m.count_include_pad,
        getattr(m, "divisor_override", None),
    )


def _adaptive(axes: int, average: bool) -> Handler:
    return lambda wiring, name, m, x: pool_adaptive(wiring, x, axes, m.output_size, average=average)


def _reshaped(wiring: Wiring, name: str, module: Any, x: Signal) -> Signal:
    return Signal(module(x.labels), wiring.tape.linear(module, x.flow))


MODULES: dict[type, Handler] = {
    **dict.fromkeys((nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d), _affine),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), _batch_norm),
    nn.RMSNorm: _rms_norm,
    **dict.fromkeys((nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.Identity), _keeps("homogeneous")),
    **dict.fromkeys((nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d), _keeps("homogeneous")),
    **dict.fromkeys((nn.GELU, nn.SiLU), _keeps("smooth")),
    **dict.fromkeys((nn.Softmax, nn.LogSoftmax), _keeps("softmax")),
    **{nn.MaxPool1d: _max(1), nn.MaxPool2d: _max(2), nn.MaxPool3d: _max(3)},
    **{nn.AvgPool1d: _avg(1), nn.AvgPool2d: _avg(2), nn.AvgPool3d: _avg(3)},
    **{
        nn.AdaptiveAvgPool1d: _adaptive(1, True),
        nn.AdaptiveAvgPool2d: _adaptive(2, True),
        nn.AdaptiveAvgPool3d: _adaptive(3, True),
    },
    **{
        nn.AdaptiveMaxPool1d: _adaptive(1, False),
        nn.AdaptiveMaxPool2d: _adaptive(2, False),
        nn.AdaptiveMaxPool3d: _adaptive(3, False),
    },
    **dict.fromkeys((nn.Flatten, nn.Unflatten), _reshaped),
}
"""The accepted modules, by exact type: a subclass may do anything."""

_BOUNDED = "is not homogeneous, so a rescaled input changes the function"
REASONS: dict[type, str] = {
    **dict.fromkeys(
        (nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.ReLU6, nn.ELU, nn.SELU, nn.Softplus, nn.Mish, nn.Hardswish), _BOUNDED
    ),
    **dict.fromkeys(
        (nn.LayerNorm, nn.GroupNorm), "mixes the channels it normalises; RMSNorm and BatchNorm are supported"
    ),
    nn.MultiheadAttention: "packs its projections; write them as Linear modules with scaled_dot_product_attention",
    **dict.fromkeys((nn.LSTM, nn.GRU, nn.RNN), "uses its weights several times on a path"),
}
"""Why some well-known modules are refused."""
