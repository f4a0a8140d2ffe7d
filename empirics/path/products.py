"""Sums and products of activations: residual adds, fixed factors, gates, and attention.

A product multiplies, so log-factors add up; ties cannot say that, so one factor, the gate, is pinned, and the product
carries the other's labels. In the squared network gates and softmax are slopes, set to 1 (the rows of attention sum to 1).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from theory import InputError

from .wiring import Signal, Wiring

__all__ = ["add", "attention", "matmul", "multiply", "negate", "softmax"]

Factor = int | float


def add(wiring: Wiring, a: Any, b: Any, *, alpha: Any = 1) -> Signal:
    """Sum or difference: both summands need one rescaling. A mask may be added to scores; no other constant to anything."""
    if isinstance(b, Signal) and not isinstance(a, Signal):
        a, b = b, a
    if a.score and not isinstance(b, Signal):
        return Signal(
            a.labels + torch.zeros_like(a.labels) if not isinstance(b, Tensor) else _shaped(a.labels, b),
            None,
            score=True,
        )
    if not isinstance(b, Signal):
        if isinstance(b, (int, float)) and b == 0:  # the start of Python's sum()
            return a
        raise InputError("adds a constant to an activation: a rescaled activation would need another constant")
    if alpha not in (1, -1):
        raise InputError(f"adds with alpha={alpha}; multiply by a number first")
    if a.labels.shape != b.labels.shape:
        raise InputError(
            f"adds activations of shapes {tuple(a.labels.shape)} and {tuple(b.labels.shape)}; only equal shapes add"
        )
    wiring.labels.tie(a.labels, b.labels)
    return Signal(a.labels, wiring.tape.linear(torch.add, a.flow, b.flow))


def _shaped(labels: Tensor, other: Tensor) -> Tensor:
    return labels.expand(torch.broadcast_shapes(labels.shape, other.shape))


def negate(wiring: Wiring, x: Signal) -> Signal:
    """A fixed edge of weight -1."""
    return multiply(wiring, x, -1)


def multiply(wiring: Wiring, a: Any, b: Any, *, inverse: bool = False) -> Signal:
    """By a number, a fixed edge; by another activation, a gate: the output of a smooth activation, else the left factor."""
    if isinstance(b, Signal) and not isinstance(a, Signal) and not inverse:
        a, b = b, a
    if isinstance(a, Signal) and isinstance(b, (int, float)) and not isinstance(b, bool):
        if a.score:
            return a
        factor = 1 / b**2 if inverse else b**2
        return Signal(a.labels, wiring.tape.linear(lambda v: v * factor, a.flow), gate=a.gate)
    if inverse or not (isinstance(a, Signal) and isinstance(b, Signal)):
        raise InputError("multiplies or divides an activation by something that is neither a number nor an activation")
    gate, carrier = (b, a) if b.gate and not a.gate else (a, b)
    wiring.labels.pin(gate.labels)
    shape = torch.broadcast_shapes(gate.labels.shape, carrier.labels.shape)
    return Signal(carrier.labels.expand(shape), wiring.tape.linear(lambda v: v.expand(shape), carrier.flow))


def matmul(wiring: Wiring, a: Any, b: Any) -> Signal:
    """Attention weights times values mixes tokens; any other product of two activations is a matrix of scores."""
    if not (isinstance(a, Signal) and isinstance(b, Signal)):
        raise InputError("multiplies an activation by a matrix that is not a module's weight")
    if a.gate:
        return _mixed(wiring, b, a.labels.shape[-2])
    wiring.labels.pin(a.labels)
    wiring.labels.pin(b.labels)
    shape = torch.matmul(torch.empty(a.labels.shape, device="meta"), torch.empty(b.labels.shape, device="meta")).shape
    return Signal(torch.zeros(1, dtype=torch.int64).expand(shape), None, score=True)


def softmax(wiring: Wiring, x: Signal) -> Signal:
    """Pinned; of scores, weights that may only mix values, of an activation, a gate."""
    wiring.labels.pin(x.labels)
    return Signal(torch.zeros_like(x.labels), x.mass, gate=True)


def attention(
    wiring: Wiring, query: Signal, key: Signal, value: Signal, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Signal:  # fmt: skip
    """scaled_dot_product_attention: queries and keys pinned; values mix over tokens. Query head h reads value head h // ratio."""
    wiring.labels.pin(query.labels)
    wiring.labels.pin(key.labels)
    if enable_gqa:
        ratio = query.labels.shape[-3] // value.labels.shape[-3]
        mass = wiring.tape.linear(lambda v: v.repeat_interleave(ratio, -3), value.flow)
        value = Signal(value.labels.repeat_interleave(ratio, -3), mass)
    return _mixed(wiring, value, query.labels.shape[-2])


def _mixed(wiring: Wiring, value: Signal, tokens: int) -> Signal:
    """Every token gets a mixture of all: one label a feature. Masses are averaged, as rows that sum to 1 would."""
    axis = value.labels.dim() - 2
    labels = wiring.labels.constant_along(value.labels, {axis})
    shape = (*value.labels.shape[:-2], tokens, value.labels.shape[-1])
    mass = wiring.tape.linear(lambda v: v.mean(-2, keepdim=True).expand(shape), value.flow)
    return Signal(labels.expand(shape), mass)
