"""The Tracy-Widom laws by a Fredholm determinant: 13 digits, relative accuracy in the upper tail, no table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from theory import InputError

from ..evaluate import evaluates
from ..number import to_float, working_precision
from ..value import Value

__all__ = ["TracyWidom", "cdf", "quantile"]

NODES, MORE_NODES = 48, 56
FLOOR = -10.0
"""Below it both distribution functions are under 2.3e-22, less than the rounding of a determinant near 1."""
CEILING = 50.0
"""Above it both upper tails are under 1e-103, and 0 is returned."""
ROUNDING = 4e-15


@dataclass(frozen=True)
class TracyWidom:
    """Law of the largest eigenvalue of large real (beta = 1) or complex (beta = 2) noise, centred at the edge and scaled.

    F_1(s) = det(1 - B_s), F_2(s) = det(1 - B_s) det(1 + B_s), B_s(x, y) = Ai(x + y + s) on (0, oo), by Gauss-Legendre
    quadrature on (0, 9 + max(0, -s)). Absolute error below 4e-15; `survival` has relative error below 1e-14 for s > -4.
    Arrays in, arrays out. Source: Ferrari and Spohn 2005 (beta = 1), Bornemann 2010 (the quadrature).

    >>> law = TracyWidom(1)
    >>> round(float(law.cdf(-1.0)), 12), f"{law.survival(8.0):.10e}"
    (0.58378989552, '8.0454248799e-09')
    >>> round(law.quantile(0.95), 11)
    0.97931605347
    """

    beta: int = 1

    def __post_init__(self) -> None:
        if self.beta not in (1, 2):
            raise InputError(f"beta must be 1 or 2; got {self.beta}")

    def cdf(self, s: Any) -> Any:
        """Pr(S <= s); 0 below -10, where it is under 2.3e-22."""
        return self._each(s, lambda log: math.exp(log))

    def survival(self, s: Any) -> Any:
        """Pr(S > s), with relative accuracy far into the tail."""
        return self._each(s, lambda log: -math.expm1(log))

    def quantile(self, probability: float) -> float:
        """The s with cdf(s) = probability; `isf` for a small chance of exceeding it. InputError at or below 1e-20, and at 1."""
        return self._solve(to_float(Fraction(probability)), to_float(1 - Fraction(probability)), NODES)

    def isf(self, level: float) -> float:
        """The s with survival(s) = level, for levels however small.

        >>> round(TracyWidom(1).isf(1e-30), 9)
        21.145009583
        """
        return self._solve(to_float(1 - Fraction(level)), to_float(Fraction(level)), NODES)

    def _each(self, s: Any, read: Any) -> Any:
        points = np.asarray(s, dtype=np.float64)
        return np.array([read(_log_cdf(point, self.beta, NODES)) for point in points.ravel().tolist()]).reshape(
            points.shape
        )[()]

    def _solve(self, below: float, above: float, nodes: int) -> float:
        """Root of log F = log p in the lower half, of log(1 - F) = log(1 - p) in the upper one."""
        from scipy.optimize import brentq

        if not 1e-20 < below <= 1 or not 1e-100 < above < 1:
            raise InputError(
                f"a Tracy-Widom quantile is found for 1e-20 < probability and 1e-100 < 1 - probability; got {below:g}"
            )

        def gap(s: float) -> float:
            log = _log_cdf(s, self.beta, nodes)
            return log - math.log(below) if below < 0.5 else math.log(above) - math.log(-math.expm1(log))

        root: Any = brentq(gap, FLOOR, CEILING, xtol=1e-15)
        return float(root)


def _log_cdf(s: float, beta: int, nodes: int) -> float:
    if s < FLOOR or math.isnan(s):
        return -math.inf if s < FLOOR else math.nan
    if s > CEILING:
        return -0.0
    eigenvalues = _eigenvalues(s, nodes)
    logs = np.log1p(-eigenvalues) if beta == 1 else np.log1p(-eigenvalues * eigenvalues)
    return float(logs.sum())


def _eigenvalues(s: float, nodes: int) -> np.ndarray:
    """Eigenvalues of B_s, discretised symmetrically."""
    from scipy.special import airy

    points, weights = _gauss_legendre(nodes)
    half = (9 + max(0.0, -s)) / 2
    x, root = half * (points + 1), np.sqrt(half * weights)
    return np.linalg.eigvalsh(root[:, None] * airy(x[:, None] + x + s)[0] * root)


@lru_cache(maxsize=4)
def _gauss_legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (-1, 1), correctly rounded: NumPy's own are off by 1e-14 and would cost a digit."""
    with working_precision(100):
        pairs = [flint.arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes)]
    return np.array([float(point.mid()) for point, _ in pairs]), np.array([float(weight.mid()) for _, weight in pairs])


@evaluates("tracy_widom.cdf", most_digits=15)
def cdf(s: Any, beta: int, *, digits: int = 15) -> Value:
    """F_beta(s), to 13 digits; the radius is the difference between two quadratures, and rounding.

    >>> from numerics import predict
    >>> [round(float(predict("tracy_widom.cdf", {"s": -1, "beta": beta})), 12) for beta in (1, 2)]
    [0.58378989552, 0.807214241999]
    """
    one, other = (math.exp(_log_cdf(to_float(s), beta, nodes)) for nodes in (NODES, MORE_NODES))
    return Value.estimate(one, 2 * abs(one - other) + ROUNDING * min(1.0, 1e3 * one) + 1e-25, digits)


@evaluates("tracy_widom.quantile", most_digits=15)
def quantile(probability: Any, beta: int, *, digits: int = 15) -> Value:
    """The s with F_beta(s) = probability, to 13 digits. Reference 10:

    >>> from numerics import predict
    >>> [f"{float(predict('tracy_widom.quantile', {'probability': '0.95', 'beta': beta})):.13f}" for beta in (1, 2)]
    ['0.9793160534696', '-0.2324744697640']
    """
    return Value.estimate(*solve(probability, beta), digits)


def solve(probability: Any, beta: int) -> tuple[float, float]:
    """(quantile, its error) for an admitted probability; 1 - probability is formed exactly first."""
    above = to_float(1 - probability) if isinstance(probability, Fraction) else 1 - to_float(probability)
    law, below = TracyWidom(beta), to_float(probability)
    one, other = (law._solve(below, above, nodes) for nodes in (NODES, MORE_NODES))
    return one, 2 * abs(one - other) + 1e-14 * max(1.0, abs(one))
