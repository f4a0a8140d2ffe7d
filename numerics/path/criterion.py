"""The PathCond criterion F(z) = p log sum_i g_i e^((Bz)_i) - sum_i (Bz)_i: a softmax over one list of parameters.

A parameter lies between two labels: `out`, the label of the unit it feeds, and `into`, the label of the unit that it reads.
Its row of B has +1 at `into` and -1 at `out`, so (Bz) = z_into - z_out; label 0 is the ground (inputs and outputs),
where z = 0. Parameters with equal labels are one entry, with the log of their summed g and their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory import InputError

from .objective import Floats, gap_of

__all__ = ["Criterion"]

REACH = 30.0
"""How far, in any z, a point may borrow the exponentials of another: what they have lost to underflow stays below 1e-250."""


@dataclass(frozen=True)
class _Softmax:
    """The point of a list of entries: shares base_oi x_i / (x_o total), x = e^(z - base_z), of the exponentials at base_z."""

    value: float
    incoming: Floats
    outgoing: Floats
    x: Floats
    total: float
    base: Any
    base_z: Floats
    base_log: float
    entries: Criterion

    @property
    def slope(self) -> Floats:
        return self.outgoing - self.incoming

    def times(self, d: Floats) -> Floats:
        padded = np.concatenate(([0.0], d))
        forward, backward = self.base @ (self.x * padded), self.base.T @ (padded / self.x)
        crossed = forward / (self.x * self.total) + backward * (self.x / self.total)
        return (self.incoming + self.outgoing) * d - crossed[1:]

    def range(self, d: Floats) -> tuple[float, float]:
        padded = np.concatenate(([0.0], d))
        steps = padded[self.entries.into] - padded[self.entries.out]
        return float(steps.min()), float(steps.max())


@dataclass(frozen=True)
class Criterion:
    """The list of entries, aggregated or not: (out label, in label, log of summed g, number of parameters with g > 0).

    `out`, `into`: integers in 0..labels, shape (entries,), 0 the ground; `log_mass`: log of the summed g, -inf for a dead
    entry; `count`: its number of live parameters. Dead entries (g = 0) are dropped, out of p too: otherwise a unit with
    more dead outputs than inputs would have its minimiser at -inf. `parameters` is p, `balance` the mean row of B,
    `mean_log` the mean of log g over all p, which the gap needs.

    F is p times `at(z).value`; `gap(z)` = log(AM(g')/GM(g')) >= 0 is scale-free, and 0 only where all g' are equal. Raises
    InputError for labels out of range, lengths that differ, masses that are NaN or +inf, or no live entry.

    Source: seed 003; the gap is derived here. Two weights of a 1-1-1 net, g = (4, 1), meet at g' = 2:

    >>> chain = Criterion.of([1, 0], [0, 1], np.log([4.0, 1.0]), [1, 1], labels=1, mean_log=np.log(2.0))
    >>> [round(float(chain.gap(np.array([z]))), 12) for z in (0, math.log(2))]  # log(2.5/2), 0
    [0.223143551314, 0.0]
    """

    out: NDArray[np.int32]
    into: NDArray[np.int32]
    log_mass: Floats
    count: Floats
    labels: int
    parameters: float
    balance: Floats
    mean_log: float | None = None

    @classmethod
    def of(
        cls,
        out: object,
        into: object,
        log_mass: object,
        count: object,
        *,
        labels: int,
        mean_log: float | None = None,
    ) -> Criterion:
        """The criterion of these entries, checked, the dead ones dropped."""
        o, i = (np.asarray(each, dtype=np.int32) for each in (out, into))
        mass, number = (np.asarray(each, dtype=np.float64) for each in (log_mass, count))
        if not o.shape == i.shape == mass.shape == number.shape or o.ndim != 1:
            raise InputError(f"entries need one out label, in label, mass and count each; got {o.shape} and {i.shape}")
        if o.size and not (min(o.min(), i.min()) >= 0 and max(o.max(), i.max()) <= labels):
            raise InputError(f"labels run from 0 (ground) to {labels}")
        if not mass.max(initial=-np.inf) < np.inf:  # written so that NaN is caught
            raise InputError("the log of a mass is NaN or +inf: a sum of squares overflowed, or the model holds NaN")
        live = (mass > -np.inf) & (number > 0)
        if not live.any():
            raise InputError("no parameter lies on a path with g > 0: the network's output does not depend on any")
        if not live.all():
            o, i, mass, number = o[live], i[live], mass[live], number[live]
        looped = (o == i) & (o > 0)
        if looped.any():
            # A parameter from a label to itself has Bz = 0, as one between grounds; as such, no sum over a label counts it.
            o, i = np.where(looped, 0, o), np.where(looped, 0, i)
        if (o[1:] < o[:-1]).any():
            order = np.argsort(o, kind="stable")
            o, i, mass, number = o[order], i[order], mass[order], number[order]
        p = float(number.sum())
        balance = (np.bincount(i, number, labels + 1) - np.bincount(o, number, labels + 1))[1:] / p
        return cls(o, i, mass, number, labels, p, balance, mean_log)

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """Where the entries of each out label begin, and the end."""
        return np.searchsorted(self.out, np.arange(self.labels + 2)).astype(np.int32)

    def at(self, z: Floats, near: _Softmax | None = None) -> _Softmax:
        """f, shares and sums at z, shape (H,); the exponentials of a point near by are used again, scaled by label."""
        if near is None or np.abs(z - near.base_z).max(initial=0.0) > REACH:
            near = self._base(z)
        x = np.concatenate(([1.0], np.exp(z - near.base_z)))
        fed, read = (near.base @ x) / x, (near.base.T @ (1 / x)) * x
        total = float(fed.sum())
        value = near.base_log + math.log(total) - float(self.balance @ z)
        incoming, outgoing = fed[1:] / total, read[1:] / total
        return _Softmax(value, incoming, outgoing, x, total, near.base, near.base_z, near.base_log, self)

    def _base(self, z: Floats) -> _Softmax:
        """Exponentials at z, the largest exponent taken out, so that nothing overflows."""
        from scipy.sparse import csr_array

        padded = np.concatenate(([0.0], z))
        exponent = self.log_mass + padded[self.into]
        exponent -= padded[self.out]
        top = float(exponent.max())
        exponent -= top
        # Entries are in the order of their out labels: they are the data of a sparse matrix as they stand.
        base = csr_array(
            (np.exp(exponent, out=exponent), self.into, self.rows), shape=(self.labels + 1, self.labels + 1)
        )
        none = np.zeros(0)
        return _Softmax(0.0, none, none, none, 1.0, base, z.copy(), top, self)

    def classes(self) -> list[NDArray[np.intp]]:
        """Greedy colouring in the order of the labels: labels joined by an entry are in different classes.

        >>> chain = Criterion.of([1, 2, 3, 0], [0, 1, 2, 3], np.zeros(4), np.ones(4), labels=3)
        >>> [each.tolist() for each in chain.classes()]
        [[0, 2], [1]]
        """
        from scipy.sparse import coo_array

        between = (self.out > 0) & (self.into > 0)
        o, i = self.out[between] - 1, self.into[between] - 1
        pairs = np.concatenate((o, i)), np.concatenate((i, o))
        joined = coo_array((np.ones(2 * len(o)), pairs), shape=(self.labels, self.labels)).tocsr()
        colour = np.full(self.labels, -1)
        for label in range(self.labels):
            taken = set(colour[joined.indices[joined.indptr[label] : joined.indptr[label + 1]]].tolist())
            colour[label] = next(each for each in range(self.labels + 1) if each not in taken)
        return [np.flatnonzero(colour == each) for each in range(int(colour.max(initial=-1)) + 1)]

    def start(self, group: NDArray[np.intp]) -> Floats:
        """A point to start from: the minimiser if all labels of a group had one rescaling; zeros where sums underflow.

        `group`: a number 1.. for each label, shape (H,): its layer. The sums are few, so their minimum costs next to nothing.

        >>> pair = Criterion.of([1, 2, 0, 0], [0, 0, 1, 2], np.log([4.0, 5.0, 1.0, 2.0]), np.ones(4), labels=2)
        >>> [round(float(each), 6) for each in np.exp(pair.start(np.array([1, 1])))]  # 9 against 3
        [1.732051, 1.732051]
        """
        from .solver import solve

        g = np.concatenate(([0], group))
        size = int(g.max()) + 1
        key = g[self.out].astype(np.int64) * size + g[self.into]
        top = float(self.log_mass.max())
        mass = np.bincount(key, np.exp(self.log_mass - top), size * size)
        count = np.bincount(key, self.count, size * size)
        met = np.flatnonzero(count)
        if not self.labels or not mass[met].all():  # sums that underflow would be taken for dead
            return np.zeros(self.labels)
        coarse = Criterion.of(met // size, met % size, np.log(mass[met]) + top, count[met], labels=size - 1)
        return np.concatenate(([0.0], solve(coarse).z))[g][1:]

    def gap(self, z: Floats) -> float:
        """log(AM(g')/GM(g')) at z; InputError where mean_log is unknown."""
        return gap_of(self, self.at(z).value)
