"""Where noise ends: Johnstone's centring and scaling of the largest eigenvalue, and the scale of any square-root edge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from theory import InputError

from ..evaluate import evaluates
from ..mp.balls import in_balls
from ..number import to_float
from ..value import Value
from .distribution import solve

__all__ = ["centre_and_scale", "edge_scale", "threshold"]


def centre_and_scale(rows: int, columns: int) -> tuple[float, float]:
    """(mu, sigma): the largest eigenvalue of X'X, X of independent N(0, 1) entries, is mu + sigma TW_1 up to (rows)^(-2/3).

    mu = (l + r)^2 and sigma = (l + r)(1/l + 1/r)^(1/3), l = sqrt(rows - 1/2), r = sqrt(columns - 1/2). Symmetric; X'X is
    not divided by rows. InputError below 1 row or column.

    >>> [round(each, 6) for each in centre_and_scale(200, 100)]
    [580.781831, 13.377687]
    """
    if min(rows, columns) < 1:
        raise InputError(f"a matrix has at least one row and one column; got {rows} x {columns}")
    left, right = (rows - 0.5) ** 0.5, (columns - 0.5) ** 0.5
    return (left + right) ** 2, (left + right) * (1 / left + 1 / right) ** (1 / 3)


@evaluates("tracy_widom.threshold", most_digits=15)
def threshold(rows: int, columns: int, level: Any, variance: Any, *, digits: int = 15) -> Value:
    """variance (mu + sigma q), exceeded by the largest eigenvalue of noise X'X with probability `level`; not divided by rows.

    Sources: Johnstone 2001, Ma 2012. The radius covers the arithmetic, not the order rows^(-2/3) of the approximation: at 5 %
    false alarms were seen in .048 of 200 x 100 matrices, the bare edge in .143 (field report 14).

    >>> from numerics import predict
    >>> round(float(predict("tracy_widom.threshold", {"rows": 200, "columns": 100, "level": "0.05"})), 9)
    593.882813741
    """
    mu, sigma = centre_and_scale(rows, columns)
    above = 1 - level if isinstance(level, Fraction) else Fraction(1 - to_float(level))
    quantile, error = solve(above, 1)
    scale = to_float(variance)
    return Value.estimate(scale * (mu + sigma * quantile), scale * (sigma * error + 1e-15 * mu), digits)


@evaluates("tracy_widom.edge_scale")
def edge_scale(dimension: Any, coefficient: Any, *, digits: int = 15) -> Value:
    """(D a)^(-2/3), the scale of the largest of D eigenvalues whose density ends as (a/pi) sqrt(edge - x). Derived here.

    >>> from numerics import predict
    >>> predict("tracy_widom.edge_scale", {"dimension": 1000, "coefficient": 1}).value
    Value(0.0100000000000000 +/- 1.55e-28, ball)
    """
    return in_balls(lambda size, a: ((size * a).log() * (-2) / 3).exp(), dimension, coefficient, digits=digits)
