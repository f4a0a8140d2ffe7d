"""The Marchenko-Pastur law in double precision, vectorised: for histograms, fits and samples. Certified values: `predict`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import inf, pi, sqrt
from typing import Any

import numpy as np

from theory import InputError

__all__ = ["MarchenkoPastur"]

TINY = 1e-300
BLOCK = 8192


@dataclass(frozen=True)
class MarchenkoPastur:
    """Law of the p eigenvalues of X'X/n, X of n rows and p columns of independent entries of one variance; ratio = p/n.

    For ratio > 1 it has mass 1 - 1/ratio at 0. Its mean is the variance. Arrays in, arrays of the same shape out; NaN
    in, NaN out. Raises InputError unless 0 < ratio, variance < inf. Derived here.

    >>> law = MarchenkoPastur(0.5)
    >>> law.edges
    (0.08578643762690495, 2.914213562373095)
    >>> median = law.quantile(0.5)
    >>> round(float(median), 12), round(float(law.cdf(median)), 12)
    (0.830465881581, 0.5)
    """

    ratio: float
    variance: float = 1.0

    def __post_init__(self) -> None:
        for name in ("ratio", "variance"):
            if not 0 < getattr(self, name) < inf:
                raise InputError(f"{name} must be positive and finite; got {getattr(self, name)}")

    @property
    def edges(self) -> tuple[float, float]:
        """Lower and upper edge of the bulk."""
        lower, upper = _unit_edges(self.ratio)
        return self.variance * lower, self.variance * upper

    @property
    def atom(self) -> float:
        """The mass at 0."""
        return max(0.0, 1 - 1 / self.ratio)

    def density(self, x: Any) -> Any:
        """Density with respect to dx, without the mass at 0. Relative error 1e-15 x (b - a)/(distance to the nearer edge).

        >>> round(float(MarchenkoPastur(0.25).density(1.0)), 12)         # reference 1: .616404444061499806
        0.616404444061
        """
        lower, upper = self.edges

        def density(x: np.ndarray) -> np.ndarray:
            root = np.sqrt(np.maximum((upper - x) * (x - lower), 0.0))
            rho = root / (np.maximum(x, lower or TINY) * (2 * pi * self.variance * self.ratio))
            return np.where(x == 0, inf, rho) if lower == 0 else rho

        return _in_blocks(density, x)

    def cdf(self, x: Any) -> Any:
        """Distribution function, mass at 0 included; absolute error below 5e-16 for ratios from .05 to 20.

        For ratio w <= 1 and variance 1, with R = sqrt((b-x)(x-a)): F = 1/2 + (R - A + w S)/(2 pi w), A and S the difference
        and the sum of two arcs of (x-1-w, R) and ((1+w)x - (1-w)^2, (1-w)R); apart they would cancel to their order w.

        >>> float(MarchenkoPastur(2.0).cdf(0.1))                         # nothing but the mass at 0 lies below .17
        0.5
        """
        # The bulk of ratio y > 1 is the one of the transpose, of ratio 1/y, with 1/y of the mass.
        w = min(self.ratio, 1 / self.ratio)
        lower, upper = _unit_edges(w)
        unit = min(1.0, 1 / self.ratio) / self.variance

        def cdf(x: np.ndarray) -> np.ndarray:
            at = np.clip(x * unit, lower, upper)
            root = np.sqrt((upper - at) * (at - lower))
            difference = np.arctan2(root * (at + (1 - w)), at * (at - 2 * w) + (1 - w) ** 2)
            # Of two equal forms the one whose terms are of the size of the result.
            cosine = w * (2 - w) - (1 - at) ** 2 if w < 0.5 else at * (2 - at) - (1 - w) ** 2
            total = np.arctan2(root * (at - (1 - w)), cosine)
            below = np.clip(0.5 + (root - difference + w * total) / (2 * pi * w), 0.0, 1.0)
            below = np.where(at <= lower, 0.0, below)  # at ratio 1 the arcs have no direction at 0
            return np.where(x < 0, 0.0, self.atom + w * below if self.ratio > 1 else below)

        return _in_blocks(cdf, x)

    def quantile(self, probability: Any) -> Any:
        """The least x with cdf(x) >= probability; error below 1e-13 of the upper edge. InputError outside [0, 1].

        >>> float(MarchenkoPastur(4.0).quantile(0.75)), float(MarchenkoPastur(4.0).quantile(1.0))
        (0.0, 9.0)
        """
        p = np.asarray(probability, dtype=np.float64)
        if not np.all((p >= 0) & (p <= 1)):
            raise InputError(f"a probability lies between 0 and 1; got {p[~((p >= 0) & (p <= 1))].ravel()[0]}")
        mass = min(1.0, 1 / self.ratio)
        below = p
        if (
            self.ratio > 1
        ):  # p - 1 + 1/ratio, with the rounding of 1/ratio made good: close to the atom it is all that is left
            rest = float(1 / Fraction(self.ratio) - Fraction(1 / self.ratio))
            below = np.clip(((p - 1) + 1 / self.ratio) + rest, 0.0, mass)
        # From the nearer end: there the angle, and so x, is known with the relative accuracy of the tail.
        left = below <= mass / 2
        low, high = _angle(below[left], self.ratio, 1), _angle(np.clip(1 - p[~left], 0.0, mass), self.ratio, -1)
        x = np.empty_like(p)
        lower, upper = _unit_edges(self.ratio)
        x[left] = lower + (upper - lower) * np.sin(low / 2) ** 2
        x[~left] = upper - (upper - lower) * np.sin(high / 2) ** 2
        return np.where((below <= 0) & (self.ratio > 1), 0.0, self.variance * x)[()]

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator | int) -> np.ndarray:
        """Independent draws (of the law: the eigenvalues of one matrix repel, and are not independent).

        >>> MarchenkoPastur(2.0).sample(4, 0).round(3)
        array([0.865, 0.   , 0.   , 0.   ])
        """
        return np.asarray(self.quantile(np.random.default_rng(rng).random(size)))

    def moment(self, order: int) -> float:
        """E x^order.

        >>> MarchenkoPastur(0.3).moment(6)
        11.47393
        """
        from .moments import moment

        return float(moment(order, Fraction(self.ratio), Fraction(self.variance)))

    def stieltjes(self, z: Any) -> Any:
        """m(z) = int rho/(x-z); on the real axis the limit from above, so that m.imag/pi is the density there.

        >>> complex(MarchenkoPastur(0.25).stieltjes(1 + 1j).round(12))
        (-0.02485661076+0.831447540767j)
        """
        y, v = self.ratio, self.variance
        lower, upper = self.edges
        z = np.asarray(z, dtype=np.complex128)
        root = np.sqrt(z - lower) * np.sqrt(z - upper)
        linear = v * (1 - y) - z
        # The two roots of the quadratic have the product 1/(v y z): of the two forms, the one that does not cancel.
        far = np.abs(linear - root) >= np.abs(linear + root)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(far, 2 / (linear - root), (linear + root) / (2 * v * y * z))[()]


def _in_blocks(function: Callable[[np.ndarray], np.ndarray], x: Any) -> Any:
    """The function over x, a block at a time: temporaries that stay in the cache halve the time of a long array."""
    x = np.asarray(x, dtype=np.float64)
    if x.size <= BLOCK:
        return function(x)[()]
    flat, out = x.ravel(), np.empty(x.size)
    for start in range(0, x.size, BLOCK):
        out[start : start + BLOCK] = function(flat[start : start + BLOCK])
    return out.reshape(x.shape)


@lru_cache(maxsize=256)
def _unit_edges(ratio: float) -> tuple[float, float]:
    """(1 -+ sqrt(ratio))^2, correctly rounded: near ratio 1 the lower one cancels."""
    with localcontext(prec=50):
        root = Decimal(ratio).sqrt()
        return float((1 - root) ** 2), float((1 + root) ** 2)


def _angle(mass: np.ndarray, ratio: float, end: int) -> np.ndarray:
    """The angle phi from the lower (end 1) or upper (-1) edge within which the bulk has that mass.

    Newton on log mass against log phi: the mass is between phi and phi^3 everywhere, so the logarithms are nearly linear.
    """
    grid, masses = _table(ratio, end)
    positive = np.maximum(mass, masses[0])
    phi = np.exp(np.interp(np.log(positive), np.log(masses), np.log(grid)))
    for _ in range(4):
        seen = _mass_within(phi, ratio, end)
        phi = np.minimum(phi * np.exp(np.log(positive / seen) * seen / (phi * _weight(phi, ratio, end))), pi)
    return np.where(mass <= masses[0], 0.0, phi)


@lru_cache(maxsize=64)
def _table(ratio: float, end: int) -> tuple[np.ndarray, np.ndarray]:
    grid = np.geomspace(1e-60, 0.95 * pi, 1500)
    return grid, _mass_within(grid, ratio, end)


def _weight(phi: np.ndarray, ratio: float, end: int) -> np.ndarray:
    """rho dx/dphi = 2 sin^2 phi/(pi x)."""
    root = end * sqrt(ratio)
    return 2 * np.sin(phi) ** 2 / (pi * ((1 - root) ** 2 + 4 * root * np.sin(phi / 2) ** 2))


def _mass_within(phi: np.ndarray, ratio: float, end: int) -> np.ndarray:
    """Mass of the bulk within the angle phi of one edge, with relative accuracy (the closed form cancels to phi^3).

    2 pi y F = 2 |1-y| h(k u) - 2 (1+y) h(u) - 4 r u^3/(1+u^2), h(w) = w - atan w, u = tan(phi/2), r = -+sqrt y,
    k = (1+r)/|1-r|.
    """
    root = end * sqrt(ratio)
    u, apart = np.tan(phi / 2), abs(1 - ratio)
    near, far = abs(1 - root), abs(1 + root)
    with np.errstate(over="ignore"):
        scaled = u * far / near if near > 0 else np.full_like(u, inf)
    arc = (far * far) * u - apart * np.arctan2(far * u, near)
    bend = np.where(scaled < 0.3, apart * _less_atan(np.minimum(scaled, 0.3)), arc)
    return (2 * bend - 2 * (1 + ratio) * _less_atan(u) - 4 * root * u**3 / (1 + u * u)) / (2 * pi * ratio)


def _less_atan(w: np.ndarray) -> np.ndarray:
    """w - atan w, by its series where the difference cancels."""
    square = np.minimum(w, 0.3) ** 2
    series = np.zeros_like(square)
    for order in range(33, 1, -2):
        series = 1 / order - square * series
    return np.where(w < 0.3, w * square * series, w - np.arctan(w))
