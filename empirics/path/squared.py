"""diag G in one backward pass of the squared network, with a scale for every tensor in both directions.

The squared network has the parameters theta^2, no activations, and ones for input; N is the sum of its outputs, the sum
of Phi^2 over all paths, and g_i = dN/d(theta_i^2). Depth makes masses leave the range of floating point long before
their ratios do, so each tensor is kept as a value of maximum 1 and a power of two, which costs no rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

__all__ = ["Mass", "Tape", "scaled"]


def scaled(value: Tensor, exponent: int) -> Tensor:
    """value * 2^exponent, exactly, or 0 or inf where that leaves the range of float64."""
    if exponent == 0:
        return value
    if abs(exponent) < 1000:
        return value * math.ldexp(1.0, exponent)
    with np.errstate(over="ignore", under="ignore"):
        return torch.from_numpy(np.ldexp(value.numpy(), exponent))


@dataclass(eq=False)
class Mass:
    """A tensor of masses value * 2^exponent >= 0, and dN by it, slope * 2^slope_exponent, once the tape has run backward."""

    value: Tensor
    exponent: int = 0
    slope: Tensor | None = None
    slope_exponent: int = 0
    weighs: _Record | None = None

    def receive(self, slope: Tensor, exponent: int, reach: bool) -> None:
        """Add to the slope, at a common scale."""
        slope, exponent = _normal(slope, exponent, reach)
        if self.slope is not None:
            top = max(self.slope_exponent, exponent)
            slope = scaled(self.slope, self.slope_exponent - top) + scaled(slope, exponent - top)
            slope, exponent = _normal(slope, top, reach)
        self.slope, self.slope_exponent = slope, exponent

    def gram(self) -> tuple[Tensor, int]:
        """dN by this mass, as a value and a power of two; for a parameter, g. Zeros where no path leads through it."""
        if self.weighs is None:
            return (torch.zeros_like(self.value), 0) if self.slope is None else (self.slope, self.slope_exponent)
        record = self.weighs
        if record.result.slope is None:
            return torch.zeros_like(self.value), 0
        (slope,) = torch.autograd.grad(record.out, record.leaves[1], record.result.slope, retain_graph=True)
        return slope, record.result.slope_exponent + record.sources[0].exponent


@dataclass(eq=False)
class _Record:
    """One operation: the leaves of its own small autograd graph, the masses they stand for, and its result."""

    out: Tensor
    leaves: tuple[Tensor, ...]
    sources: tuple[Mass, ...]
    result: Mass
    bilinear: bool


def _normal(value: Tensor, exponent: int, reach: bool) -> tuple[Tensor, int]:
    """Maximum in [1/2, 1), the power of two taken out; with `reach`, 1 wherever there is anything."""
    if reach:
        return (value > 0).to(torch.float64), 0
    top = math.frexp(float(value.max()))[1] if value.numel() else 0
    return scaled(value, -top), exponent + top


@dataclass(eq=False)
class Tape:
    """The operations of one squared network, in order. With `reach`, every positive number is replaced by 1: what is left
    of g says which entries lie on a path.

    >>> tape = Tape()
    >>> weight = tape.parameter(torch.tensor([[3.0, 1.0]]))
    >>> out = tape.product(torch.nn.functional.linear, tape.ones((1, 2)), weight)
    >>> tape.backward([out])
    >>> [scaled(*each).tolist() for each in ((out.value, out.exponent), weight.gram())]
    [[[10.0]], [[1.0, 1.0]]]
    """

    reach: bool = False
    records: list[_Record] = field(default_factory=list)

    def ones(self, shape: Sequence[int]) -> Mass:
        """The input: paths start here."""
        return Mass(torch.ones(tuple(shape), dtype=torch.float64))

    def parameter(self, theta: Tensor) -> Mass:
        """theta^2, squared after its power of two is taken out."""
        value = theta.detach().to("cpu", torch.float64)
        if self.reach:
            return Mass((value != 0).to(torch.float64))
        exponent = math.frexp(max(abs(float(end)) for end in torch.aminmax(value)))[1] if value.numel() else 0
        return Mass(
            (value * math.ldexp(1.0, -exponent)).square_()
            if abs(exponent) < 1000
            else scaled(value, -exponent).square(),
            2 * exponent,
        )

    def linear(self, operation: Callable[..., Tensor], *sources: Mass) -> Mass:
        """The result of an operation that is linear in all its arguments jointly, at their common scale."""
        top = max((each.exponent for each in sources if bool(each.value.any())), default=0)
        values = [scaled(each.value, min(0, each.exponent - top)) for each in sources]
        return self._record(operation, values, sources, top, bilinear=False)

    def product(self, operation: Callable[[Tensor, Tensor], Tensor], source: Mass, weight: Mass) -> Mass:
        """The result of an operation linear in each of two arguments, the second a parameter that is met nowhere else."""
        exponent = source.exponent + weight.exponent
        result = self._record(operation, [source.value, weight.value], (source, weight), exponent, bilinear=True)
        weight.weighs = self.records[-1]
        return result

    def _record(
        self,
        operation: Callable[..., Tensor],
        values: Sequence[Tensor],
        sources: tuple[Mass, ...],
        exponent: int,
        *,
        bilinear: bool,
    ) -> Mass:
        leaves = tuple(each.detach().requires_grad_() for each in values)
        with torch.enable_grad():
            out = operation(*leaves)
        result = Mass(*_normal(out.detach(), exponent, self.reach))
        self.records.append(_Record(out, leaves, sources, result, bilinear))
        return result

    def backward(self, outputs: Sequence[Mass]) -> None:
        """Slopes of N, the sum of the outputs, by every mass that leads to them; a weight's are left to `Mass.gram`."""
        for each in outputs:
            each.receive(torch.ones_like(each.value), 0, self.reach)
        for record in reversed(self.records):
            slope, exponent = record.result.slope, record.result.slope_exponent
            if slope is None:
                continue
            if record.bilinear:
                source, weight = record.sources
                (back,) = torch.autograd.grad(record.out, record.leaves[0], slope, retain_graph=True)
                source.receive(back, exponent + weight.exponent, self.reach)
            else:
                backs = torch.autograd.grad(record.out, record.leaves, slope)
                for source, back in zip(record.sources, backs, strict=True):
                    source.receive(back, exponent, self.reach)
