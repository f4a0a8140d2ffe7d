"""Predictions with their errors: several scrambles of level 1, level 2 on each, means and standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, isinf, sqrt

import numpy as np
from numpy.typing import NDArray

from theory import InputError

from .outliers import Spectrum, location, spectrum
from .problem import Problem
from .training import Training, train

__all__ = ["Health", "Solution", "solve"]

Array = NDArray[np.float64]
SCRAMBLES = 4
NUDGE = 1e-13
"""Relative change of the inputs by which an exact (linear) solution's error is measured: 450 units of rounding, more than
the rounding of any sum in the sweep."""
ALARM = 0.01
FLOOR = 1e-3


@dataclass(frozen=True)
class Health:
    """What can go wrong without an error being raised; `sound` is False if anything did.

    `unstable_from`: first t at which the scrambles' losses spread by more than 1 % of the loss (and by more than
    0.001 of loss(0), which late, small losses are never without): theory and network both amplify their noise there,
    and should not be compared. `suspicious`: eigenvalues beyond the threshold on no branch, by (layer, t).
    `uneven`: (layer, t) at which scrambles disagree about the number of outliers, as happens at the edge.
    `norm_gap`: largest relative difference between the norms of both singular vectors, an implementation check.
    """

    unstable_from: int | None
    suspicious: tuple[tuple[int, int], ...]
    uneven: tuple[tuple[int, int], ...]
    norm_gap: float

    @property
    def sound(self) -> bool:
        """No alarm but unevenness at an edge, which the errors contain."""
        return self.unstable_from is None and not self.suspicious and self.norm_gap < 1e-8


@dataclass(frozen=True)
class Solution:
    """Level 1 on every scramble, and what follows. Every quantity comes as (mean, error), arrays of one shape.

    The error is the standard error over scrambles, or, where phi is linear and nothing is sampled, the change under a
    nudge of the inputs by 1e-13. t counts updates done, layer the hidden matrices from 1.
    """

    problem: Problem
    runs: tuple[Training, ...]

    @cached_property
    def losses(self) -> tuple[Array, Array]:
        """Loss before each update and after the last, (steps + 1,)."""
        return self._combine([run.losses for run in self.runs])

    @cached_property
    def outputs(self) -> tuple[Array, Array]:
        """Outputs f at the same times, (steps + 1, P, C)."""
        return self._combine([run.outputs for run in self.runs])

    def kernels(self, t: int, layer: int = 1) -> dict[str, tuple[Array, Array]]:
        """Phi, G, A, B of one matrix over the n = t P spikes, (n, n) each."""
        n = self._checked(t, layer) * self.problem.P
        names = ("Phi", "G", "A", "B")
        return {
            name: self._combine([getattr(r.matrices[layer - 1], name)[:n, :n] for r in self.runs]) for name in names
        }

    def spectra(self, t: int, layer: int = 1, independent: bool = False) -> list[Spectrum]:
        """Level 2 on every scramble."""
        n = self._checked(t, layer) * self.problem.P
        shape = (self.problem.nu, self.problem.sigma)
        return [spectrum(run.matrices[layer - 1], run.c, n, *shape, independent) for run in self.runs]

    def outliers(self, t: int, layer: int = 1, independent: bool = False) -> tuple[Array, Array]:
        """Outlying singular values of W/sqrt(N_in) above the bulk, largest first.

        Lambda is averaged over scrambles before the threshold is asked: it is smooth there, z is not.
        """
        spectra = self.spectra(t, layer, independent)
        mean, error = self._combine(_padded([each.upper for each in spectra]))
        above = mean > spectra[0].threshold
        return self._located(mean[above], error[above])

    def lower_outliers(self, t: int, layer: int = 1, independent: bool = False) -> tuple[Array, Array]:
        """Singular values below the bulk, smallest first; there are none unless nu differs from 1.

        Only those that every scramble has. Lambda = -sigma^2 max(1, nu) is z = 0, so that z grows with Lambda.
        """
        found = [np.sort(each.lower) for each in self.spectra(t, layer, independent)]
        count = min(map(len, found))
        return self._located(*self._combine([each[:count] for each in found]))

    def overlaps(
        self, t: int, layer: int = 1, independent: bool = False
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """|cos| of the top outlier's left vector with g_k and of its right vector with phi_k, (n,) each.

        0 where there is no outlier: the top singular vector of the bulk has no overlap in the limit.
        """
        n = self._checked(t, layer) * self.problem.P
        found = [each for each in self.spectra(t, layer, independent) if each.left is not None]
        if len(found) < len(self.runs):
            return (np.zeros(n), np.zeros(n)), (np.zeros(n), np.zeros(n))
        left, right = [e.left for e in found if e.left is not None], [e.right for e in found if e.right is not None]
        return self._combine(left), self._combine(right)

    def growth(self, layer: int = 1, independent: bool = False) -> Array:
        """Largest positive Lambda (0 if none) on every scramble at t = 0, ..., steps, (scrambles, steps + 1)."""
        tops = [
            [each.upper[0] if len(each.upper) else 0.0 for each in self.spectra(t, layer, independent)]
            for t in range(self.problem.steps + 1)
        ]
        return np.array(tops).T

    def escape_time(self, layer: int = 1, independent: bool = False) -> tuple[float, float]:
        """First time at which Lambda_max, linear between updates, reaches sigma^2 sqrt(nu); inf if it never does.

        The time of the mean Lambda; if it is reached on some scrambles only, the error is inf.
        """
        growth = self.growth(layer, independent)
        threshold = self.problem.sigma**2 * sqrt(self.problem.nu)
        times = [_crossing(each, threshold) for each in growth]
        if all(map(isinf, times)):
            return inf, 0.0
        mean, error = self._combine([np.array(each) for each in times]) if not any(map(isinf, times)) else (None, inf)
        return (float(mean), float(error)) if mean is not None else (_crossing(growth.mean(axis=0), threshold), inf)

    @cached_property
    def unstable_from(self) -> int | None:
        """The first t at which the scrambles' losses part, see `Health`; None if they never do."""
        losses, start = np.array([run.losses for run in self.runs]), self.problem.loss(0 * self.problem.targets)
        if start == 0:  # no targets: nothing is learned, and the loss is all sampling error
            return None
        spread = losses.std(axis=0, ddof=1)
        bad = np.flatnonzero((spread > ALARM * losses.mean(axis=0)) & (spread > FLOOR * start))
        return int(bad[0]) if len(bad) else None

    @cached_property
    def health(self) -> Health:
        """See `Health`; level 2 of every matrix after every update."""
        suspicious, uneven, gap = [], [], 0.0
        for layer in range(1, self.problem.depth):
            for t in range(1, self.problem.steps + 1):
                spectra = self.spectra(t, layer)
                if any(each.suspicious for each in spectra):
                    suspicious.append((layer, t))
                if len({int((each.upper > each.threshold).sum()) for each in spectra}) > 1:
                    uneven.append((layer, t))
                gap = max(gap, *(each.norm_gap for each in spectra))
        return Health(self.unstable_from, tuple(suspicious), tuple(uneven), gap)

    def _checked(self, t: int, layer: int) -> int:
        if not 0 <= t <= self.problem.steps:
            raise InputError(f"this solution has {self.problem.steps} updates; got t={t}")
        if not 1 <= layer < self.problem.depth:
            raise InputError(f"there are hidden matrices 1 to {self.problem.depth - 1}; got layer={layer}")
        return t

    def _combine(self, values: list[Array]) -> tuple[Array, Array]:
        stack = np.array(values)
        if self.problem.phi.linear:
            # A size of 1 stands for sums that cancel: their rounding does not shrink with them.
            return stack[0], np.abs(stack[1] - stack[0]) + NUDGE * np.maximum(np.abs(stack[0]), 1e-3)
        return stack.mean(axis=0), stack.std(axis=0, ddof=1) / sqrt(len(stack))

    def _located(self, mean: Array, error: Array) -> tuple[Array, Array]:
        """z at Lambda and its error, the larger of the changes to both sides; z is stationary at the threshold."""
        shape = (self.problem.nu, self.problem.sigma)
        z = location(mean, *shape)
        sides = [np.abs(location(mean + sign * error, *shape) - z) for sign in (1, -1)]
        return z, np.maximum(*sides)


@lru_cache(maxsize=8)
def solve(problem: Problem, samples: int = 2**14, seed: int = 0, scrambles: int = SCRAMBLES) -> Solution:
    """Predict the training of a network of infinite width: level 1 on several scrambles of `samples` points.

    At least 4 scrambles, from independent children of `seed`; one exact run and a nudged one where phi is linear.
    Raises InputError for fewer, and what `train` raises.

    >>> problem = Problem("linear", gram=1.0, targets=[1.0], gamma0=4, eta0=0.02, steps=12)
    >>> round(float(solve(problem).outliers(12)[0][0]), 5)
    2.02379
    """
    if problem.phi.linear:
        return Solution(problem, (train(problem), train(_nudged(problem))))
    if scrambles < SCRAMBLES:
        raise InputError(f"an error needs at least {SCRAMBLES} scrambles; got {scrambles}")
    seeds = np.random.SeedSequence(seed).spawn(scrambles)
    return Solution(problem, tuple(train(problem, samples, each) for each in seeds))


def _nudged(problem: Problem) -> Problem:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (problem.P, problem.P))
    signs = np.triu(signs) + np.triu(signs, 1).T
    flips = np.random.default_rng(1).choice([-1.0, 1.0], problem.targets.shape)
    return replace(problem, gram=problem.gram * (1 + NUDGE * signs), targets=problem.targets * (1 + NUDGE * flips))


def _padded(lists: list[Array]) -> list[Array]:
    """Of equal length, zeros at the end: a Lambda that a scramble does not have is 0 to it."""
    size = max(map(len, lists))
    return [np.pad(each, (0, size - len(each))) for each in lists]


def _crossing(values: Array, threshold: float) -> float:
    for s in range(len(values) - 1):
        if values[s] < threshold <= values[s + 1]:
            return s + float((threshold - values[s]) / (values[s + 1] - values[s]))
    return inf
