"""What the solvers of path conditioning ask of a criterion, whatever form its sums take."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from theory import InputError

__all__ = ["Floats", "Objective", "Point", "gap_of"]

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

    def at(self, z: Floats, near: Any = None) -> Point:
        """The point z, shape (H,); `near`, a point close by if one is known, may make it cheaper."""
        ...

    def classes(self) -> list[NDArray[np.intp]]:
        """The labels, less one each, in classes that share no entry."""
        ...


def gap_of(objective: Objective, value: float) -> float:
    """The gap that belongs to a value of f: f - log p - mean log g; never below zero by more than rounding."""
    if objective.mean_log is None:
        raise InputError("the gap needs the mean of log g; give mean_log")
    return value - math.log(objective.parameters) - objective.mean_log
