"""Certificates from data: the dimension is estimated, the guarantee stays finite-sample.

The catalogue's two maps, and the algebra of their proof on plain numbers and arrays: a weighted mean of nonnegative
W = (1 - lam X)^2 is bounded from above (Lemma 2), and the bound is turned into one on the misalignment probability.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from theory import InputError

from ..certified import certified, sign
from ..evaluate import evaluates
from ..value import Value
from .sample import reciprocal

__all__ = [
    "Certificate",
    "bound_a",
    "bound_b",
    "cantelli_weight",
    "certificate",
    "certificate_unconditional",
    "clopper_pearson_upper",
    "kurtosis_constant",
    "kurtosis_of_mean",
    "theorem_c",
    "theorem_u",
]

ROUNDING = 1e-9
"""Relative: a mean of squares below 0, or above its bound, by more than this is not rounding but a wrong input."""


class Certificate(NamedTuple):
    """What theorems C and U return: `bound` on the misalignment probability, and `w`, the upper bound on E(1 - lam X)^2."""

    bound: Any
    w: Any


@evaluates("alignment.certificate")
def certificate(w: Any, k: Any, K: Any, *, digits: int = 15) -> Value:
    """Rh/(1 + Rh) with Rh = (k/K) w/(1 - w), the misalignment bound of K test samples; 1 where w >= 1.

    `w` >= E(1 - lam Y)^2 for a mean Y of k alignments at a fixed training mean. Exact for rational input. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.certificate", {"w": "0.5", "k": 16, "K": 64}).value
    Value(0.2, exact)
    """
    return certified(lambda w, k, K: _bound(w, k * reciprocal(K)), w, k, K, digits=digits)


@evaluates("alignment.certificate_unconditional")
def certificate_unconditional(w: Any, m: Any, M: Any, K: Any, *, digits: int = 15) -> Value:
    """Rh/(1 + Rh) with Rh = max((1/M + 1/K)/(2/m), m^2/(MK)) w/(1 - w); 1 where w >= 1.

    `w` >= E(1 - lam X)^2 for the alignment X of m training with m test samples. For M = K >= m the factor is m/M.
    Exact for rational input. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.certificate_unconditional", {"w": "0.5", "m": 16, "M": 64, "K": 64}).value
    Value(0.2, exact)
    """
    return certified(lambda w, m, M, K: _bound(w, _factor(m, M, K)), w, m, M, K, digits=digits)


def _bound(w: Any, factor: Any) -> Any:
    """factor w/(1 - w) as a ratio R, mapped to R/(1 + R), over any field; one quotient, so that it never exceeds 1."""
    return factor * w / (factor * w + 1 - w) if sign(1 - w) > 0 else 1


def _factor(m: Any, M: Any, K: Any) -> Any:
    """How much larger Var X/(E X)^2 can be at sizes M, K than at m, m: each of its two coefficients on its own."""
    over_m, over_k = reciprocal(M), reciprocal(K)
    linear, product = (over_m + over_k) * m / 2, m * m * over_m * over_k
    return linear if linear >= product else product


def cantelli_weight(mean: Any, variance: Any) -> Any:
    """The lam >= 0 that minimises E(1 - lam X)^2: E/(V + E^2), and 0 where the mean E is not positive.

    `variance` V is that of X itself: of a mean of k scalars, their variance over k. Any lam that does not depend on the
    data that enter W is valid; this one is best. Floats or arrays; V >= 0, and E = V = 0 gives 0. Derived here.

    >>> cantelli_weight(1.0, 3.0)
    0.25
    """
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    _require("variance", variance, (variance >= 0) & np.isfinite(mean), ">= 0, with a finite mean")
    positive = mean > 0
    return _plain(np.where(positive, mean / np.where(positive, variance + mean**2, 1.0), 0.0))


def kurtosis_of_mean(kurtosis: Any, k: Any) -> Any:
    """3 + (kurtosis - 3)/k, of a mean of k independent scalars with E(x - E x)^4/Var^2 = kurtosis (3 when normal).

    >>> kurtosis_of_mean(9.0, 4)
    4.5
    """
    kurtosis, k = np.asarray(kurtosis, float), np.asarray(k, float)
    _require("kurtosis", kurtosis, kurtosis >= 1, ">= 1: no law has less")
    _require("k", k, k >= 1, ">= 1")
    return _plain(3 + (kurtosis - 3) / k)


def kurtosis_constant(kurtosis: Any) -> Any:
    """kap = (1 + sqrt(kurtosis))^2: E W^2 <= kap (E W)^2 for W = (1 - lam X)^2, X of that kurtosis, every lam (Lemma 3).

    The alignment of Gaussian gradients has kurtosis at most 9, whatever the laws and sizes:

    >>> kurtosis_constant(9.0)
    16.0
    """
    kurtosis = np.asarray(kurtosis, float)
    _require("kurtosis", kurtosis, kurtosis >= 1, ">= 1: no law has less")
    return _plain((1 + np.sqrt(kurtosis)) ** 2)


def bound_a(mean: Any, kap: Any, N: Any, delta: Any) -> Any:
    """Lemma 2(a): E W <= mean/(1 - sqrt(2 kap log(1/delta)/N)) with probability 1 - delta, if E W^2 <= kap (E W)^2.

    `mean` is that of N independent W >= 0, or a complete U-statistic of order r of n draws with N = floor(n/r). inf where
    N <= 2 kap log(1/delta): too few draws for any bound. Floats or arrays. InputError outside mean >= 0, kap >= 1,
    N >= 1, 0 < delta < 1. Derived here.

    >>> round(bound_a(0.5, 2.0, 100, 0.05), 6)
    0.764717
    """
    mean, kap = _mean(mean), np.asarray(kap, float)
    _require("kap", kap, kap >= 1, ">= 1: E W^2 is at least (E W)^2")
    room = 1 - np.sqrt(2 * kap * _log(delta) / _count(N))
    return _plain(np.where(room > 0, mean / np.where(room > 0, room, 1.0), np.inf))


def bound_b(mean: Any, w_max: Any, N: Any, delta: Any) -> Any:
    """Lemma 2(b): E W <= (sqrt(a) + sqrt(mean + a))^2, a = w_max log(1/delta)/(2N), with probability 1 - delta.

    For 0 <= W <= w_max; `mean`, `N`, `delta` as in `bound_a`. Both bounds fail in one event only, so where both
    assumptions hold the smaller of them holds at the same delta. InputError also for a mean above w_max, which shows
    that the assumption is false. Derived here.

    >>> round(bound_b(0.5, 2.0, 100, 0.05), 6)
    0.811915
    """
    mean, w_max = _mean(mean), np.asarray(w_max, float)
    _require("mean", mean, mean <= w_max * (1 + ROUNDING), f"at most w_max = {w_max}, the largest W")
    # An infinite w_max is no assumption, and gives no bound.
    a = w_max * _log(delta) / (2 * _count(N))
    return _plain((np.sqrt(a) + np.sqrt(mean + a)) ** 2)


def theorem_c(
    yb: Any,
    s2: Any,
    n: Any,
    k: Any,
    K: Any,
    lam: Any,
    delta: Any,
    kurtosis: Any = None,
    w_max: Any = None,
) -> Certificate:
    """Theorem C: a bound Bh on Pr(X <= 0) given mu_M, from n scalars y_i = mu_M.r_i of a pilot sample.

    `yb`, `s2` are mean and unbiased variance (over n - 1) of the y_i; k <= n is the size of the groups in W, K that of
    the test sample. k and lam >= 0 must come from other data. `kurtosis` bounds that of a single y given mu_M, `w_max` =
    (1 + lam C abs(mu_M))^2 where abs(r) <= C: one assumption at least; given both, the smaller bound counts, at the same
    delta. Then Pr(Bh < B) <= delta for B = R/(1+R), R = (mu_M'T mu_M/K)/(mu_M.b)^2, and Pr(X <= 0 and Bh <= b) <=
    max(b, delta) for every b fixed beforehand. It does not bound the failures among certified insertions. Derived here.

    >>> bound, w = theorem_c(1.0, 4.0, n=4000, k=16, K=64, lam=0.8, delta=0.05, kurtosis=3.0)
    >>> round(bound, 6), round(w, 6)
    (0.116576, 0.345479)
    """
    _require("k", np.asarray(k, float), np.asarray(k) <= np.asarray(n), f"at most n = {n}")
    _require("s2", np.asarray(s2, float), np.asarray(s2) >= 0, ">= 0")
    _require("lam", np.asarray(lam, float), np.asarray(lam) >= 0, ">= 0")
    yb, s2, k, n, lam = (np.asarray(each, float) for each in (yb, s2, k, n, lam))
    mean = (1 - lam * yb) ** 2 + lam**2 * s2 * (1 / k - 1 / n)
    single = None if kurtosis is None else kurtosis_of_mean(kurtosis, k)
    return _certificate(mean, np.floor(n / k), delta, single, w_max, k / np.asarray(K, float))


def theorem_u(
    U1: Any,
    A: Any,
    B: Any,
    C: Any,
    n: Any,
    m: Any,
    M: Any,
    K: Any,
    lam: Any,
    delta: Any,
    kurtosis: Any = None,
    w_max: Any = None,
) -> Certificate:
    """Theorem U: a bound Bh on Pr(X <= 0), from the U-statistics of n gradients of one law.

    U1, A, B, C are unbiased for E k12, E k12^2, E k12 k13, E k12 k34 with k = q.q'; m with 2m <= n is the size of both
    samples in W, M and K those that are certified; m and lam >= 0 come from other data. `kurtosis` bounds that of the
    alignment of m with m gradients (9 for Gaussian ones), `w_max` = (1 + lam C^2)^2 where abs(q) <= C. Everything else
    as in `theorem_c`, with B = Var X/(Var X + (E X)^2). Derived here.

    >>> bound, w = theorem_u(1.0, 3.0, 1.5, 1.0, n=16000, m=8, M=64, K=64, lam=0.8, delta=0.05, kurtosis=9.0)
    >>> round(bound, 6), round(w, 6)
    (0.028181, 0.188302)
    """
    U1, A, B, C, n, m, lam = (np.asarray(each, float) for each in (U1, A, B, C, n, m, lam))
    _require("m", m, (m >= 1) & (2 * m <= n), f"between 1 and n/2 = {n / 2}")
    _require("lam", lam, lam >= 0, ">= 0")
    squares = ((m - 1) ** 2 * C + 2 * (m - 1) * B + A) / m**2
    mean = 1 - 2 * lam * U1 + lam**2 * squares
    scale = 1 + 2 * lam * abs(U1) + lam**2 * (abs(C) + 2 * abs(B) + abs(A))
    _require("mean of (1 - lam X)^2", mean, mean >= -ROUNDING * scale, ">= 0: are U1, A, B, C of one sample?")
    over_m, over_k = 1 / np.asarray(M, float), 1 / np.asarray(K, float)
    factor = np.maximum((over_m + over_k) * m / 2, m**2 * over_m * over_k)
    return _certificate(np.maximum(mean, 0.0), np.floor(n / (2 * m)), delta, kurtosis, w_max, factor)


def clopper_pearson_upper(failures: Any, groups: Any, delta: Any) -> Any:
    """The assumption-free baseline: an upper limit of level 1 - delta on a probability, `failures` seen in `groups`.

    The p with Pr(Binomial(groups, p) <= failures) = delta; 1 - delta^(1/groups) without failures, 1 where all failed.
    InputError outside 0 <= failures <= groups, groups >= 1. Floats or arrays. Clopper and Pearson 1934.

    >>> round(clopper_pearson_upper(0, 100, 0.05), 6)
    0.029513
    """
    from scipy.special import betainccinv

    failures, groups, delta = np.asarray(failures, float), np.asarray(groups, float), np.asarray(delta, float)
    _log(delta)
    _require("groups", groups, groups >= 1, ">= 1")
    _require("failures", failures, (failures >= 0) & (failures <= groups), f"between 0 and groups = {groups}")
    every = failures == groups
    limit = betainccinv(failures + 1, np.where(every, 1.0, groups - failures), delta)
    return _plain(np.where(every, 1.0, limit))


def _certificate(mean: Any, N: Any, delta: Any, kurtosis: Any, w_max: Any, factor: Any) -> Certificate:
    """Lemma 2 under what is assumed, then R = factor w/(1 - w) and R/(1 + R)."""
    if kurtosis is None and w_max is None:
        raise InputError(
            "no bound follows from a sample without an assumption on the tail (Bahadur and Savage): give `kurtosis`, a "
            "bound on the kurtosis of the alignments, or `w_max` from a bound on the gradient norm, which clipping enforces"
        )
    w = np.asarray(np.inf)
    if kurtosis is not None:
        w = np.minimum(w, bound_a(mean, kurtosis_constant(kurtosis), N, delta))
    if w_max is not None:
        w = np.minimum(w, bound_b(mean, w_max, N, delta))
    below = w < 1
    inside = np.where(below, w, 0.0)
    bound = np.where(below, factor * inside / (factor * inside + 1 - inside), 1.0)
    return Certificate(_plain(bound), _plain(w))


def _mean(mean: Any) -> np.ndarray:
    mean = np.asarray(mean, float)
    _require("mean", mean, (mean >= 0) & np.isfinite(mean), "finite and >= 0: it averages nonnegative numbers")
    return mean


def _count(N: Any) -> np.ndarray:
    N = np.asarray(N, float)
    _require("N", N, N >= 1, ">= 1 independent terms")
    return N


def _log(delta: Any) -> np.ndarray:
    """log(1/delta)."""
    delta = np.asarray(delta, float)
    _require("delta", delta, (delta > 0) & (delta < 1), "> 0 and < 1")
    return -np.log(delta)


def _require(name: str, value: np.ndarray, holds: Any, domain: str) -> None:
    """NaN fails every comparison, and so is refused here too."""
    if not np.all(holds):
        raise InputError(f"{name} must be {domain}; got {value}")


def _plain(array: Any) -> Any:
    """A Python float where no array went in."""
    return float(array) if np.ndim(array) == 0 else array
