"""Bounds on, and approximations of, Pr(X <= 0) that need a tilt, four cumulants or two: cheap, and each right somewhere.

Bounds: Chernoff's (Gaussian or sub-Gaussian gradients) and Bernstein's, its closed relaxation. Approximations: the
normal law, Edgeworth's expansion (central) and Lugannani and Rice's (tails as well).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint
import numpy as np

from ..evaluate import FLOAT_DIGITS, evaluates
from ..value import Value
from .gaussian import (
    ROUNDING,
    BilinearGaussian,
    cgf_at,
    float_law,
    saddle,
    slopes_at,
    standardised,
)
from .gaussian_mp import Law, agreed, cgf, from_log, law_at
from .gaussian_mp import saddle as saddle_at
from .sample import broadcast

__all__ = ["bernstein", "chernoff", "clt", "edgeworth", "lugannani_rice"]

NEAR_MEAN = 6e-8
"""The tilt is known to 4e-15, hence 1/w - 1/z to 4e-15/w; below this w its limit at 0, off by w, is as good."""
BUMP = 1e-7
LEAST = float(np.finfo(float).tiny)


def chernoff(law: BilinearGaussian) -> float:
    """min over s <= 0 of exp K(s), at least Pr(X <= 0); 1 where c <= 0, 0 where X = c > 0 almost surely.

    Holds for every gradient law whose covariances are those of `law` or variance proxies of them: sub-Gaussian
    gradients, E exp(w'(q - E q)) <= exp(w'Sigma w/2). In double precision. Derived here; R5 of the notes:

    >>> law = BilinearGaussian.of_means([1.0, 0.5, 0.0], [1.0, 3.0, 0.25], M=4, K=9)
    >>> round(chernoff(law), 14)
    0.40216690820383
    """
    return math.exp(_log_chernoff(law))


def _log_chernoff(law: BilinearGaussian) -> float:
    if law.c <= 0:
        return 0.0
    if law.constant:
        return -math.inf
    law = standardised(law)
    return -0.5 * law.c**2 if not law.d.any() else min(0.0, float(cgf_at(law, saddle(law, 0.0))))


def bernstein(mean: float, variance: float, scale: float) -> float:
    """exp(-E^2/(2(V + D E))) with mean E, variance V, scale D = max d_j; at least Chernoff's bound; 1 where E <= 0.

    D is the operator norm of S^(1/2) T^(1/2) over sqrt(MK), S and T the covariances, or variance proxies, of one
    gradient; V is the variance of X with them. Derived here, from K(s) <= sE + s^2 V/(2(1 - abs(s) D)). R6 of the notes:

    >>> law = BilinearGaussian.of_means([1.0, 0.5, 0.0], [1.0, 3.0, 0.25], M=4, K=9)
    >>> round(bernstein(law.c, law.variance, law.d.max()), 14)
    0.60141228802447
    """
    return math.exp(_log_bernstein(mean, variance, scale))


def _log_bernstein(mean: float, variance: float, scale: float) -> float:
    if mean <= 0:
        return 0.0
    spread = variance + scale * mean
    return -(mean**2) / (2 * spread) if spread > 0 else -math.inf


def clt(mean: float, variance: float) -> float:
    """Phi(-E/sqrt(V)), the normal approximation of Pr(X <= 0); the atom 1[E <= 0] where V = 0.

    >>> round(clt(1.0, 1.0), 12)
    0.158655253931
    """
    return edgeworth(mean, variance, 0.0, 0.0)


def edgeworth(mean: float, variance: float, third: float, fourth: float) -> float:
    """Phi(x) - phi(x)[g/6 He2(x) + l/24 He3(x) + g^2/72 He5(x)], x = -E/sd, g = kappa_3/sd^3, l = kappa_4/sd^4.

    Arguments are the first four cumulants of X. Returned raw: it approximates Pr(X <= 0) in the centre (E^2/V below 4
    or so) and can leave [0, 1] in the tails. 1[E <= 0] where V = 0. R7 of the notes (R8 is its fourth cumulant):

    >>> third = 6 * (1 + 3**2 * 0.5**2) / 36
    >>> round(edgeworth(1.25, 0.9114583333333333, third, 1.3125180844907407), 14)
    0.0648572676659
    """
    if variance == 0:
        return 1.0 if mean <= 0 else 0.0
    sd = math.sqrt(variance)
    x, skewness, kurtosis = -mean / sd, third / sd / sd / sd, fourth / variance / variance
    density = _density(x)
    # Where the density underflows the polynomial may overflow; their product is 0.
    return 0.5 * math.erfc(-x / math.sqrt(2)) - (density * _hermite(x, skewness, kurtosis) if density else 0.0)


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def _hermite(x: Any, skewness: Any, kurtosis: Any) -> Any:
    """g/6 He2 + l/24 He3 + g^2/72 He5, over floats and balls."""
    square = x * x
    he2, he3, he5 = square - 1, x * (square - 3), x * ((square - 10) * square + 15)
    return skewness * he2 / 6 + kurtosis * he3 / 24 + skewness * skewness * he5 / 72


def lugannani_rice(law: BilinearGaussian) -> float:
    """Phi(w) + phi(w)(1/w - 1/z), w = -sqrt(-2K(s)), z = s sqrt(K''(s)), at K'(s) = 0: an approximation of Pr(X <= 0).

    Within about 10 % in every tail that was tried, and far better at high rank. Its limit where c is 0; exact where no
    d_j > 0; the atom 1[c <= 0] where Var X = 0. Derived here.

    >>> law = BilinearGaussian.of_means([1.0, 0.5, 0.0], [1.0, 3.0, 0.25], M=4, K=9)  # exact: 0.06372
    >>> round(lugannani_rice(law), 5)
    0.06171
    """
    if law.constant:
        return 1.0 if law.c <= 0 else 0.0
    negative, law = law.c < 0, standardised(law)
    if not law.d.any():
        tail = clt(law.c, 1.0)
    else:
        tilt = saddle(law, 0.0)
        w = -math.sqrt(max(0.0, -2 * float(cgf_at(law, tilt))))
        if -w < NEAR_MEAN:
            tail = 0.5 + float(np.sum(law.u * law.v * law.d)) / math.sqrt(2 * math.pi)
        else:
            z = tilt.s * math.sqrt(slopes_at(law, tilt)[1])
            tail = 0.5 * math.erfc(-w / math.sqrt(2)) + _density(w) * (1 / w - 1 / z)
    return 1.0 - tail if negative else tail


@evaluates("alignment.chernoff")
def chernoff_bound(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """`chernoff` from admitted inputs, to any number of digits. An estimate; beyond 15 digits from two precisions.

    >>> from fractions import Fraction as F
    >>> chernoff_bound((F(1), F(1, 2), F(0)), (F(1), F(3), F(1, 4)), 4, 9, digits=18)
    Value(0.402166908203832218 +/- 1.25e-19, estimate)
    """
    inputs = broadcast(mu, Sigma, mu_test, Sigma_test)
    if digits <= FLOAT_DIGITS:
        law = float_law(*inputs, M, K)
        if not law.constant:
            return _from_exponent(_log_chernoff(law), digits)
    return _from_law(_chernoff_at, inputs, M, K, digits)


@evaluates("alignment.bernstein")
def bernstein_bound(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """`bernstein` from admitted inputs, to any number of digits. An estimate; beyond 15 digits from two precisions.

    >>> from fractions import Fraction as F
    >>> bernstein_bound((F(1), F(1, 2), F(0)), (F(1), F(3), F(1, 4)), 4, 9, digits=18)
    Value(0.601412288024467274 +/- 4.24e-19, estimate)
    """
    inputs = broadcast(mu, Sigma, mu_test, Sigma_test)
    if digits <= FLOAT_DIGITS:
        law = float_law(*inputs, M, K)
        if not law.constant:
            return _from_exponent(_log_bernstein(law.c, law.variance, float(law.d.max())), digits)
    return _from_law(_bernstein_at, inputs, M, K, digits)


@evaluates("alignment.edgeworth")
def edgeworth_expansion(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """`edgeworth` with the Gaussian cumulants, from admitted inputs, to any number of digits. An estimate, returned raw.

    >>> from fractions import Fraction as F
    >>> edgeworth_expansion((F(1), F(1, 2), F(0)), (F(1), F(3), F(1, 4)), 4, 9, digits=18)
    Value(0.0648572676659041070 +/- 3.76e-20, estimate)
    """
    inputs = broadcast(mu, Sigma, mu_test, Sigma_test)
    law = float_law(*inputs, M, K)
    if digits > FLOAT_DIGITS or law.constant:
        return _from_law(_edgeworth_at, inputs, M, K, digits)
    mean, variance, square = law.c, law.variance, law.d**2
    third = 6 * float(np.sum(law.u * law.v * law.d))
    fourth = 12 * float(square @ (law.u**2 + law.v**2)) + 6 * float(square @ square)
    value = edgeworth(mean, variance, third, fourth)
    # Each cumulant is good to a few eps: their effect, the rounding of the leading term, and underflow of all.
    up = 1 + BUMP
    moved = (
        edgeworth(mean * up, variance, third, fourth),
        edgeworth(mean, variance * up, third, fourth),
        edgeworth(mean, variance, third * up, fourth),
        edgeworth(mean, variance, third, fourth * up),
    )
    effect = sum(abs(each - value) for each in moved) / BUMP
    return Value.estimate(value, ROUNDING * (effect + clt(mean, variance)) + LEAST, digits)


def _from_exponent(exponent: float, digits: int) -> Value:
    return from_log(exponent, ROUNDING * max(1.0, -exponent), digits)


def _from_law(function: Callable[[Law], Any], inputs: tuple[Any, Any, Any, Any], M: Any, K: Any, digits: int) -> Value:
    return agreed(lambda run, tries: function(law_at(*inputs, M, K)), digits)


def _chernoff_at(law: Law) -> Any:
    if law.c <= 0 or law.variance == 0:
        return flint.arb(int(law.c <= 0))
    return cgf(law, saddle_at(law, 0)).exp() if law.rows else (-law.c * law.c / (2 * law.flat)).exp()


def _bernstein_at(law: Law) -> Any:
    if law.c <= 0 or law.variance == 0:
        return flint.arb(int(law.c <= 0))
    return (-law.c * law.c / (2 * (law.variance + law.top * law.c))).exp()


def _edgeworth_at(law: Law) -> Any:
    if law.variance == 0:
        return flint.arb(int(law.c <= 0))
    sd = law.variance.sqrt()
    third = 6 * sum((duv for _, _, duv in law.rows), flint.arb(0))
    fourth = sum((12 * d2 * w + 6 * d2 * d2 for d2, w, _ in law.rows), flint.arb(0))
    x = (-law.c / sd).mid()
    density = (-x * x / 2).exp() / (2 * flint.arb.pi()).sqrt()
    return (-x / flint.arb(2).sqrt()).erfc() / 2 - density * _hermite(x, third / sd**3, fourth / sd**4)
