"""Admission: raw inputs, typed or from Python, become exact scalars, vectors and matrices of their domain, or an error.

Forms after admission: an integer is an `int` or inf; a real number a `Fraction`, `Surd` or inf; a vector a tuple of these
or, where an array was given, a float64 array (whose entries are their exact binary values); a covariance either one
row, its diagonal, or the full matrix in rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from theory import Domain, Formula, InputError, Parameter

from .number import Complex, parse, scalar, to_float, to_text

__all__ = ["admit", "as_floats", "is_full", "show"]

PSD_TOLERANCE = 1e-10
"""An eigenvalue below -1e-10 times the largest refuses a covariance; rounding of a singular one stays above."""


def admit(formula: Formula, raw: Mapping[str, Any], *, partial: bool = False) -> tuple[dict[str, Any], str | None]:
    """The admitted inputs in the formula's order, and the name of the one scalar given as a list (a curve), or None.

    `partial` lets required inputs be missing (they are admitted as None). Raises InputError for an unknown, missing or
    out-of-domain input, naming parameter, value and domain.
    """
    given = {formula.parameter(name).name: value for name, value in raw.items() if not _left_out(formula, name, value)}
    missing = [each.name for each in formula.parameters if each.required and each.name not in given]
    if missing and not partial:
        one_row = [n for n, v in given.items() if formula.parameter(n).domain.kind == "covariance" and _one_row_text(v)]
        hint = f' In a shell a matrix needs quotes: {one_row[0]}="2,1;1,3".' if one_row else ""
        example = " ".join(f"{name}={value}" for name, value in formula.example.items())
        hint += f" For example: assay predict {formula.id} {example}" if example else ""
        raise InputError(f"{formula.id} needs {', '.join(missing)} as well.{hint}")
    admitted: dict[str, Any] = {}
    curve = None
    for parameter in formula.parameters:
        value = given.get(parameter.name, parameter.default)
        if value is None:
            admitted[parameter.name] = None
        elif parameter.domain.kind in ("integer", "real", "complex") and _is_list(value):
            if curve is not None:
                raise InputError(f"{formula.id}: only one scalar may be a list; got {curve} and {parameter.name}")
            curve = parameter.name
            admitted[curve] = tuple(_admit(formula.id, parameter, each) for each in _entries(value))
            if not admitted[curve]:
                raise InputError(f"{formula.id}: {curve} is an empty list")
        else:
            admitted[parameter.name] = _admit(formula.id, parameter, value)
    return admitted, curve


def _left_out(formula: Formula, name: str, value: Any) -> bool:
    """None, or the word where an optional parameter has no choice of that name."""
    parameter = formula.parameter(name)
    return value is None or (
        isinstance(value, str) and value == "none" and parameter.optional and "none" not in parameter.domain.choices
    )


def _one_row_text(value: Any) -> bool:
    return isinstance(value, str) and "," in value and ";" not in value


def _is_list(value: Any) -> bool:
    if isinstance(value, str):
        return "," in value or value.startswith("@")
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _admit(id: str, parameter: Parameter, value: Any) -> Any:
    domain = parameter.domain
    try:
        if domain.kind == "choice":
            choice = str(value).lower() if isinstance(value, bool) else str(value)
            if choice not in domain.choices:
                raise InputError("")
            return choice
        if domain.kind in ("vector", "covariance", "matrix"):
            return _array(domain, value)
        return _scalar(domain, scalar(value))
    except InputError as refusal:
        got = value if isinstance(value, str) else np.array2string(np.asarray(value, dtype=object), threshold=8)
        why = f" ({refusal})" if str(refusal) else ""
        raise InputError(f"{id}: {parameter.name} must be {domain.describe()}; got {got[:80]}{why}") from None


def _scalar(domain: Domain, number: Any) -> Any:
    if isinstance(number, Complex):
        if domain.kind != "complex":
            raise InputError("complex")
        return number
    if domain.kind == "complex":
        if not math.isfinite(to_float(number)):
            raise InputError("not finite")
        return Complex(number, Fraction(0))
    if isinstance(number, float):  # only an infinity is left as a float
        if not (domain.infinity and number > 0):
            raise InputError("not finite")
        return number
    if domain.kind == "integer":
        if not (isinstance(number, Fraction) and number.denominator == 1):
            raise InputError("not an integer")
        number = number.numerator
    _check_bounds(domain, number)
    return number


def _check_bounds(domain: Domain, number: Any) -> None:
    if number < domain.low or (domain.open_low and number <= domain.low):
        raise InputError("")
    if number > domain.high or (domain.open_high and number >= domain.high):
        raise InputError("")


def _array(domain: Domain, value: Any) -> Any:
    rows = _file(value[1:]) if isinstance(value, str) and value.startswith("@") else value
    if isinstance(rows, str):
        rows = [_entries(row) for row in rows.strip().strip("[]").split(";")]
        rows = rows[0] if len(rows) == 1 else rows
    if not isinstance(rows, (list, tuple, np.ndarray)):
        rows = [rows]
    shape = _shape(rows)
    if 0 in shape:
        raise InputError("empty")
    if len(shape) == 2 and shape[0] == 1 and domain.kind != "matrix":
        rows, shape = rows[0], shape[1:]
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        rows = _float_array(rows)
    elif len(shape) == 1:
        rows = tuple(scalar(each) for each in rows)
    else:
        rows = tuple(tuple(scalar(each) for each in row) for row in rows)
    flat: list[Any] = rows.ravel().tolist() if isinstance(rows, np.ndarray) else _flatten(rows)
    if any(
        isinstance(each, (Complex, float)) and not (isinstance(each, float) and math.isfinite(each)) for each in flat
    ):
        raise InputError("an entry is not a finite real number")
    if domain.kind == "vector":
        if len(shape) != 1:
            raise InputError(f"a matrix of shape {shape[0]} x {shape[1]}")
        if domain.low > -math.inf or domain.high < math.inf:
            for each in flat:
                _check_bounds(domain, each)
    elif domain.kind == "covariance":
        _check_covariance(rows, shape)
    elif len(shape) == 1:
        rows = rows[np.newaxis, :] if isinstance(rows, np.ndarray) else (rows,)
    return rows


def _flatten(rows: Any) -> list[Any]:
    return [each for row in rows for each in row] if isinstance(rows[0], tuple) else list(rows)


def _check_covariance(rows: Any, shape: tuple[int, ...]) -> None:
    floats = as_floats(rows)
    if len(shape) == 1:
        if floats.min() < 0:
            raise InputError(f"the diagonal entry {floats.min():g} is negative")
        return
    if shape[0] != shape[1]:
        raise InputError(f"{shape[0]} rows and {shape[1]} columns")
    symmetric = np.array_equal(rows, rows.T) if isinstance(rows, np.ndarray) else rows == tuple(zip(*rows, strict=True))
    if not symmetric:
        raise InputError("not symmetric")
    spectrum = np.linalg.eigvalsh(floats)
    if spectrum[0] < -PSD_TOLERANCE * max(spectrum[-1], 0.0) or spectrum[-1] < 0:
        raise InputError(f"its smallest eigenvalue is {spectrum[0]:.3g}")


def _float_array(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iuf":
        raise InputError(f"an array of {array.dtype}")
    floats = np.array(array, dtype=np.float64)
    if not np.isfinite(floats).all():
        raise InputError("an entry is not a finite real number")
    return floats


def _shape(rows: Any) -> tuple[int, ...]:
    if isinstance(rows, np.ndarray):
        if rows.ndim not in (1, 2):
            raise InputError(f"an array of {rows.ndim} dimensions")
        return rows.shape
    nested = [isinstance(row, (list, tuple, np.ndarray)) for row in rows]
    if not any(nested):
        return (len(rows),)
    if not all(nested) or len({len(row) for row in rows}) != 1:
        raise InputError("rows of unequal length")
    return (len(rows), len(rows[0]))


def _entries(value: Any) -> list[Any]:
    if not isinstance(value, str):
        return list(value)
    if value.startswith("@"):
        return list(_file(value[1:]).ravel())
    return [parse(part) for part in value.strip().strip("[]").split(",")]


def _file(name: str) -> np.ndarray:
    path = Path(name)
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix == ".csv":
            return np.loadtxt(path, delimiter=",", ndmin=1)
    except (OSError, ValueError, EOFError) as fault:
        raise InputError(f"cannot read {name}: {fault}") from None
    raise InputError(f"{name} is neither .npy nor .csv")


def is_full(covariance: Any) -> bool:
    """Whether a covariance was given in full rather than by its diagonal."""
    return covariance.ndim == 2 if isinstance(covariance, np.ndarray) else isinstance(covariance[0], tuple)


def as_floats(value: Any) -> np.ndarray:
    """An admitted vector or matrix in float64."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value[0], tuple):
        return np.array([[to_float(each) for each in row] for row in value])
    return np.array([to_float(each) for each in value])


def show(value: Any) -> Any:
    """An admitted input as JSON can carry it and as it would be typed; a large array by its shape."""
    if isinstance(value, np.ndarray):
        if value.size > 64:
            return f"array of shape {'x'.join(map(str, value.shape))}"
        return value.tolist() if value.ndim == 2 else [repr(float(each)) for each in value]
    if isinstance(value, tuple):
        if len(value) > 64:
            return f"list of {len(value)}"
        return [show(each) for each in value]
    return value if value is None else to_text(value)
