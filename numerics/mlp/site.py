"""One neuron of a wide layer: its random fields as rows over samples, or over coefficients where all is linear.

Both kinds answer the same three questions: draw further Gaussian fields with given covariances, average a product of
two fields, and average the slope of a field with respect to Gaussian ones.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from theory import InputError

__all__ = ["Coefficients", "Sampled", "Site", "gaussian_points"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
PIVOT = 1e-11
"""A Cholesky pivot below this times its diagonal is 0: kernels become singular once training stops."""
CUT = 1e-6
"""Eigenvalues of a kernel below CUT times the largest are left out of its inverse. Responses along its null space are
undetermined and enter nothing: a null vector v has sum v_k phi_k = 0 on every site."""


class Site(Protocol):
    """What a layer's neuron can be asked. Fields are rows; `family` names a matrix and direction, or the initial fields."""

    def draw(self, family: str, covariance: Array) -> Array:
        """New fields of a family: the rows of `covariance` belong to these, its columns to earlier ones and these."""
        ...

    def mean(self, x: Array, y: Array) -> Array:
        """<x_i y_j> over the neurons."""
        ...

    def slope(self, x: Array, family: str, among: Index) -> Array:
        """<d x_i / d field_j> for the fields of a family numbered in `among`, on which alone (of it) x depends."""
        ...


def gaussian_points(dimension: int, samples: int, seed: np.random.SeedSequence) -> Array:
    """(dimension, samples) scrambled Sobol points made normal and whitened: their second moments are exactly 1 and 0.

    Whitening removes the sampling error of every average that is quadratic in the drivers. `samples` must be a power
    of 2 above the dimension; InputError otherwise.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    if samples & (samples - 1) or samples <= dimension:
        raise InputError(f"samples must be a power of 2 above the {dimension} random fields of a layer; got {samples}")
    sobol = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(seed))
    # Points are multiples of 2^-30 and may be 0: the middle of each cell has a finite quantile.
    points = ndtri(sobol.random_base2(samples.bit_length() - 1).T + 2.0**-31)
    return np.linalg.solve(np.linalg.cholesky(points @ points.T / samples), points)


class _Family:
    """Jointly Gaussian fields, their covariance, and its Cholesky factor over those that are not combinations of others."""

    def __init__(self, capacity: int, samples: int) -> None:
        self.fields = np.empty((capacity, samples))
        self.drivers = np.empty((capacity, samples))
        self.covariance = np.empty((0, 0))
        self.factor = np.empty((0, 0))
        self.active: list[int] = []


class Sampled:
    """Fields by their values on `drivers`, (number of fields at most, samples), whitened."""

    def __init__(self, drivers: Array) -> None:
        self.drivers, self.used = drivers, 0
        self.families: dict[str, _Family] = {}

    def draw(self, family: str, covariance: Array) -> Array:
        """See `Site`. The Cholesky factor grows by rows, so that what was drawn before stays."""
        known = self.families.setdefault(family, _Family(*self.drivers.shape))
        before = len(known.covariance)
        known.covariance = _grown(known.covariance, covariance)
        for i in range(before, len(known.covariance)):
            known.fields[i] = self._next(known, i)
        return known.fields[before : len(known.covariance)]

    def _next(self, known: _Family, i: int) -> Array:
        size = len(known.active)
        row = np.linalg.solve(known.factor, known.covariance[i, known.active]) if size else np.empty(0)
        value, left = row @ known.drivers[:size], known.covariance[i, i] - row @ row
        if left <= PIVOT * known.covariance[i, i]:
            return value
        fresh, pivot = self.drivers[self.used], np.sqrt(left)
        self.used += 1
        factor = np.zeros((size + 1, size + 1))
        factor[:size, :size], factor[size, :size], factor[size, size] = known.factor, row, pivot
        known.factor, known.drivers[size] = factor, fresh
        known.active.append(i)
        return value + pivot * fresh

    def mean(self, x: Array, y: Array) -> Array:
        """See `Site`."""
        return x @ y.T / self.drivers.shape[1]

    def slope(self, x: Array, family: str, among: Index) -> Array:
        """By Stein's identity: <x field> = slope covariance, solved with a truncated inverse (no second derivatives)."""
        known = self.families[family]
        values, vectors = np.linalg.eigh(known.covariance[np.ix_(among, among)])
        kept = values > CUT * values[-1]
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        return self.mean(x, known.fields[among]) @ inverse


class Coefficients:
    """Fields of a linear network by their coefficients on the Gaussian ones: exact but for rounding."""

    def __init__(self, dimension: int) -> None:
        self.covariance, self.used = np.zeros((dimension, dimension)), 0
        self.columns: dict[str, list[int]] = {}

    def draw(self, family: str, covariance: Array) -> Array:
        """See `Site`."""
        new = list(range(self.used, self.used + len(covariance)))
        columns = self.columns.setdefault(family, [])
        columns += new
        self.covariance[np.ix_(new, columns)] = covariance
        self.covariance[np.ix_(columns, new)] = covariance.T
        self.used += len(new)
        return np.eye(len(self.covariance))[new]

    def mean(self, x: Array, y: Array) -> Array:
        """See `Site`."""
        return x @ self.covariance @ y.T

    def slope(self, x: Array, family: str, among: Index) -> Array:
        """A coefficient is a slope; an inverse covariance would lose digits that an unstable rate brings back."""
        return x[:, np.array(self.columns[family])[among]]


def _grown(old: Array, rows: Array) -> Array:
    new = np.zeros((rows.shape[1], rows.shape[1]))
    new[: len(old), : len(old)] = old
    new[len(old) :, :] = rows
    new[:, len(old) :] = rows.T
    return new
