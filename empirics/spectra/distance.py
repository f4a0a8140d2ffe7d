"""Distance between two spectra, as measures: no eigenvalue is a probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from .eigenvalues import eigenvalues
from .matrix import as_weight

__all__ = ["spectral_distance"]


def spectral_distance(one: Any, other: Any) -> tuple[float, float]:
    """(Wasserstein-1, Kolmogorov-Smirnov) distance between the singular values of two matrices, each value of equal weight.

    0 for permuted rows or columns, and for the transpose. With c times both matrices the first is |c| times as large, the second
    the same. The matrices may differ in shape. Raises InputError as `weight_spectrum` does.

    >>> A = np.diag(np.arange(1.0, 21.0))
    >>> spectral_distance(A, A[::-1]), spectral_distance(A, 2 * A)
    ((0.0, 0.0), (10.5, 0.5))
    """
    first, second = (np.sqrt(eigenvalues(as_weight(each))[::-1]) for each in (one, other))
    values = np.sort(np.concatenate([first, second]))
    below = [np.searchsorted(each, values, side="right") / len(each) for each in (first, second)]
    gap = np.abs(below[0] - below[1])
    return float((gap[:-1] * np.diff(values)).sum()), float(gap.max())
