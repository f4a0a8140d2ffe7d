"""The two gradient laws of an alignment question, in admitted form, and the scalar words they form.

A law is a mean and a covariance (a diagonal as one row, or full rows). Test law left out means: the same as training.
"""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np

from theory import InputError

from ..inputs import is_full

__all__ = ["broadcast", "energy", "inner", "quadratic", "reciprocal", "trace_product"]


def broadcast(mu: Any, Sigma: Any, mu_test: Any = None, Sigma_test: Any = None) -> tuple[Any, Any, Any, Any]:
    """The four with one dimension: a single number stands for every entry, a missing test law for the training law.

    Raises InputError where two of them disagree about the dimension.

    >>> from fractions import Fraction as F
    >>> broadcast((F(1), F(2)), (F(3),))[1]
    (Fraction(3, 1), Fraction(3, 1))
    """
    given = {"mu": mu, "Sigma": Sigma, "mu_test": mu_test, "Sigma_test": Sigma_test}
    sizes = {name: len(each) for name, each in given.items() if each is not None and (len(each) > 1 or is_full(each))}
    dimension = max(sizes.values(), default=1)
    wrong = [f"{name} has {size}" for name, size in sizes.items() if size != dimension]
    if wrong:
        right = next(name for name, size in sizes.items() if size == dimension)
        raise InputError(f"the laws differ in dimension: {right} has {dimension}, {', '.join(wrong)}")

    def spread(each: Any) -> Any:
        if len(each) == dimension or is_full(each):
            return each
        return np.full(dimension, each[0]) if isinstance(each, np.ndarray) else tuple(each) * dimension

    a, S = spread(mu), spread(Sigma)
    return a, S, a if mu_test is None else spread(mu_test), S if Sigma_test is None else spread(Sigma_test)


def reciprocal(count: Any) -> Any:
    """1/count, and 0 for inf; of a number of any field."""
    return 0 if isinstance(count, float) and math.isinf(count) else 1 / count


def inner(left: list[Any], right: list[Any]) -> Any:
    """sum_i left_i right_i over any field."""
    if left and isinstance(left[0], flint.fmpq) and isinstance(right[0], flint.fmpq):
        size = len(left)
        return (flint.fmpq_mat(1, size, left) * flint.fmpq_mat(size, 1, right))[0, 0]
    return sum((x * y for x, y in zip(left[1:], right[1:], strict=True)), left[0] * right[0])


def energy(a: list[Any], b: list[Any]) -> Any:
    """a'b."""
    return inner(a, b)


def quadratic(vector: list[Any], covariance: list[Any]) -> Any:
    """v'Cv for a covariance in full or by its diagonal."""
    if isinstance(covariance[0], list):
        return inner([inner(row, vector) for row in covariance], vector)
    return inner([x * c for x, c in zip(vector, covariance, strict=True)], vector)


def trace_product(S: list[Any], T: list[Any]) -> Any:
    """tr(ST): the sum of the products of matching entries, both being symmetric."""
    full_s, full_t = isinstance(S[0], list), isinstance(T[0], list)
    if full_s and full_t:
        return inner([x for row in S for x in row], [x for row in T for x in row])
    diagonal_s = [row[i] for i, row in enumerate(S)] if full_s else S
    diagonal_t = [row[i] for i, row in enumerate(T)] if full_t else T
    return inner(diagonal_s, diagonal_t)
