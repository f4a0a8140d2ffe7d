"""The bulk of a spectrum and what stands out of it: variance by the bulk median, outliers from the top one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from numerics.mp import MarchenkoPastur
from numerics.spiked import strength_of
from numerics.tracy_widom import TracyWidom, centre_and_scale
from theory import InputError

__all__ = ["Bulk", "MedianError", "fit_bulk", "fit_top", "ks_distance", "median_scale", "tail_quantile"]


@dataclass(frozen=True)
class MedianError:
    """Mean and standard deviation, on noise of the shape at hand, of the variance estimate over the true variance."""

    mean: float = 1.0
    deviation: float = 0.0


EXACT = MedianError()


@dataclass(frozen=True)
class Bulk:
    """k outliers of an n x p matrix, n >= p, and the noise that explains the rest.

    k strong spikes take k rows and k columns of noise with them: the rest is spread like noise of shape (n - k) x (p - k)
    and variance `scale`. `variance`, of an entry of the full noise, is larger by what finite spikes push the bulk down.
    `threshold` is what the next eigenvalue of W'W would have had to exceed.
    """

    outliers: int
    scale: float
    variance: float
    threshold: float
    n: int
    p: int

    @property
    def ratio(self) -> float:
        """(p - k)/(n - k)."""
        return (self.p - self.outliers) / (self.n - self.outliers)

    def strengths(self, eigenvalues: np.ndarray) -> np.ndarray:
        """theta of each outlier, in units of sqrt(scale (n - k)), as if it were a lone spike in the noise of the rest.

        Bias .1 % for 50 or 122 spikes of 2 to 4 times the threshold in 512 x 512, .6 % at 1.3 times the threshold.
        """
        return strength_of(eigenvalues[: self.outliers] / (self.scale * (self.n - self.outliers)), self.ratio)


def fit_bulk(eigenvalues: np.ndarray, n: int, level: float, error: MedianError = EXACT) -> Bulk:
    """Step down from the largest eigenvalue: remove it while it exceeds what noise would reach with probability `level`.

    `eigenvalues` are the p of W'W, descending, n >= p. At every step the scale is refitted by the median of what remains
    over the median of its law, so that spikes do not bias it; the threshold is Johnstone's for the remaining shape,
    widened by the `error` of the scale (without it 64 x 64 noise has false outliers in 12 % at a level of 5 %). Stops at
    half of the eigenvalues: then there is no bulk.

    Raises InputError if half of the eigenvalues are zero. Source: notes, `real-networks` 1.1; shape, push and error derived here.

    >>> X = np.random.default_rng(0).normal(size=(300, 200))
    >>> X[:, 0] += 3.0                                                   # a spike of strength 3 sqrt(300)
    >>> bulk = fit_bulk(np.linalg.eigvalsh(X.T @ X)[::-1], 300, 0.001)
    >>> bulk.outliers, round(bulk.variance, 2)
    (1, 0.98)
    """
    p = len(eigenvalues)
    for k in range(p // 2 + 1):
        fewer = p / (p - k)  # mean and deviation are off by order 1/p
        scale = median_scale(eigenvalues, n, k) / (1 + (error.mean - 1) * fewer)
        threshold = scale * _noise_level(n - k, p - k, level, error.deviation * fewer)
        if eigenvalues[k] <= threshold:
            break
    bulk = Bulk(k, scale, scale, threshold, n, p)
    return bulk if k in (0, p // 2) else Bulk(k, scale, scale * _push(bulk, eigenvalues), threshold, n, p)


def median_scale(eigenvalues: np.ndarray, n: int, k: int = 0) -> float:
    """Median of all but the k largest eigenvalues of W'W over that of noise of shape (n - k) x (p - k) and variance 1."""
    p, median = len(eigenvalues), float(np.median(eigenvalues[k:]))
    if not median > 0:
        raise InputError(
            f"{int((eigenvalues <= 0).sum())} of {p} eigenvalues are zero: a bulk that is mostly zero has no scale; "
            "of a low-rank matrix judge the factors instead"
        )
    return median / ((n - k) * _unit_median((p - k) / (n - k)))


def fit_top(top: np.ndarray, total: float, n: int, p: int, level: float) -> Bulk:
    """The same from the largest eigenvalues alone: scale from the mean of the rest, `total` being the sum of all p."""
    rest = total - np.concatenate([[0.0], np.cumsum(top)])
    for k in range(len(top) + 1):
        size = (n - k) * (p - k)
        scale = float(rest[k]) / size
        threshold = scale * _noise_level(n - k, p - k, level, (2 / size) ** 0.5)
        if k == len(top) or top[k] <= threshold:
            break
    return Bulk(k, scale, scale, threshold, n, p)


def _push(bulk: Bulk, eigenvalues: np.ndarray) -> float:
    """variance/scale: a spike of finite strength repels the bulk, and its median with it.

    To first order in k/p the law of the rest is F(x) + sum_j atan2(sin phi, t_j + cos phi)/(pi (p - k)), where
    x = 1 + y - 2 sqrt(y) cos phi and t_j = theta_j^2/sqrt(y): the spectral shift of the spikes' determinant
    1 - theta^2 D(x + i0), less that of infinitely strong ones.
    """
    y, law, median = bulk.ratio, MarchenkoPastur(bulk.ratio), _unit_median(bulk.ratio)
    t = bulk.strengths(eigenvalues) ** 2 / y**0.5
    cosine = (1 + y - median) / (2 * y**0.5)
    shift = np.arctan2((1 - cosine * cosine) ** 0.5, t + cosine).sum() / np.pi
    return median / float(law.quantile(0.5 - shift / (bulk.p - bulk.outliers)))


def _noise_level(n: int, p: int, level: float, deviation: float) -> float:
    """What the largest eigenvalue of X'X over the estimated variance exceeds with probability `level`, X of n x p normals."""
    mu, sigma = centre_and_scale(n, p)
    return mu + sigma * tail_quantile(level, round(mu / sigma * deviation, 2))


@lru_cache(maxsize=4096)
def tail_quantile(level: float, spread: float = 0.0) -> float:
    """What S + spread Z exceeds with probability `level`; S Tracy-Widom (beta = 1), Z an independent standard normal.

    >>> round(tail_quantile(0.05), 6), round(tail_quantile(0.05, 1.2), 3)
    (0.979316, 1.718)
    """
    alone = TracyWidom(1).isf(level)
    if spread == 0:
        return alone
    from scipy.optimize import brentq

    z, weights = np.polynomial.hermite_e.hermegauss(32)
    points, logs = _log_survival()

    def gap(t: float) -> float:
        survival = np.exp(np.interp(t - spread * z, points, logs, left=0.0))
        return float(np.log(weights @ survival / weights.sum() / level))

    # Gauss-Hermite reaches to 10 deviations: a bracket wide enough for any level in use.
    root = brentq(gap, min(alone, 0.0) - 10 * spread, max(alone, 0.0) + 10 * spread, xtol=1e-9)
    return float(np.asarray(root))


@lru_cache(maxsize=1)
def _log_survival() -> tuple[np.ndarray, np.ndarray]:
    points = np.concatenate(
        [np.arange(-6.0, 6.0, 0.1), np.arange(6.0, 40.0, 0.5)]
    )  # linear between them to .6 % of the tail
    return points, np.log(TracyWidom(1).survival(points))


@lru_cache(maxsize=65536)
def _unit_median(ratio: float) -> float:
    return float(MarchenkoPastur(ratio).quantile(0.5))


def ks_distance(eigenvalues: np.ndarray, bulk: Bulk) -> float:
    """sup |F - empirical| over the p - k eigenvalues that are no outliers; `eigenvalues` descending, of W'W."""
    rest = eigenvalues[bulk.outliers :][::-1] / (bulk.n - bulk.outliers)
    theory, count = MarchenkoPastur(bulk.ratio, bulk.scale).cdf(rest), len(rest)
    steps = np.arange(count + 1) / count
    return float(max((steps[1:] - theory).max(), (theory - steps[:-1]).max()))
