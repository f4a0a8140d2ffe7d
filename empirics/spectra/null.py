"""What the same statistics give on pure noise of the same shape: simulated, variance refitted in every draw, kept on disk."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .bulk import MedianError, fit_bulk, ks_distance, median_scale

__all__ = ["DRAWS", "Null", "cache_folder", "noise_eigenvalues", "simulated_null"]

DRAWS = 200
VERSION = 1
"""Part of the file names: raise it when `fit_bulk`, `ks_distance` or the simulation changes."""


@dataclass(frozen=True)
class Null:
    """(p - k) times the KS distance on noise, ascending, one entry a draw, and the error of the variance estimate.

    Eigenvalues repel: the distance is of order log(p)/p, and Kolmogorov's p^(-1/2) is 5 to 10 times too large. Times
    the count it hardly depends on it, which is how a spectrum without its k outliers is compared with a whole one.
    """

    scaled: np.ndarray
    error: MedianError

    def p_value(self, scaled: float) -> float:
        """Share of noise at least as far off, the matrix itself counted: at least 1/(draws + 1)."""
        return float((1 + (self.scaled >= scaled).sum()) / (1 + len(self.scaled)))

    def quantile(self, probability: float) -> float:
        """Quantile of the scaled distance."""
        return float(np.quantile(self.scaled, probability))


def noise_eigenvalues(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Eigenvalues of X'X, descending, for X of n x p standard normals, n >= p, in O(p^2) operations.

    Householder's bidiagonal form of such a matrix has independent entries chi_n, chi_(n-1), ... and chi_(p-1), ..., chi_1
    (Dumitriu and Edelman 2002): the law is the same, and no n x p matrix is drawn.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    diagonal = rng.chisquare(np.arange(n, n - p, -1.0))
    above = rng.chisquare(np.arange(p - 1, 0, -1.0))
    squares = diagonal.copy()
    squares[1:] += above
    return np.maximum(eigvalsh_tridiagonal(squares, np.sqrt(diagonal[:-1] * above))[::-1], 0.0)


def cache_folder() -> Path:
    """Where null distributions are kept: assay/spectra under XDG_CACHE_HOME, or under ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay" / "spectra"


def simulated_null(
    n: int, p: int, level: float, *, draws: int = DRAWS, seed: int = 0, cache: Path | None = None
) -> Null:
    """The null distribution for an n x p matrix (n >= p) whose outliers are tested at `level`.

    Deterministic in its arguments; read from `cache` (default `cache_folder()`) where it lies there whole, else simulated
    and written there. A folder that cannot be written to costs the time of simulating again, and nothing else.
    """
    folder = cache_folder() if cache is None else cache
    path = folder / f"null-v{VERSION}-{n}x{p}-level{level:g}-draws{draws}-seed{seed}.npy"
    kept = _read(path, draws)
    if kept is None:
        rng = np.random.default_rng(np.random.SeedSequence([seed, n, p]))
        spectra = [noise_eigenvalues(n, p, rng) for _ in range(draws)]
        variances = np.array([median_scale(each, n) for each in spectra])
        error = MedianError(float(variances.mean()), float(variances.std(ddof=1)))
        distances = np.sort([_scaled_distance(each, n, level, error) for each in spectra])
        kept = np.concatenate([[error.mean, error.deviation], distances])
        _write(path, kept)
    return Null(kept[2:], MedianError(float(kept[0]), float(kept[1])))


def _scaled_distance(eigenvalues: np.ndarray, n: int, level: float, error: MedianError) -> float:
    bulk = fit_bulk(eigenvalues, n, level, error)
    return (len(eigenvalues) - bulk.outliers) * ks_distance(eigenvalues, bulk)


def _read(path: Path, draws: int) -> np.ndarray | None:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.shape == (draws + 2,) and np.isfinite(found).all() else None


def _write(path: Path, kept: np.ndarray) -> None:
    """Through a temporary file: another process never reads half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            np.save(file, kept)
        os.replace(file.name, path)
    except OSError:
        return
