"""Eigenvalues of W'W on the smaller side, with a forecast in bytes before any work; the top ones alone when it does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from theory import InputError

from .matrix import ROWS_AT_ONCE, Weight

__all__ = ["SpectrumForecast", "eigenvalues", "forecast", "squared_norm", "top_eigenvalues"]

MEMORY_LIMIT = 2**33
TOP = 32
"""How many of the largest eigenvalues the Lanczos route computes."""


@dataclass(frozen=True)
class SpectrumForecast:
    """What a spectrum will take besides the matrix itself: "gram" (all eigenvalues) or "lanczos" (the top ones)."""

    route: str
    bytes: int
    flops: int


def forecast(rows: int, columns: int, memory_limit: int = MEMORY_LIMIT) -> SpectrumForecast:
    """The route for a matrix of that shape within the limit, and its peak memory in bytes besides the matrix.

    Raises InputError, with the figure, when not even the top eigenvalues fit.

    >>> forecast(30522, 384)
    SpectrumForecast(route='gram', bytes=27525120, flops=9076801536)
    >>> forecast(50_000, 50_000).route
    'lanczos'
    """
    n, p = max(rows, columns), min(rows, columns)
    gram = 8 * (2 * p * p + min(n, ROWS_AT_ONCE) * p * 2)
    if gram <= memory_limit:
        return SpectrumForecast("gram", gram, 2 * n * p * p + 4 * p**3 // 3)
    lanczos = 8 * (3 * TOP * p + min(n, ROWS_AT_ONCE) * p)
    if lanczos <= memory_limit:
        return SpectrumForecast("lanczos", lanczos, 4 * n * p * 10 * TOP)
    raise InputError(
        f"the spectrum of a {rows} x {columns} matrix needs {gram / 2**30:.3g} GiB in full and {lanczos / 2**30:.3g} GiB for its "
        f"top {TOP} eigenvalues; the limit is {memory_limit / 2**30:.3g} GiB: raise memory_limit, or give a part of the matrix"
    )


def eigenvalues(weight: Weight) -> np.ndarray:
    """All p eigenvalues of W'W (not divided by n), descending, in float64.

    From the p x p Gram matrix; from the singular values where a few directions are so large that rounding of the Gram
    matrix, 1e-16 of the largest eigenvalue, would reach the bulk.

    >>> from .matrix import as_weight
    >>> eigenvalues(as_weight(np.diag(np.arange(1.0, 21.0))))[:3]
    array([400., 361., 324.])
    """
    gram = np.zeros((weight.short, weight.short))
    for block in weight.blocks():
        gram += block.T @ block
    values = np.linalg.eigvalsh(gram)[::-1]
    rounding = weight.short * np.finfo(float).eps * values[0]
    if rounding > 1e-6 * np.median(values):
        values = np.linalg.svd(np.asarray(weight.tall, dtype=np.float64), compute_uv=False) ** 2
    # What rounding leaves of an exact zero is no eigenvalue of the bulk.
    return np.where(values > (weight.long * np.finfo(float).eps) ** 2 * values[0], values, 0.0)


def top_eigenvalues(weight: Weight, count: int = TOP) -> np.ndarray:
    """The largest `count` eigenvalues of W'W, descending, by Lanczos from a fixed start: the same on every call."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    def multiply(vector: np.ndarray) -> np.ndarray:
        vector = vector.ravel()
        return sum((block.T @ (block @ vector) for block in weight.blocks()), np.zeros(weight.short))

    p = weight.short
    make: Any = LinearOperator
    operator = make(shape=(p, p), matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=p)
    return np.asarray(eigsh(operator, min(count, p - 1), v0=start, return_eigenvectors=False))[::-1]


def squared_norm(weight: Weight) -> float:
    """The squared Frobenius norm, the sum of all eigenvalues of W'W."""
    return float(sum((block * block).sum() for block in weight.blocks()))
