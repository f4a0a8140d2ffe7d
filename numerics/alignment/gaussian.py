"""The exact law of the alignment X = U'V of two Gaussian sample means, and Pr(X <= 0) in double precision.

Whitening both means and one singular value decomposition turn X into independent products of normal pairs; the
probability is then a one-dimensional integral of exp(K(s)) along a ray that leaves the saddle point and bends off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from theory import InputError

from ..evaluate import FLOAT_DIGITS, evaluates
from ..inputs import PSD_TOLERANCE, as_floats
from ..value import Value
from .gaussian_mp import RAYS, from_log, gaussian_at
from .sample import broadcast

__all__ = ["BilinearGaussian", "gaussian", "log_probability", "probability"]

EPS = float(np.finfo(float).eps)
ROUNDING = 40 * EPS
"""Relative, a unit of log P. Measured in 2,452 diagonal and 2,478 other random laws: at most 5 and 38 eps; the worst have
nearly singular S and T that do not commute, and owe it to the reduction to singular values."""
LOG_RANGE = 37.0
"""The integrand is followed over abs(log(y/scale)) < 37: it starts like y, and ends like 1/y or faster."""
GROWTH = 3.0
"""A rise of the integrand by exp(3) along a ray is not followed: the sum would have to cancel it."""
LEAST_AGREEMENT = 1e-6
BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class BilinearGaussian:
    """The law of X = c + sum_j (u_j xi_j + v_j eta_j + d_j xi_j eta_j) with independent standard normal xi, eta.

    `u`, `v`, `d` are float64 arrays of one shape (r,), `d >= 0`. InputError for other shapes, entries that are not
    finite, or a negative d.

    >>> law = BilinearGaussian.of_means([1.0, 0.5, 0.0], [1.0, 3.0, 0.25], M=4, K=9)
    >>> law.c, round(law.variance, 12)
    (1.25, 0.911458333333)
    """

    c: float
    u: np.ndarray
    v: np.ndarray
    d: np.ndarray

    def __post_init__(self) -> None:
        shapes = {np.shape(each) for each in (self.u, self.v, self.d)}
        if len(shapes) != 1 or np.ndim(self.d) != 1 or np.size(self.d) == 0 or not np.all(self.d >= 0):
            raise InputError(f"u, v and d must be vectors of one length >= 1, and d >= 0; got {self}")
        if not np.isfinite([self.c, *self.u, *self.v, *self.d]).all():
            raise InputError(f"the law of X needs finite c, u, v and d; got {self}")

    @classmethod
    def of_means(
        cls,
        mu: Any,
        Sigma: Any,
        M: float,
        K: float,
        mu_test: Any = None,
        Sigma_test: Any = None,
        threshold: float = 0.0,
    ) -> BilinearGaussian:
        """The law of U'V - threshold, U the mean of M draws of N(mu, Sigma), V of K draws of N(mu_test, Sigma_test).

        `mu`: (d,); `Sigma`, of one draw: (d, d), or (d,) for a diagonal, and two diagonals form no matrix. What is
        left out for the test sample is as in training. M and K are integers >= 1, or inf: a mean without noise.
        InputError for shapes that disagree, a covariance that is not symmetric positive semidefinite, or M, K below 1.
        """
        a, S = _floats("mu", mu, (1,)), _floats("Sigma", Sigma, (1, 2))
        b = a if mu_test is None else _floats("mu_test", mu_test, (1,))
        T = S if Sigma_test is None else _floats("Sigma_test", Sigma_test, (1, 2))
        if len({*a.shape, *S.shape, *b.shape, *T.shape}) != 1:
            shapes = f"mu {a.shape}, Sigma {S.shape}, mu_test {b.shape}, Sigma_test {T.shape}"
            raise InputError(f"the two laws must have one dimension; got shapes {shapes}")
        for name, count in (("M", M), ("K", K)):
            if not count >= 1 or (count != math.inf and count != int(count)):
                raise InputError(f"{name} must be an integer >= 1, or inf for a mean without noise; got {count}")
        m, k = 1 / M, 1 / K
        c = math.fsum(a * b) - threshold
        if S.ndim == T.ndim == 1:
            return _commuting(c, S * m, T * k, a, b)
        if np.array_equal(S, T):
            spectrum, basis = _spectrum("Sigma", S)
            return _commuting(c, spectrum * m, spectrum * k, basis.T @ a, basis.T @ b)
        A, B = _root("Sigma", S) * math.sqrt(m), _root("Sigma_test", T) * math.sqrt(k)
        product = A[:, None] * B if A.ndim == 1 else A.T * B if B.ndim == 1 else A.T @ B
        left, d, right = np.linalg.svd(product)
        u, v = (A * b if A.ndim == 1 else A.T @ b), (B * a if B.ndim == 1 else B.T @ a)
        return cls(c, left.T @ u, right @ v, d)

    @property
    def variance(self) -> float:
        """Var X = sum_j (u_j^2 + v_j^2 + d_j^2)."""
        return float(self.u @ self.u + self.v @ self.v + self.d @ self.d)

    @property
    def constant(self) -> bool:
        """Whether X = c almost surely; `variance == 0` may be underflow."""
        return not (self.u.any() or self.v.any() or self.d.any())

    def cgf(self, s: float) -> float:
        """K(s) = log E exp(s X), for real s with abs(s) max(d) < 1; InputError outside.

        >>> round(BilinearGaussian(1.0, np.zeros(1), np.zeros(1), np.ones(1)).cgf(-0.5), 12)  # -0.5 - log(0.75)/2
        -0.356158963774
        """
        if not abs(s) * self.d.max() < 1:
            raise InputError(f"K(s) exists for abs(s) < {1 / self.d.max():g}; got s = {s:g}")
        return float(cgf_at(self, Tilt(s, 1 - s * self.d, 1 + s * self.d)))


def probability(law: BilinearGaussian) -> tuple[float, float]:
    """(P, error): P = Pr(X <= 0), an atom at 0 counted, and an estimate of the absolute error of P.

    The error is P times max(40 eps max(1, abs(log P)), g): the rounding of the exponent, and the relative change g under
    the last halving of the trapezoid rule; not a proof. P below 1e-308 is 0.0: use `log_probability`.
    ArithmeticError where no contour converges. Derived here; R4 of the notes:

    >>> P, error = probability(BilinearGaussian.of_means([1.0, 0.5, 0.0], [1.0, 3.0, 0.25], M=4, K=9))
    >>> abs(P - 0.0637174522567659620) <= error < 1e-14
    True
    """
    log_p, error = extended_log(law)
    p = float(np.exp(log_p))
    return p, error * p


def log_probability(law: BilinearGaussian) -> tuple[float, float]:
    """(log P, its absolute error), for tails far below the smallest double too; -inf where Pr(X <= 0) = 0.

    >>> far = BilinearGaussian.of_means([100.0, 0.0], [1.0, 1.0], M=16, K=16)
    >>> log_p, error = log_probability(far)  # for M = K in two dimensions P = exp(-M d_par/2)/2
    >>> abs(log_p - (-8 * 100.0**2 - math.log(2))) <= error < 1e-9
    True
    """
    log_p, error = extended_log(law)
    return float(log_p), error


@evaluates("alignment.gaussian")
def gaussian(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """Pr(X <= 0) for Gaussian gradients: double precision up to 15 digits, `gaussian_mp` beyond.

    Inputs in admitted form. An estimate, its radius as in `probability`, which says how many of the digits hold. Where
    fewer than half would (tails below exp(-1e6), laws on which no float contour converges), `gaussian_mp` answers.

    >>> from fractions import Fraction as F
    >>> gaussian((F(1), F(1, 2), F(0)), (F(1), F(3), F(1, 4)), 4, 9, digits=18)
    Value(0.0637174522567659620 +/- 2.85e-20, estimate)
    """
    inputs = broadcast(mu, Sigma, mu_test, Sigma_test)
    if digits <= FLOAT_DIGITS:
        law = float_law(*inputs, M, K)
        try:
            log_p, error = extended_log(law)
        except ArithmeticError:
            error = math.inf
        # Of a constant X the sign of c decides, which takes exact arithmetic.
        if error <= 10 ** (-digits / 2) and not law.constant:
            return from_log(log_p, error, digits)
    return gaussian_at(*inputs, M, K, digits)


def float_law(a: Any, S: Any, b: Any, T: Any, M: Any, K: Any) -> BilinearGaussian:
    """The law of X up to a positive factor, from admitted inputs of one dimension.

    The factor, a power of two, costs no digit and keeps mu'Sigma mu from under- and overflow.
    """
    floats = [as_floats(each) for each in (a, S, b, T)]
    sizes = (float(np.abs(each).max()) ** power for each, power in zip(floats, (1, 0.5, 1, 0.5), strict=True))
    exponent = math.frexp(max(sizes))[1]
    a, S, b, T = (np.ldexp(each, -n * exponent) for each, n in zip(floats, (1, 2, 1, 2), strict=True))
    return BilinearGaussian.of_means(a, S, M, K, b, T)


def _floats(name: str, value: Any, dimensions: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(value, dtype=float)
    if array.ndim not in dimensions or not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, of dimension {dimensions[-1]} at most; got shape {array.shape}")
    if array.ndim == 2 and not np.array_equal(array, array.T):
        raise InputError(f"{name} is not symmetric; average it with its transpose if that is rounding")
    if array.ndim == 1 and 2 in dimensions and array.min(initial=0.0) < 0:
        raise InputError(f"{name} has the negative variance {array.min():g}")
    return array


def _spectrum(name: str, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, with 0 for negative rounding, and the eigenvectors as columns."""
    spectrum, basis = np.linalg.eigh(covariance)
    if spectrum[0] < -PSD_TOLERANCE * max(spectrum[-1], 0.0):
        raise InputError(f"{name} is not positive semidefinite: its smallest eigenvalue is {spectrum[0]:.3g}")
    return np.maximum(spectrum, 0.0), basis


def _root(name: str, covariance: np.ndarray) -> np.ndarray:
    """A with A A' = covariance: (d, d), or (d,) for a diagonal."""
    if covariance.ndim == 1:
        return np.sqrt(covariance)
    spectrum, basis = _spectrum(name, covariance)
    return basis * np.sqrt(spectrum)


def _commuting(c: float, S: np.ndarray, T: np.ndarray, a: np.ndarray, b: np.ndarray) -> BilinearGaussian:
    """The law in a common eigenbasis; S, T are the variances of the two means."""
    return BilinearGaussian(c, np.sqrt(S) * b, np.sqrt(T) * a, np.sqrt(S) * np.sqrt(T))


class Tilt(NamedTuple):
    """A real s with 1 - s d_j and 1 + s d_j, the latter exact to rounding where s nears the pole at -1/max(d)."""

    s: float
    minus: np.ndarray
    plus: np.ndarray


def saddle(law: BilinearGaussian, pole: float) -> Tilt:
    """The s in (-1/max(d), 0) with K'(s) = pole/s: `pole` 0 for Chernoff's bound, 1 for the contour. Needs max(d) > 0.

    With M = K the root lies within 1e-12 of the pole for d_par = 1e12, so eps in s = -(1 - eps)/max(d) is solved for, on
    the scale of its log-odds, where both ends keep their digits.
    """
    top = float(law.d.max())
    ratio, gap = law.d / top, (top - law.d) / top

    def at(odds: float) -> Tilt:
        near, eps = 1 / (1 + math.exp(-odds)), 1 / (1 + math.exp(odds))
        return Tilt(-near / top, 1 + near * ratio, gap + eps * ratio)

    low, high = -200.0, 200.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        tilt = at(middle)
        low, high = (middle, high) if slopes_at(law, tilt)[0] > pole / tilt.s else (low, middle)
    return at(0.5 * (low + high))


def cgf_at(law: BilinearGaussian, tilt: Tilt) -> Any:
    """K(s), summed in extended precision where the platform has it."""
    wide = (law.u, law.v, law.d, tilt.minus, tilt.plus, tilt.s)
    u, v, d, minus, plus, s = (np.asarray(each, np.longdouble) for each in wide)
    log_q = np.where(minus < 1.5, np.log1p(-((s * d) ** 2)), np.log(minus * plus))
    return s * law.c + np.sum(-0.5 * log_q + s**2 * ((u - v) ** 2 / (2 * minus * plus) + u * v / minus))


def slopes_at(law: BilinearGaussian, tilt: Tilt) -> tuple[float, float]:
    """(K'(s), K''(s))."""
    s, minus, q = tilt.s, tilt.minus, tilt.minus * tilt.plus
    uv, difference, square = law.u * law.v, (law.u - law.v) ** 2, (s * law.d) ** 2
    first = law.d**2 / q + difference / q**2 + uv * (1 + minus) / minus**2
    second = (law.d / q) ** 2 * (1 + square) + difference * (1 + 3 * square) / q**3 + 2 * uv / minus**3
    return law.c + s * float(np.sum(first)), float(np.sum(second))


def standardised(law: BilinearGaussian) -> BilinearGaussian:
    """The law of X, or of -X where c < 0, over its standard deviation."""
    noise = np.concatenate([law.u, law.v, law.d])
    scale = float(np.abs(noise).max() * np.linalg.norm(noise / np.abs(noise).max()))
    sign = -1.0 if law.c < 0 else 1.0
    return BilinearGaussian(abs(law.c) / scale, law.u / scale, sign * law.v / scale, law.d / scale)


def extended_log(law: BilinearGaussian) -> tuple[Any, float]:
    """(log P in extended precision, absolute error): rounded to a double, log P = -32 would cost P four bits."""
    if law.constant:
        return (0.0 if law.c <= 0 else -math.inf), 0.0
    log_p, error = _log_tail(standardised(law))
    if law.c >= 0:
        return log_p, error
    p = np.exp(log_p)
    return np.log1p(-p), max(error * float(p), ROUNDING) / float(1 - p)


def _log_tail(law: BilinearGaussian) -> tuple[Any, float]:
    if not law.d.any():
        from scipy.special import log_ndtr

        log_p = np.longdouble(log_ndtr(-law.c))
        return log_p, ROUNDING * max(1.0, -float(log_p))
    tilt = saddle(law, 1.0)
    exponent = cgf_at(law, tilt) - np.log(-np.longdouble(tilt.s))
    difference = _difference(law, tilt)
    scale = 1 / math.hypot(math.sqrt(slopes_at(law, tilt)[1]), 1 / tilt.s)
    best, error = 0.0, math.inf
    for bend in RAYS:
        found = _integral(difference, scale, bend, law.d.size)
        best, error = min((best, error), found, key=lambda pair: pair[1])
        if error < ROUNDING:
            break
    if not error < LEAST_AGREEMENT:
        raise ArithmeticError("no contour converges to 1e-6 in double precision; ask for more than 15 digits")
    log_p = exponent + np.log(np.longdouble(best / math.pi))
    return log_p, max(ROUNDING * max(1.0, -float(log_p)), error)


def _difference(law: BilinearGaussian, tilt: Tilt) -> Callable[[np.ndarray], np.ndarray]:
    """dz -> [K(s) - log(-s)] at s0 + dz minus its value at s0, for complex dz of shape (n,).

    Every term is a difference with the factor dz taken out: K itself reaches 1e12, its changes along the ray stay O(1).
    """
    d, s0, m0, q0 = law.d, tilt.s, tilt.minus, tilt.minus * tilt.plus
    square, weights = (law.u - law.v) ** 2 / (2 * q0), np.stack([law.u * law.v, law.u * law.v / m0], axis=1)

    def difference(dz: np.ndarray) -> np.ndarray:
        s = s0 + dz
        step = dz[:, None] * d
        minus, plus = m0 - step, tilt.plus + step
        inverse = 1 / (minus * plus)
        pairs = (plus * inverse) @ weights
        linear = law.c + s * pairs[:, 0] + s0 * pairs[:, 1] + (s + s0) * (inverse @ square)
        # log(q/q0) by log1p, as the roundings of 10,000 equal coordinates add up; NumPy's complex one takes no such care.
        delta = (-dz * (s + s0))[:, None] * (d**2 / q0)
        modulus = np.sum(np.log1p(delta.real * (2 + delta.real) + delta.imag**2), axis=1)
        angle = np.sum(np.arctan2(delta.imag, 1 + delta.real), axis=1)
        return dz * linear - 0.25 * modulus - 0.5j * angle - np.log1p(dz / s0)

    return difference


def _integral(
    difference: Callable[[np.ndarray], np.ndarray], scale: float, bend: float, size: int
) -> tuple[float, float]:
    """Im of the integral of exp(difference(z)) dz along z = y(i - bend), y > 0, and its relative error.

    Trapezoid rule in t, y = scale exp(pi/2 sinh t), the step halved up to six times; the error is the last change. It
    mostly overstates: convergence is geometric, but slow parts of a small amplitude do occur. Once the integrand has died
    down the path ends: should a small d_j let it rise further out, so it does on this ray, not on those that turn off.
    The error is inf where it grows before.
    """

    def nodes(t: np.ndarray) -> float:
        log_y = 0.5 * math.pi * np.sinh(t)
        y, total = scale * np.exp(log_y), 0.0
        for part in np.array_split(np.arange(t.size), 1 + t.size * size // BLOCK):
            exponent: Any = difference(y[part] * (1j - bend))
            over = np.flatnonzero((log_y[part] > 0) & (exponent.real + log_y[part] < -LOG_RANGE))
            kept = part[: over[0]] if over.size else part
            exponent = exponent[: kept.size]
            if not exponent.real.max(initial=0.0) <= GROWTH:
                return math.inf
            total += float(np.sum((np.exp(exponent) * (1j - bend)).imag * y[kept] * np.cosh(t[kept])))
            if over.size:
                break
        return 0.5 * math.pi * total

    half, error = 65, math.inf
    step = math.asinh(2 * LOG_RANGE / math.pi) / half
    coarse = step * nodes(step * np.arange(-half, half + 1))
    for _ in range(6):
        fine = 0.5 * (coarse + step * nodes(step * (np.arange(-half, half) + 0.5)))
        if not 0 < fine < math.inf:
            return 0.0, math.inf
        error = abs(fine - coarse) / fine
        if error < ROUNDING:
            break
        coarse, step, half = fine, step / 2, 2 * half
    return fine, error
