"""The logarithm of the regularised incomplete beta function, also where the function itself underflows."""

from __future__ import annotations

import math

__all__ = ["log_betainc"]

SMALLEST = 1e-290
"""Below this x or I_x has lost digits to underflow, or is 0."""

TERMS = 10_000


def log_betainc(a: float, b: float, log_x: float, log_y: float) -> float:
    """log I_x(a, b) for x = exp(log_x) and y = 1 - x = exp(log_y), both given so that neither loses digits near 1.

    a, b > 0. I_x(a, b) = int_0^x q^(a-1) (1-q)^(b-1) dq / B(a, b) is the probability that a Beta(a, b) variable is
    below x. Error below 1e-12 of the logarithm, or 1e-12 where that is below 1 (against mpmath up to a, b = 1e5). Raises
    ArithmeticError if the continued fraction fails to converge.

    Where x and I_x exceed 1e-290 SciPy's value is used; below, the continued fraction of I_x (Abramowitz and Stegun 26.5.8) times
    its power in logs. It converges for x < (a+1)/(a+b+2); so far in the tail x is always below that.

    >>> round(log_betainc(2000, 1, math.log(0.5), math.log(0.5)) / math.log(2), 9)  # I_x(a, 1) = x^a
    -2000.0
    """
    from scipy.special import betainc, betaincc, betaln

    value = float(betaincc(b, a, math.exp(log_y)) if log_y < log_x else betainc(a, b, math.exp(log_x)))
    if value > SMALLEST and log_x > math.log(SMALLEST):
        return math.log(value)
    return a * log_x + b * log_y - math.log(a) - float(betaln(a, b)) - math.log(_fraction(a, b, math.exp(log_x)))


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d_1/(1 + d_2/(1 + ...)) by the modified Lentz algorithm."""
    value, numerator, denominator = 1.0, 1.0, 0.0
    for n in range(1, TERMS):
        m = n // 2
        over = (a + 2 * m) * (a + (2 * m + 1 if n % 2 else 2 * m - 1))
        d = (-(a + m) * (a + b + m) if n % 2 else m * (b - m)) * x / over
        denominator = 1 / (1 + d * denominator)
        numerator = 1 + d / numerator
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            return value
    raise ArithmeticError(f"the continued fraction of I_x({a}, {b}) at x = {x} did not converge in {TERMS} terms")
