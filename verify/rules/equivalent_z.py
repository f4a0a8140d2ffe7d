"""The normal deviate with the same two-sided p-value: one scale for statistics of Student's and of Fisher's law."""

from __future__ import annotations

import math

from theory import InputError

from .incomplete_beta import log_betainc

__all__ = ["fisher_z", "student_z"]

MANY = 1e12
"""Degrees of freedom that stand for infinitely many: log p moves by chi2^2/4e12, z by 6e-8 at z = 63."""


def student_z(t: float, degrees_of_freedom: float) -> float:
    """z with P(|N(0,1)| > |z|) = P(|T| > |t|) and the sign of t; T has Student's law with the given degrees of freedom.

    It is t itself at inf. Computed from log p, so it does not saturate; relative error below 1e-10 plus 1e-14. Raises
    InputError for degrees of freedom that are not positive, ArithmeticError for a NaN.

    >>> round(student_z(4.0, 3), 4), round(student_z(-4.0, 15), 4), student_z(4.0, math.inf)
    (2.1972, -3.2487, 4.0)
    >>> round(student_z(1e100, 3), 3)
    37.044
    """
    if math.isnan(t):
        raise ArithmeticError("a t statistic is NaN: the measurement has no estimate or no standard error")
    if not degrees_of_freedom > 0:
        raise InputError(f"Student's law needs more than 0 degrees of freedom, got {degrees_of_freedom}")
    if degrees_of_freedom == math.inf or t == 0 or math.isinf(t):
        return t
    return math.copysign(_z(2 * math.log(abs(t)), 1, degrees_of_freedom), t)


def fisher_z(f: float, numerator: float, denominator: float) -> float:
    """z >= 0 with P(|N(0,1)| > z) = P(F > f), F of Fisher's law: f is a ratio of mean squares, not of sums.

    `denominator` = inf stands for known standard errors (then numerator * f is a chi^2, and the error of z is 6e-8 at
    z = 63, less below); else the error is that of `student_z`. Raises InputError for degrees that are not positive and
    for an f that is negative or NaN.

    >>> round(fisher_z(16.0, 1, 15), 4)  # t = 4
    3.2487
    >>> round(fisher_z(20 / 3, 3, math.inf), 4)  # chi^2 = 20 on 3 degrees of freedom
    3.7603
    """
    if not (numerator > 0 and denominator > 0 and f >= 0):
        raise InputError(f"no F statistic: f = {f} on {numerator} and {denominator} degrees of freedom")
    if f == 0 or f == math.inf:
        return f
    return _z(math.log(f), numerator, min(denominator, MANY))


def _z(log_f: float, numerator: float, denominator: float) -> float:
    """From P(F > f) = I_x(d2/2, d1/2) with x = d2/(d2 + d1 f)."""
    from numpy import logaddexp
    from scipy.special import ndtri_exp

    log_odds = log_f + math.log(numerator) - math.log(denominator)
    log_x, log_y = -float(logaddexp(0.0, log_odds)), -float(logaddexp(0.0, -log_odds))
    log_p = log_betainc(denominator / 2, numerator / 2, log_x, log_y)
    return max(0.0, -float(ndtri_exp(log_p - math.log(2))))
