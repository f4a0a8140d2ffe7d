"""Laws of gradients to sample from: each with the stated mean and covariance, and little else in common.

A law is a function `(mean, root, rng, shape) -> draws` of shape `(*shape, d)`; `root` is any R with R R' the covariance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["LAWS", "Law", "alignments", "root"]

Law = Callable[[np.ndarray, np.ndarray, np.random.Generator, tuple[int, ...]], np.ndarray]
BLOCK = 2_000_000
"""Numbers held at once while sampling: 16 MB."""


def root(covariance: np.ndarray) -> np.ndarray:
    """R with R R' = covariance, by eigenvectors: singular covariances included."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.clip(values, 0, None))


def gaussian(mean: np.ndarray, root: np.ndarray, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Gaussian draws."""
    return mean + rng.standard_normal((*shape, root.shape[1])) @ root.T


def rademacher(mean: np.ndarray, root: np.ndarray, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Independent signs mixed by the root: bounded, kurtosis below 3, strictly sub-Gaussian."""
    return mean + (2.0 * rng.integers(0, 2, (*shape, root.shape[1])) - 1) @ root.T


def student(mean: np.ndarray, root: np.ndarray, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Elliptical t with 5 degrees of freedom: fourth moments exist, sixth do not."""
    normal = rng.standard_normal((*shape, root.shape[1]))
    # E[3/chi2_5] = 1, so the covariance is the stated one; the plain t has 5/3 of it.
    scale = np.sqrt(3 / rng.chisquare(5, shape))
    return mean + (scale[..., None] * normal) @ root.T


def exponential(mean: np.ndarray, root: np.ndarray, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Centred exponentials mixed by the root: skewed."""
    return mean + (rng.standard_exponential((*shape, root.shape[1])) - 1) @ root.T


LAWS: dict[str, Law] = {"gaussian": gaussian, "rademacher": rademacher, "student": student, "exponential": exponential}


def alignments(
    law: Law,
    rng: np.random.Generator,
    draws: int,
    M: int,
    K: int,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """`draws` independent copies of X = mu_M . g_K, every one from M training and K test gradients of its own.

    `train` and `test` are (mean, covariance). Sampled in blocks of bounded memory.
    """
    (a, S), (b, T) = train, test
    roots = root(S), root(T)
    block = max(1, BLOCK // ((M + K) * len(a)))
    parts = []
    for start in range(0, draws, block):
        count = min(block, draws - start)
        means = law(a, roots[0], rng, (count, M)).mean(axis=1)
        tests = law(b, roots[1], rng, (count, K)).mean(axis=1)
        parts.append(np.einsum("nd,nd->n", means, tests))
    return np.concatenate(parts)
