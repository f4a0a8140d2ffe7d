"""The PathCond criterion F(z) = p log sum_i g_i e^((Bz)_i) - sum_i (Bz)_i: a softmax over one list of parameters.

A parameter lies between two labels: `out`, the label of the unit it feeds, and `into`, the label of the unit that it reads.
Its row of B has +1 at `into` and -1 at `out`, so (Bz) = z_into - z_out; label 0 is the ground (inputs and outputs),
where z = 0. Parameters with equal labels are one entry, with the log of their summed g and their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from theory import InputError

__all__ = ["Criterion", "Objective", "Point"]

Floats = NDArray[np.float64]


class Point(Protocol):
    """What a solver sees of f = F/p at one z; arrays run over the labels 1..H."""

    @property
    def value(self) -> float:
        """f."""
        ...

    @property
    def incoming(self) -> Floats:
        """The share of sum g' that enters each unit."""
        ...

    @property
    def outgoing(self) -> Floats:
        """The share of sum g' that leaves each unit."""
        ...

    @property
    def slope(self) -> Floats:
        """v = outgoing - incoming, the mean row of B under the shares; the gradient of f is v - balance."""
        ...

    def times(self, d: Floats) -> Floats:
        """T d with T = sum_i pi_i b_i b_i'; the Hessian of f is T - v v'."""
        ...

    def range(self, d: Floats) -> tuple[float, float]:
        """Least and largest b_i . d over the entries, or bounds of them."""
        ...


class Objective(Protocol):
    """A convex f(z) = log sum_i g_i e^(b_i . z) - balance . z, in whatever form its sums are cheapest."""

    @property
    def labels(self) -> int:
        """H."""
        ...

    @property
    def parameters(self) -> float:
        """p."""
        ...

    @property
    def balance(self) -> Floats:
        """The mean of the rows b_i: (number of outgoing - number of incoming parameters)/p of each label."""
        ...

    @property
    def mean_log(self) -> float | None:
        """Mean of log g over the p parameters; None where only the minimiser matters."""
        ...

    def at(self, z: Floats) -> Point:
        """The point z, shape (H,)."""
        ...

    def classes(self) -> list[NDArray[np.intp]]:
        """The labels, less one each, in classes that share no entry."""
        ...


@dataclass(frozen=True)
class _Softmax:
    """The point of a list of entries: shares pi, and the sums over them by label."""

    value: float
    incoming: Floats
    outgoing: Floats
    share: Floats
    entries: Criterion

    @property
    def slope(self) -> Floats:
        return self.outgoing - self.incoming

    @cached_property
    def _adjacency(self) -> tuple[object, object]:
        from scipy.sparse import csr_array

        size = self.entries.labels + 1
        # Entries are in the order of their out labels: the shares are the data of a sparse matrix as they stand.
        rows = np.searchsorted(self.entries.out, np.arange(size + 1)).astype(np.int32)
        matrix = csr_array((self.share, self.entries.into, rows), shape=(size, size))
        return matrix, matrix.T

    def times(self, d: Floats) -> Floats:
        forward, backward = self._adjacency
        padded = np.concatenate(([0.0], d))
        return (self.incoming + self.outgoing) * d - (forward @ padded + backward @ padded)[1:]  # type: ignore[operator]

    def range(self, d: Floats) -> tuple[float, float]:
        padded = np.concatenate(([0.0], d))
        steps = padded[self.entries.into] - padded[self.entries.out]
        return float(steps.min()), float(steps.max())


@dataclass(frozen=True)
class Criterion:
    """The list of entries, aggregated or not: (out label, in label, log of summed g, number of parameters with g > 0).

    `out`, `into`: integers in 0..labels, shape (entries,), 0 the ground; `log_mass`: log of the summed g, -inf for a dead
    entry; `count`: its number of live parameters. Dead entries (g = 0) are dropped, out of p too: otherwise a unit with
    more dead outputs than inputs would have its minimiser at -inf. `parameters` is p, `balance` the mean row of B;
    `mean_log` is the mean of log g over all p, from
    which the gap needs the geometric mean.

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
        if np.isnan(mass).any() or np.isposinf(mass).any():
            raise InputError("the log of a mass is NaN or +inf: a sum of squares overflowed, or the model holds NaN")
        live = (mass > -np.inf) & (number > 0)
        if not live.any():
            raise InputError("no parameter lies on a path with g > 0: the network's output does not depend on any")
        # A parameter from a label to itself has Bz = 0, as one between grounds; as such, no sum over a label counts it.
        between = o != i
        o, i = np.where(between, o, 0), np.where(between, i, 0)
        o, i, mass, number = o[live], i[live], mass[live], number[live]
        if (np.diff(o) < 0).any():
            order = np.argsort(o, kind="stable")
            o, i, mass, number = o[order], i[order], mass[order], number[order]
        p = float(number.sum())
        balance = (_by(i, number, labels) - _by(o, number, labels)) / p
        return cls(o, i, mass, number, labels, p, balance, mean_log)

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

    def at(self, z: Floats) -> _Softmax:
        """f, shares and sums at z, shape (H,); the largest exponent is taken out, so that nothing overflows."""
        padded = np.concatenate(([0.0], z))
        exponent = self.log_mass + padded[self.into]
        exponent -= padded[self.out]
        top = exponent.max()
        exponent -= top
        share = np.exp(exponent, out=exponent)
        total = share.sum()
        share /= total
        value = float(top) + math.log(total) - float(self.balance @ z)
        return _Softmax(value, _by(self.out, share, self.labels), _by(self.into, share, self.labels), share, self)

    def gap(self, z: Floats) -> float:
        """log(AM(g')/GM(g')) at z; InputError where mean_log is unknown."""
        return gap_of(self, self.at(z).value)


def _by(label: NDArray[np.int32], weight: Floats, labels: int) -> Floats:
    """Sums of the entries' weights by label, the ground left out."""
    return np.bincount(label, weight, labels + 1).astype(np.float64, copy=False)[1:]


def gap_of(objective: Objective, value: float) -> float:
    """The gap that belongs to a value of f: f - log p - mean log g; never below zero by more than rounding."""
    if objective.mean_log is None:
        raise InputError("the gap needs the mean of log g; give mean_log")
    return value - math.log(objective.parameters) - objective.mean_log
