"""diag G of a network, by parameter, and the criterion it makes: one list of pairs of labels for the whole network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from numerics.path.chain import Chain
from numerics.path.criterion import Criterion
from theory import InputError

from .graph import Traced
from .squared import scaled
from .tracing import trace
from .wiring import Entry, Wiring

__all__ = ["Analysis", "analyse", "diag_path_gram", "pairs"]

LOG_2 = math.log(2)


def diag_path_gram(model: nn.Module, example: Any, *, maxpool: str = "sum") -> dict[str, Tensor]:
    """g_i = dN/d(theta_i^2) for every parameter on the traced graph: the sum over paths through it of the others' squares.

    `example` is an input (or a tuple of inputs) with samples along the first axis; only the shape of one sample counts: g
    depends on the size of an image, not on its content. `maxpool="sum"` is the exact lifting, a path from every entry of a
    window; "max" takes the largest mass, as the authors' code does. Slopes of PReLU are not path parameters and are left
    out. BatchNorm counts with its running statistics. The model is copied, not called.

    Returns a dictionary from parameter names to float64 tensors of their shapes, on the CPU; relative error a few 1e-16 a layer.
    Raises InputError for modules that are not supported, and where a g that is not 0 leaves the range of float64
    (`path_condition` works with logarithms and is not bound by it). Source: seed 003.

    >>> net = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 1))
    >>> with torch.no_grad():
    ...     for value, each in zip((1.0, 2.0, 3.0, 4.0), net.parameters()):
    ...         _ = each.fill_(value)
    >>> {name: g.flatten().tolist() for name, g in diag_path_gram(net, torch.zeros(1, 2)).items()}
    {'0.weight': [9.0, 9.0], '0.bias': [9.0], '2.weight': [6.0], '2.bias': [1.0]}
    """
    analysis = analyse(model, example, maxpool=maxpool)
    found = {}
    for entry, value, exponent in analysis.grams():
        g = scaled(value, exponent)
        if not bool(torch.isfinite(g).all()) or bool(((g == 0) & (value > 0)).any()):
            raise InputError(f"g of {entry.name} leaves the range of float64: it is near 2^{exponent}")
        found[entry.name] = g
    return found


@dataclass(frozen=True, eq=False)
class Analysis:
    """A walked network, its labels resolved.

    `labels` is H; `out` and `into` the labels of each entry of `wiring.entries`, `units` those of each module's output; `dead`
    lists, by parameter name, how many entries lie on no path with weight.
    """

    traced: Traced
    wiring: Wiring
    labels: int
    out: tuple[np.ndarray, ...]
    into: tuple[np.ndarray, ...]
    units: dict[str, np.ndarray]
    settings: dict[str, Any]

    def grams(self) -> Iterator[tuple[Entry, Tensor, int]]:
        """(entry, value, power of two) of each parameter's g; zero only where no path leads, else refused as underflow."""
        for entry in self.wiring.entries:
            value, exponent = entry.mass.gram()
            if value.numel() and not float(value.min()) > 0:
                self._hold(entry, value)
            yield entry, value, exponent

    def _hold(self, entry: Entry, value: Tensor) -> None:
        """Underflow is not death: zeros of g must be zeros of reachability, which a walk with 1 for every weight decides."""
        reach = self._reached[entry.name]
        lost = int(((value <= 0) & reach).sum())
        if lost:
            raise InputError(
                f"{lost} entries of g of {entry.name} are positive but more than 300 orders of magnitude below the largest: "
                "the spread within one tensor is beyond float64"
            )

    @property
    def _reached(self) -> dict[str, Tensor]:
        if "reach" not in self.settings:
            walked = self.traced.walk(**{k: v for k, v in self.settings.items() if k != "reach"}, reach=True)
            self.settings["reach"] = {each.name: each.mass.gram()[0] > 0 for each in walked.entries}
        return self.settings["reach"]

    def criterion(self) -> tuple[Criterion | Chain, np.ndarray, dict[str, int]]:
        """The criterion over all parameters that may change, a start for its solver, and by name how many entries have g = 0."""
        dead: dict[str, int] = {}
        chain = self._chain()
        if chain is not None:
            return chain, chain.start(), dead
        parts, logs = [], 0.0
        for (entry, value, exponent), out, into in zip(self.grams(), self.out, self.into, strict=True):
            scale, number = exponent * LOG_2, value.numel()
            live = None if number and float(value.min()) > 0 else value > 0
            if live is not None:
                number = int(live.sum())
                dead[entry.name] = value.numel() - number
            if entry.frozen or not number:
                continue
            logs += _log_sum(value if live is None else value[live]) + number * scale
            parts.append(pairs(value, live, scale, out, into))
        if not parts:
            raise InputError(
                "no trainable parameter lies on a path with weight: is the last layer zero, or everything frozen?"
            )
        columns = [np.concatenate([part[k] for part in parts]) for k in range(4)]
        count = float(columns[3].sum())
        found = Criterion.of(*columns, labels=self.labels, mean_log=logs / count)
        layer = np.ones(self.labels + 1, dtype=np.intp)
        for number, labels in reversed(list(enumerate(self.units.values(), 1))):
            layer[labels] = number
        return found, found.start(layer[1:]), dead

    def _chain(self) -> Chain | None:
        """The rank-one form, where the network is a chain of Linear layers on one vector, all live, nothing frozen."""
        by_name = {each.name: k for k, each in enumerate(self.wiring.entries)}
        names = [f"{name}.{part}".removeprefix(".") for name, *_ in self.wiring.layers for part in ("weight", "bias")]
        if not set(by_name) <= set(names) or any(each.frozen for each in self.wiring.entries):
            return None
        expected, m, beta, biased, ordered = None, [], [], [], []
        for name, source, result in self.wiring.layers:
            into = self.into[by_name[f"{name}.weight".removeprefix(".")]].reshape(-1)
            one_vector = source.value.numel() == len(into) and result.slope is not None
            if not one_vector or not np.array_equal(into, np.zeros_like(into) if expected is None else expected):
                return None
            m.append(torch.log(source.value).reshape(-1).numpy() + source.exponent * LOG_2)
            beta.append(torch.log(result.slope).reshape(-1).numpy() + result.slope_exponent * LOG_2)
            biased.append(f"{name}.bias".removeprefix(".") in by_name)
            expected = self.units[name]
            ordered.append(expected)
        labels = np.concatenate(ordered)
        # Every unit but the outputs must be free: a layer pinned before a GELU would be rescaled by the chain alone.
        free = len(labels) - len(ordered[-1]) == self.labels
        hidden = (
            free
            and np.array_equal(labels[: self.labels], np.arange(1, self.labels + 1))
            and not labels[self.labels :].any()
        )
        if not hidden or not all(np.isfinite(each).all() for each in (*m, *beta)):
            return None
        return Chain(tuple(m), tuple(beta), tuple(biased))


def analyse(model: nn.Module, example: Any, *, maxpool: str = "sum", smooth: bool = False) -> Analysis:
    """Trace, walk, and resolve the labels."""
    traced = trace(model, example)
    settings = {"maxpool": maxpool, "smooth": smooth}
    wiring = traced.walk(**settings)
    ends = [end for entry in wiring.entries for end in (entry.out, entry.into)]
    labels, found = wiring.labels.resolve([*ends, *wiring.units.values()])
    units = dict(zip(wiring.units, found[len(ends) :], strict=True))
    return Analysis(
        traced, wiring, labels, tuple(found[: len(ends) : 2]), tuple(found[1 : len(ends) : 2]), units, settings
    )


def _log_sum(positive: Tensor) -> float:
    """Sum of logarithms; of products of eight, where these cannot underflow, for a logarithm costs many products."""
    flat = positive.reshape(-1)
    if flat.numel() < 4096 or float(flat.min()) < 1e-30:
        return float(torch.log(flat).sum())
    whole = flat.numel() // 8 * 8
    product, *others = flat[:whole].view(8, -1)
    for each in others:
        product = product * each
    return float(torch.log(product).sum() + torch.log(flat[whole:]).sum())


def pairs(
    value: Tensor, live: Tensor | None, scale: float, out: np.ndarray, into: np.ndarray
) -> tuple[np.ndarray, ...]:
    """(out, in, log of summed g, count) of one parameter: summed over kernels, over columns and over rows of equal labels."""
    mass = value
    kernel = value.dim() > 2 and out.shape[2:] == into.shape[2:] == (1,) * (value.dim() - 2)
    count = (
        torch.ones(value.shape[: 2 if kernel else None], dtype=torch.float64)
        if live is None
        else live.to(torch.float64)
    )
    if kernel:
        mass = mass.flatten(2) @ torch.ones(value[0, 0].numel(), dtype=torch.float64)
        count = count.mul_(value[0, 0].numel()) if live is None else count.flatten(2).sum(2)
        out, into = out.reshape(out.shape[:2]), into.reshape(into.shape[:2])
    if out.shape[1:] == into.shape[:1] == (1,):  # a matrix between two lists of labels
        out, mass, count = _merged(out.reshape(-1), mass, count, 0)
        into, mass, count = _merged(into.reshape(-1), mass, count, 1)
        out, into = out[:, None], into[None, :]
    with np.errstate(divide="ignore"):
        logs = np.log(mass.numpy()) + scale
    shape = mass.shape
    return tuple(np.broadcast_to(each, shape).reshape(-1) for each in (out, into, logs, count.numpy()))


def _merged(labels: np.ndarray, mass: Tensor, count: Tensor, axis: int) -> tuple[np.ndarray, Tensor, Tensor]:
    """Rows or columns of equal labels added up; a flattened channel has as many as it had positions."""
    distinct, place = np.unique(labels, return_inverse=True)
    if len(distinct) == len(labels):
        return labels, mass, count
    index = torch.from_numpy(place.astype(np.int64))
    shape = [len(distinct) if each == axis else size for each, size in enumerate(mass.shape)]
    return distinct, *(torch.zeros(shape, dtype=torch.float64).index_add_(axis, index, each) for each in (mass, count))
