"""The PathCond criterion of a chain of fully connected layers, whose diag G has rank one a layer: O(neurons) a product.

g of W^l_jk is beta^l_j m^(l-1)_k and g of b^l_j is beta^l_j, with m^0 = 1, m^l = (W^l)^2 m^(l-1) + (b^l)^2, beta^L = 1 and
beta^l = ((W^(l+1))^2)' beta^(l+1), squares entry by entry. The sum over all pairs of neurons is a product of two sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from theory import InputError

from .criterion import Criterion
from .objective import Floats

__all__ = ["Chain"]


@dataclass(frozen=True)
class _ChainPoint:
    """The point of a chain: `feeds[l]` are the shares' factors of rows of layer l+1, `reads[l]` of its columns."""

    value: float
    incoming: Floats
    outgoing: Floats
    feeds: tuple[Floats, ...]
    reads: tuple[Floats, ...]

    @property
    def slope(self) -> Floats:
        return self.outgoing - self.incoming

    def times(self, d: Floats) -> Floats:
        result = (self.incoming + self.outgoing) * d
        parts = _split(d, self.reads[1:])
        images = _split(result, self.reads[1:])
        for layer in range(1, len(parts)):
            feed, read = self.feeds[layer], self.reads[layer]
            images[layer] -= feed * float(read @ parts[layer - 1])
            images[layer - 1] -= read * float(feed @ parts[layer])
        return result

    def range(self, d: Floats) -> tuple[float, float]:
        ends = [np.zeros(1), *_split(d, self.reads[1:]), np.zeros(1)]
        # A bias reads the ground; where there is none, admitting it can only widen the range.
        least = min(min(0.0, float(below.min())) - float(above.max()) for below, above in pairwise(ends))
        largest = max(max(0.0, float(below.max())) - float(above.min()) for below, above in pairwise(ends))
        return least, largest


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _split(flat: Floats, like: Sequence[Floats]) -> list[Floats]:
    """Views of a flat array, one a hidden layer."""
    ends = np.cumsum([len(each) for each in like])
    return [flat[end - len(each) : end] for each, end in zip(like, ends, strict=True)]


@dataclass(frozen=True)
class Chain:
    """The criterion of a chain: log m^0..log m^(L-1), log beta^1..log beta^L, and which layers have a bias.

    Label h runs through the hidden layers in order. All neurons must be live (finite logs); a chain with dead ones is
    for `Criterion`, of which this is another form (`entries()`). Raises InputError for lengths that do not fit and for
    logs that are not finite.

    The 1-1-1 net with weights 2 and 1, g = (1, 4):

    >>> chain = Chain((np.zeros(1), np.log([4.0])), (np.zeros(1), np.zeros(1)), (False, False))
    >>> round(chain.gap(np.zeros(1)), 12) == round(math.log(2.5 / 2), 12)
    True
    """

    log_m: tuple[Floats, ...]
    log_beta: tuple[Floats, ...]
    biased: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not len(self.log_m) == len(self.log_beta) == len(self.biased) > 0:
            raise InputError("a chain needs log m, log beta and a bias flag for each of its layers")
        for below, above in zip(self.log_beta, self.log_m[1:], strict=False):
            if len(below) != len(above):
                raise InputError(f"a layer has {len(below)} log beta but {len(above)} log m")
        if not all(np.isfinite(each).all() for each in (*self.log_m, *self.log_beta)):
            raise InputError("a neuron of the chain is dead or its mass underflowed: use Criterion")

    @property
    def labels(self) -> int:
        """H, the number of hidden neurons."""
        return sum(len(each) for each in self.log_m[1:])

    @cached_property
    def _layers(self) -> list[tuple[int, int, bool]]:
        return [
            (len(beta), len(m), biased) for beta, m, biased in zip(self.log_beta, self.log_m, self.biased, strict=True)
        ]

    @property
    def parameters(self) -> float:
        """p."""
        return float(sum(rows * (columns + biased) for rows, columns, biased in self._layers))

    @property
    def balance(self) -> Floats:
        """(number of outgoing - number of incoming parameters)/p of each hidden neuron."""
        below = pairwise(self._layers)
        surplus = [np.full(rows, above - columns - biased) for (rows, columns, biased), (above, _, _) in below]
        return np.concatenate([np.zeros(0), *surplus]) / self.parameters

    @property
    def mean_log(self) -> float:
        """Mean of log g over the p parameters."""
        total = 0.0
        for m, beta, biased in zip(self.log_m, self.log_beta, self.biased, strict=True):
            total += (len(m) + biased) * float(beta.sum()) + len(beta) * float(m.sum())
        return total / self.parameters

    def classes(self) -> list[np.ndarray]:
        """The hidden layers: labels of one share no parameter."""
        ends = np.cumsum([len(each) for each in self.log_m[1:]])
        return [np.arange(end - len(each), end) for each, end in zip(self.log_m[1:], ends, strict=True)]

    def at(self, z: Floats, near: _ChainPoint | None = None) -> _ChainPoint:
        """f, the sums by neuron, and the rank-one factors at z, in the log domain between layers; `near` is of no use here."""
        hidden = _split(z, self.log_m[1:])
        feeds, log_feed, reads, log_read = [], [], [], []
        for k in range(len(self.biased)):
            feed = self.log_beta[k] - (hidden[k] if k < len(hidden) else 0.0)
            read = self.log_m[k] + (hidden[k - 1] if k else 0.0)
            for parts, logs, exponent in ((feeds, log_feed, feed), (reads, log_read, read)):
                top = float(exponent.max())
                weights = np.exp(exponent - top)
                total = float(weights.sum())
                parts.append(weights / total)
                logs.append(top + math.log(total))
        weight = [feed + read for feed, read in zip(log_feed, log_read, strict=True)]
        bias = [feed if biased else -math.inf for feed, biased in zip(log_feed, self.biased, strict=True)]
        top = max(*weight, *bias)
        total = sum(math.exp(each - top) for each in (*weight, *bias))
        value = top + math.log(total) - float(self.balance @ z)
        layer = [math.exp(each - top) / total for each in weight]
        extra = [math.exp(each - top) / total for each in bias]
        empty = np.zeros(0)
        incoming = np.concatenate([empty, *((layer[k] + extra[k]) * feeds[k] for k in range(len(hidden)))])
        outgoing = np.concatenate([empty, *(layer[k + 1] * reads[k + 1] for k in range(len(hidden)))])
        # The pair share of layer l is feeds x reads with the layer's share split evenly between the two factors.
        roots = [math.sqrt(each) for each in layer]
        return _ChainPoint(
            value,
            incoming,
            outgoing,
            tuple(root * each for root, each in zip(roots, feeds, strict=True)),
            tuple(root * each for root, each in zip(roots, reads, strict=True)),
        )

    def gap(self, z: Floats) -> float:
        """log(AM(g')/GM(g')) at z."""
        return self.at(z).value - math.log(self.parameters) - self.mean_log

    def entries(self) -> Criterion:
        """The same criterion as a list of pairs of neurons, one entry a pair."""
        out, into, mass, count = [], [], [], []
        offset = 1
        for k, (rows, columns, biased) in enumerate(self._layers):
            o = np.arange(offset, offset + rows) if k + 1 < len(self.biased) else np.zeros(rows, dtype=int)
            i = np.arange(offset - columns, offset) if k else np.zeros(columns, dtype=int)
            out.append(np.repeat(o, columns))
            into.append(np.tile(i, rows))
            mass.append((self.log_beta[k][:, None] + self.log_m[k]).ravel())
            if biased:
                out.append(o)
                into.append(np.zeros(rows, dtype=int))
                mass.append(self.log_beta[k])
            offset += rows
        count = np.ones(sum(len(each) for each in mass))
        o, i, log_mass = (np.concatenate(each) for each in (out, into, mass))
        return Criterion.of(o, i, log_mass, count, labels=self.labels, mean_log=self.mean_log)

    def start(self) -> Floats:
        """The minimiser if all neurons of a layer were equal and there were no biases; a point to start from.

        u_l = log(N_l/c_l) - mean_k log(N_k/c_k), with c_l the sum of g over the N_l weights of layer l; z of layer l is
        -(u_1 + ... + u_l).
        """
        sums = [_log_sum(beta) + _log_sum(m) for beta, m in zip(self.log_beta, self.log_m, strict=True)]
        u = np.array([math.log(rows * columns) - c for (rows, columns, _), c in zip(self._layers, sums, strict=True)])
        levels = -np.cumsum(u - u.mean())[:-1]
        return np.concatenate(
            [np.zeros(0), *(np.full(len(m), level) for m, level in zip(self.log_m[1:], levels, strict=True))]
        )

    @classmethod
    def of(cls, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray | None]) -> Chain:
        """The chain of weight matrices (rows x columns) and biases, each layer's masses scaled by their largest.

        >>> net = Chain.of([np.array([[2.0]]), np.array([[1.0]])], [None, None])
        >>> [float(np.exp(each[0])) for each in (*net.log_m, *net.log_beta)]
        [1.0, 4.0, 1.0, 1.0]
        """
        log_m = [np.zeros(weights[0].shape[1])]
        squares = []
        for weight, bias in zip(weights, biases, strict=True):
            scale = float(np.abs(weight).max())
            squares.append((np.square(np.asarray(weight, dtype=np.float64) / scale), 2 * math.log(scale)))
            square, log_scale = squares[-1]
            top = float(log_m[-1].max())
            with np.errstate(divide="ignore"):
                log_next = np.log(square @ np.exp(log_m[-1] - top)) + top + log_scale
                if bias is not None:
                    log_next = np.logaddexp(log_next, 2 * np.log(np.abs(np.asarray(bias, dtype=np.float64))))
            log_m.append(log_next)
        log_beta = [np.zeros(weights[-1].shape[0])]
        for square, log_scale in reversed(squares[1:]):
            top = float(log_beta[0].max())
            with np.errstate(divide="ignore"):
                log_beta.insert(0, np.log(np.exp(log_beta[0] - top) @ square) + top + log_scale)
        return cls(tuple(log_m[:-1]), tuple(log_beta), tuple(each is not None for each in biases))
