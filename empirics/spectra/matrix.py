"""A weight as the matrix whose spectrum is judged: what is flattened, what is dropped, and what is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from theory import InputError

__all__ = ["SMALLEST", "Weight", "as_weight", "flattened"]

SMALLEST = 16
"""Below 16 columns (or rows) neither bulk nor edge is defined well enough to test anything."""
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Weight:
    """A real matrix in two dimensions, in its own dtype, without its zero rows and columns; `notes` say what was done.

    `rows`, `columns` are those of the flattened weight (zero ones not counted), `long` and `short` the larger and the
    smaller of the two.
    """

    matrix: np.ndarray
    shape: tuple[int, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Number of rows that are not zero."""
        return self.matrix.shape[0]

    @property
    def columns(self) -> int:
        """Number of columns that are not zero."""
        return self.matrix.shape[1]

    @property
    def long(self) -> int:
        """n, the larger of rows and columns."""
        return max(self.matrix.shape)

    @property
    def short(self) -> int:
        """p, the smaller of rows and columns."""
        return min(self.matrix.shape)

    @property
    def tall(self) -> np.ndarray:
        """The matrix or its transpose, n x p with n >= p: the spectrum knows no orientation."""
        return self.matrix if self.rows >= self.columns else self.matrix.T

    def blocks(self) -> Any:
        """The tall matrix in float64, a few rows at a time: a half-precision embedding is never copied whole."""
        tall = self.tall
        for start in range(0, self.long, ROWS_AT_ONCE):
            yield np.asarray(tall[start : start + ROWS_AT_ONCE], dtype=np.float64)


def as_weight(weight: Any, name: str = "matrix") -> Weight:
    """A tensor or array as a matrix: (out, in, ...) kernels are flattened to (out, in * ...), zero rows and columns dropped.

    Raises InputError, with `name`, for what has no spectrum to judge: fewer than two dimensions, fewer than 16 rows or
    columns, complex or boolean entries, NaN or inf, entries all equal.

    >>> weight = as_weight(np.random.default_rng(0).normal(size=(64, 32, 3, 3)))
    >>> weight.shape, (weight.rows, weight.columns), weight.notes
    ((64, 32, 3, 3), (64, 288), ('kernel of shape 64x32x3x3 flattened to 64 x 288',))
    """
    array = flattened(weight, name)
    shape, notes = tuple(weight.shape), []
    if len(shape) > 2:
        notes.append(f"kernel of shape {_times(shape)} flattened to {array.shape[0]} x {array.shape[1]}")
    for axis, word in ((1, "rows"), (0, "columns")):
        live = array.any(axis=axis)
        if not live.all():
            notes.append(f"{int((~live).sum())} {word} that are zero were left out")
            array = array[live] if axis == 1 else array[:, live]
    if min(array.shape, default=0) < SMALLEST:
        raise InputError(
            f"{name} is too small to judge: {array.shape[0]} x {array.shape[1]} that are not zero, "
            f"and at least {SMALLEST} of each are needed"
        )
    if array.min() == array.max():
        raise InputError(f"{name} has all entries equal to {array.min():g}: there is no noise to compare with")
    return Weight(array, shape, tuple(notes))


def flattened(weight: Any, name: str) -> np.ndarray:
    """The weight in two dimensions, (out, in * ...), finite and real, or an InputError that names it."""
    array = _array(weight, name)
    if array.ndim < 2:
        kind = "a vector (a bias or a norm's scale)" if array.ndim else "a scalar"
        raise InputError(f"{name} is {kind} of shape {array.shape}: a spectrum needs a matrix or a convolution kernel")
    if not array.size or not np.isfinite(array).all():
        raise InputError(f"{name} has {'NaN or infinite' if array.size else 'no'} entries; got shape {array.shape}")
    return array.reshape(array.shape[0], -1)


def _array(weight: Any, name: str) -> np.ndarray:
    if hasattr(weight, "detach"):  # a tensor: NumPy has no bfloat16
        weight = weight.detach().cpu()
        weight = (weight.float() if weight.is_floating_point() and weight.element_size() < 4 else weight).numpy()
    array = np.asarray(weight)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} has entries of type {array.dtype}; real numbers are needed")
    return array if array.dtype.kind == "f" and array.itemsize >= 4 else array.astype(np.float64)


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
