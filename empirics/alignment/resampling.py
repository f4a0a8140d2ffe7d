"""Samples drawn from the sample: the delete-1 jackknife, and the misalignment seen on disjoint subsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Any

import numpy as np
import torch
from scipy.special import betaincinv, stdtrit
from torch import Tensor
from torch.nn.functional import embedding_bag

from theory import InputError

from ..measurement import Measurement
from .moments import cross_rows, gram_rows

__all__ = ["Jackknife", "resampled_misalignment"]

CHUNK_BYTES = 2**26
SIGNAL = 2.0
"""||mu||^2 counts as seen from 2 of its own standard deviations on."""


@dataclass(frozen=True)
class Jackknife:
    """Measurements by the delete-1 jackknife of anything that is a function of the pair estimates.

    `sums` are those of all samples, `deleted` the same with each sample left out in turn (arrays; two entries in the
    cross-sample form, one for each side). Pseudo-values n th - (n-1) th_i; the interval is centred on their mean with
    the t quantile of n - 1 degrees of freedom. With two sides the variances and the corrections of the centre add, and
    the smaller side gives the degrees of freedom. `least` is the smallest number of samples that allows an interval.

    Source: notes on alignment, section 4 (formulas of deletion) and section 10 (centre, "not detected").
    """

    sums: Any
    deleted: tuple[Any, ...]
    least: int
    unit: str
    level: float

    @property
    def count(self) -> int:
        """The number of samples, of the smaller side where there are two."""
        return min(len(each.mean_squared) for each in self.deleted)

    def spread(self, theta: Callable[[Any], Any]) -> tuple[float, float, float]:
        """(mean of the pseudo-values, its standard error, half width of its t interval) of a function of the sums."""
        full = float(theta(self.sums))
        centre, variance = full, 0.0
        for left_out in self.deleted:
            values = theta(left_out)
            pseudo = len(values) * full - (len(values) - 1) * values
            centre += float(pseudo.mean()) - full
            variance += float(pseudo.var(ddof=1)) / len(values)
        error = sqrt(variance)
        return centre, error, error * float(stdtrit(self.count - 1, (1 + self.level) / 2))

    def value(self, theta: Callable[[Any], Any], unit: float) -> Measurement:
        """An estimate, `unit` times theta, with its interval."""
        estimate = unit * float(theta(self.sums))
        if self.count < self.least:
            return self._refused(self._too_few, estimate)
        centre, error, half = (unit * each for each in self.spread(theta))
        return Measurement(estimate, error, (centre - half, centre + half), self.level, self.unit, self.count)

    def ratio(self, over: Callable[[Any], Any], under: Callable[[Any], Any], name: str) -> Measurement:
        """over/under, divided once, with the interval of its logarithm; or "not detected", and why.

        Both must be positive, also with any one sample left out, and ||mu||^2 must be seen.
        """
        top, bottom = float(over(self.sums)), float(under(self.sums))
        estimate = top / bottom if bottom else inf
        reason = self.unseen() or self._not_positive(over, under, name)
        if reason:
            return self._refused(reason, estimate)
        centre, error, half = self.spread(lambda sums: np.log(over(sums)) - np.log(under(sums)))
        ends = (exp(centre - half), exp(centre + half))
        return Measurement(estimate, estimate * error, ends, self.level, self.unit, self.count)

    def unseen(self) -> str:
        """Why there is no signal to speak of: ||mu||^2 below 2 standard deviations, or an interval that meets 0."""
        if self.count < self.least:
            return self._too_few
        estimate, sd = float(self.sums.mean_squared), sqrt(float(self.sums.mean_variance()))
        if estimate <= SIGNAL * sd:
            size = f"{estimate / sd:.2g} of its standard deviations" if sd else f"{estimate:g}"
            return f"||mu||^2 is estimated at {size}; a signal takes more than {SIGNAL:g} standard deviations"
        centre, _, half = self.spread(lambda sums: sums.mean_squared)
        return f"the {self.level:.3g} interval of ||mu||^2 meets 0" if centre <= half else ""

    @property
    def _too_few(self) -> str:
        return f"an interval takes at least {self.least} samples"

    def _not_positive(self, over: Callable[[Any], Any], under: Callable[[Any], Any], name: str) -> str:
        if min(float(np.min(f(sums))) for f in (over, under) for sums in (self.sums, *self.deleted)) > 0:
            return ""
        return (
            f"{name} is not resolved: its numerator or denominator is not positive, at least with one sample left out"
        )

    def _refused(self, note: str, estimate: float) -> Measurement:
        return Measurement.not_detected(self.unit, self.count, note, estimate, level=self.level)


def resampled_misalignment(
    q: Tensor,
    M: int,
    K: int,
    resamples: int,
    seed: int,
    *,
    q_test: Tensor | None = None,
    level: float = 0.95,
) -> Measurement:
    """How often mu_M . g_K <= 0 for random disjoint subsets of M and K rows of q (n, d); zeros count.

    mu_M is the mean of the M train rows, g_K of the K test rows; with `q_test` (m, d) the latter come from there. Rows
    are drawn without replacement, anew for each of `resamples`, by a generator of its own from `seed`. The estimate is
    the frequency; its standard error, sqrt(p(1-p)/resamples) with p = (hits+1)/(resamples+2), and its exact binomial
    (Clopper-Pearson) interval describe the drawing of subsets from this pool. They do not contain the pool's own error:
    `unit` is a resample, and the pool is one.

    `settings` holds M, K, n (and n_test), the measured `mean` and `variance` of mu_M . g_K, and beside them
    `pool_mean` and `pool_variance`, their exact values over all subsets (the finite-pool identity), which is what they
    must be compared with: the variance for independent samples differs from it.

    Raises InputError where the pool is too small. Source: notes on alignment, sections 4 and 7.

    >>> import torch
    >>> q = torch.tensor([[1.0], [1.0], [1.0], [-1.0]])
    >>> seen = resampled_misalignment(q, 1, 1, 4000, seed=0)           # in truth 1/2
    >>> seen.estimate, seen.settings["pool_mean"], seen.settings["pool_variance"]
    (0.49475, 0.0, 1.0)
    """
    pools = [each.detach().to(torch.float64) for each in (q, q_test) if each is not None]
    if any(each.dim() != 2 or not torch.isfinite(each).all() for each in pools) or len({p.shape[1] for p in pools}) > 1:
        raise InputError(f"gradients must be finite, of shape (n, d) with one d; got {[tuple(p.shape) for p in pools]}")
    sizes = [M + K] if q_test is None else [M, K]
    if min(M, K, resamples) < 1 or any(size > len(pool) for size, pool in zip(sizes, pools, strict=True)):
        raise InputError(
            f"cannot draw M={M} and K={K} rows, {resamples} times, from {' and '.join(str(len(p)) for p in pools)}"
        )
    least = 4 if q_test is None else 2
    if min(map(len, pools)) < least:
        raise InputError(f"the pool variance takes at least {least} samples; got {[len(pool) for pool in pools]}")
    sums = (gram_rows(pools[0]) if q_test is None else cross_rows(*pools)).sums()
    generator = torch.Generator().manual_seed(seed)
    products = []
    step = max(1, CHUNK_BYTES // (8 * max(map(len, pools))))
    for start in range(0, resamples, step):
        drawn = [
            _subsets(len(p), k, min(step, resamples - start), generator) for p, k in zip(pools, sizes, strict=True)
        ]
        train, test = (drawn[0][:, :M], drawn[0][:, M:]) if q_test is None else drawn
        products.append((_sums(pools[0], train) * _sums(pools[-1], test)).sum(1))
    # Divided last: the sums of gradients on a lattice are exact, and an atom at 0 stays one.
    x = torch.cat(products) / (M * K)
    hits = int((x <= 0).sum())
    p = (hits + 1) / (resamples + 2)
    settings = {
        "M": M,
        "K": K,
        "n": len(pools[0]),
        "n_test": None if q_test is None else len(q_test),
        "mean": float(x.mean()),
        "variance": float(x.var(correction=0)),
        "pool_mean": sums.mean_squared,
        "pool_variance": sums.pool_variance(M, K),
    }
    ends = _binomial_interval(hits, resamples, level)
    error = sqrt(p * (1 - p) / resamples)
    return Measurement(
        hits / resamples, error, ends, level, "resample", resamples, seed=seed, note="of one pool", settings=settings
    )


def _subsets(n: int, size: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` ordered samples of `size` out of n without replacement: the ranks of uniform numbers."""
    return torch.rand(count, n, generator=generator, dtype=torch.float64).topk(size, dim=1).indices


def _sums(q: Tensor, index: Tensor) -> Tensor:
    return embedding_bag(index.to(q.device), q, mode="sum")


def _binomial_interval(hits: int, trials: int, level: float) -> tuple[float, float]:
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high
