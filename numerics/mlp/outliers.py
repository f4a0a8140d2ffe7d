"""Level 2: outlying singular values and vectors of a trained matrix, from the eigenvalues of MA MB."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .training import Matrices

__all__ = ["Spectrum", "halves", "location", "spectrum"]

Array = NDArray[np.float64]
REAL = 1e-6
CLOSE = 0.02
"""A pair of eigenvalues split into the complex plane by less than this, relative to its size, is a close real pair: two
equal eigenvalues of symmetric data come out so at any sampling error, and the split is of the order of its square root."""


@dataclass(frozen=True)
class Spectrum:
    """Level 2 of one matrix after one number of updates; lists are sorted, largest Lambda first.

    `upper` are the positive real Lambda, those below the threshold sigma^2 sqrt(nu) included; `lower` those of outliers
    under the bulk. `left`, `right` (n,) are |cos| of the top outlier's singular vectors with g_k, phi_k, None if there
    is none. Health: `suspicious` lists eigenvalues beyond the threshold that belong to no branch, `norm_gap` is the relative
    difference of the two vectors' norms (0 in exact arithmetic whatever A, B), `pairs` counts close pairs.
    """

    threshold: float
    upper: Array
    lower: Array
    left: Array | None
    right: Array | None
    suspicious: tuple[complex, ...] = ()
    norm_gap: float = 0.0
    pairs: int = 0


def location(eigenvalue: Array | float, nu: float, sigma: float) -> Array:
    """z = sqrt((Lambda + sigma^2)(Lambda + nu sigma^2)/Lambda), the singular value of W/sqrt(N_in).

    >>> float(location(4.0, 1.0, 1.0))
    2.5
    """
    value = np.asarray(eigenvalue, dtype=np.float64)
    return np.sqrt((value + sigma**2) * (value + nu * sigma**2) / value)


def halves(A: Array, B: Array, Phi: Array, G: Array, c: Array) -> tuple[Array, Array]:
    """(MA, MB), each 2n x 2n: [[I, 0], [C, I]] [[A, Phi], [0, A']], and the same with B, G. See `theory.mlp.box`."""

    def half(response: Array, kernel: Array) -> Array:
        scaled = c[:, None]
        return np.block([[response, kernel], [scaled * response, scaled * kernel + response.T]])

    return half(A, Phi), half(B, G)


def spectrum(matrices: Matrices, c: Array, n: int, nu: float, sigma: float, independent: bool = False) -> Spectrum:
    """Outliers of the matrix after the first n spikes. `independent` sets A = B = 0: the naive answer, to compare with.

    Exact given its arguments, but for rounding; eigenvalues of an ill-conditioned pair are good to its square root.

    >>> one, zero = np.ones((1, 1)), np.zeros((1, 1))
    >>> found = spectrum(Matrices(one, one, zero, zero), np.array([2.0]), 1, 1.0, 1.0)
    >>> found.upper.tolist(), round(float(found.left[0]) ** 2, 12)
    ([4.0], 0.75)
    """
    threshold = sigma**2 * sqrt(nu)
    if n == 0:
        return Spectrum(threshold, np.empty(0), np.empty(0), None, None)
    A, B, Phi, G = (each[:n, :n] for each in (matrices.A, matrices.B, matrices.Phi, matrices.G))
    if independent:
        A, B = np.zeros_like(A), np.zeros_like(B)
    MA, MB = halves(A, B, Phi, G, c[:n])
    values: Any
    vectors: Any
    values, vectors = np.linalg.eig(MA @ MB)
    real = np.abs(values.imag) <= REAL * np.abs(values)
    pair = ~real & (np.abs(values.imag) < CLOSE * np.abs(values)) & (np.abs(values) > threshold)
    upper = values.real[(real | pair) & (values.real > 0)]
    below = real & (values.real < -threshold) & (values.real > -(sigma**2) * max(1.0, nu))
    strange = ~(real | pair) & (np.abs(values) > threshold) | (real & (values.real < -threshold) & ~below)
    left = right = None
    gap = 0.0
    top = int(np.argmax(np.where(real | pair, values.real, -np.inf)))
    if values[top].real > threshold and (real | pair)[top]:
        left, right, gap = _overlaps(values[top].real, vectors[:, top].real, (A, B, Phi, G), MB, c[:n], nu, sigma)
    return Spectrum(
        threshold,
        np.sort(upper)[::-1],
        np.sort(values.real[below])[::-1],
        left,
        right,
        tuple(complex(each) for each in values[strange]),
        gap,
        int(pair.sum()) // 2,
    )


def _overlaps(
    value: float, X: Array, blocks: tuple[Array, ...], MB: Array, c: Array, nu: float, sigma: float
) -> tuple[Array, Array, float]:
    """|cos| of both singular vectors with the spikes, and the relative difference of the two norms."""
    A, B, Phi, G = blocks
    n, variance = len(c), sigma**2
    z = float(location(value, nu, sigma))
    m_a, m_b = (1 + variance / value) / z, (1 + nu * variance / value) / z
    Y = m_a * MB @ X
    (alpha, P), (beta, Q) = (X[:n], X[n:]), (Y[:n], Y[n:])
    # q_a = m_a^2 (nu sigma^2 q_b + a), q_b = m_b^2 (sigma^2 q_a + b)
    a = 2 * P @ B @ alpha + P @ G @ P
    b = 2 * Q @ A @ beta + Q @ Phi @ Q
    system = np.array([[1, -(m_a**2) * nu * variance], [-(m_b**2) * variance, 1]])
    q_a, q_b = np.linalg.solve(system, [m_a**2 * a, m_b**2 * b])
    if q_a <= 0 or q_b <= 0:
        return np.zeros(n), np.zeros(n), np.inf
    return _cosine(beta, q_a * np.diag(G)), _cosine(alpha, q_b * np.diag(Phi)), abs(q_a - q_b) / q_a


def _cosine(product: Array, squares: Array) -> Array:
    """|product|/sqrt(squares); 0 with a field that vanishes."""
    return np.divide(np.abs(product), np.sqrt(squares), out=np.zeros(len(product)), where=squares > 0)
