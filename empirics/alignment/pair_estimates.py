"""Unbiased estimates from sums over pairs of gradients.

Whatever the alignment certificate needs depends on the law of the kernel k(x, x') = q.q' of two independent samples
only. Its moments are estimated without bias by averages over *distinct* indices, which are functions of a few sums of
the Gram matrix without its diagonal (one law), or of the matrix of train against test gradients (two laws).

Notation: q_1..q_n have mean mu (a) and covariance Sigma (S), the test gradients p_1..p_m mean b and covariance T; mu_M
is the mean of M of the former, g_K the mean of K of the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BlockMeans", "CrossSums", "GramSums"]


class _PairEstimates:
    """What follows from the five estimates alone, whichever sums they came from."""

    mean_squared: Any
    mean_fourth: Any
    quadratic: Any
    quadratic_test: Any
    trace_squared: Any

    def variance(self, M: float, K: float) -> Any:
        """Var(mu_M . g_K) = b'Sb/M + a'Ta/K + tr(ST)/(MK) for independent samples of sizes M and K.

        With one law for train and test: (1/M + 1/K) mu' Sigma mu + tr(Sigma^2)/(MK).
        """
        return self.quadratic / M + self.quadratic_test / K + self.trace_squared / (M * K)

    @property
    def parallel(self) -> Any:
        """The larger of b'Sb and a'Ta: the noise along the mean that d_parallel divides by."""
        return np.maximum(self.quadratic, self.quadratic_test)

    @property
    def align(self) -> Any:
        """The larger of that and tr(ST): d_align = (a.b)^2/align."""
        return np.maximum(self.parallel, self.trace_squared)

    def pool_variance(self, M: float, K: float) -> Any:
        """Variance of mu_M . g_K over subsets drawn without replacement from the gradients at hand: an identity.

        The subsets are disjoint where train and test gradients come from one pool. It is `variance` less U1^2 - C,
        U1 = `mean_squared` and C = `mean_fourth`: the mean over subsets is U1, whose own error resampling cannot see.
        """
        return self.variance(M, K) - (self.mean_squared * self.mean_squared - self.mean_fourth)


@dataclass(frozen=True)
class GramSums(_PairEstimates):
    """Sums of the n x n Gram matrix G = Q Q' with its diagonal set to zero, and the U-statistics that they give.

    s1 = sum_ij G_ij, s2 = sum_ij G_ij^2, s3 = sum_i (sum_j G_ij)^2, and f1 = sum_i |q_i|^2, the diagonal itself;
    numbers, or arrays for many samples at once (all of size n >= 4). Each estimate is an average over distinct indices,
    hence unbiased for every law with the moments it names; ratios formed from them are consistent only.

    Source: notes on alignment, section 4.

    >>> s = GramSums(4, s1=12, s2=12, s3=36, f1=4)          # four equal gradients of length one
    >>> s.mean_squared, s.mean_fourth, s.quadratic, s.trace_squared, s.trace
    (1.0, 1.0, 0.0, 0.0, 0.0)
    """

    n: int
    s1: Any
    s2: Any
    s3: Any
    f1: Any

    @property
    def mean_squared(self) -> Any:
        """||mu||^2: the mean of q_i.q_j over i != j. Negative by chance when the mean is small."""
        return self.s1 / (self.n * (self.n - 1))

    @property
    def mean_fourth(self) -> Any:
        """||mu||^4: the mean of (q_i.q_j)(q_k.q_l) over four distinct indices; not the square of `mean_squared`."""
        n = self.n
        return (self.s1 * self.s1 - 4 * self.s3 + 2 * self.s2) / (n * (n - 1) * (n - 2) * (n - 3))

    @property
    def _shared(self) -> Any:
        n = self.n
        return (self.s3 - self.s2) / (n * (n - 1) * (n - 2))

    @property
    def quadratic(self) -> Any:
        """mu' Sigma mu."""
        return self._shared - self.mean_fourth

    @property
    def quadratic_test(self) -> Any:
        """The same: train and test gradients have one law here."""
        return self.quadratic

    @property
    def trace_squared(self) -> Any:
        """tr(Sigma^2), not (tr Sigma)^2."""
        return self.s2 / (self.n * (self.n - 1)) - 2 * self._shared + self.mean_fourth

    @property
    def trace(self) -> Any:
        """tr Sigma, the sum of the variances with n - 1 in the denominator."""
        return self.f1 / self.n - self.mean_squared

    def mean_variance(self) -> Any:
        """Var(`mean_squared`) = 4 mu' Sigma mu/n + 2 tr(Sigma^2)/(n(n-1)), negative estimates counted as 0."""
        v, t2 = np.maximum(self.quadratic, 0), np.maximum(self.trace_squared, 0)
        return 4 * v / self.n + 2 * t2 / (self.n * (self.n - 1))


@dataclass(frozen=True)
class CrossSums(_PairEstimates):
    """Sums of the n x m matrix H = Q P' of train against test gradients, and the estimates that they give.

    s = sum_ij H_ij, ss = sum_ij H_ij^2, rr the squared row sums added up, cc the squared column sums. n, m >= 2. The
    estimates are unbiased: rho = a.b is `mean_squared`, rho^2 `mean_fourth`, b'Sb `quadratic` (train noise seen along
    the test mean), a'Ta `quadratic_test`, tr(ST) `trace_squared`.

    Source: notes on alignment, section 4.

    >>> CrossSums(2, 3, 6, 12, 18, 6).mean_squared
    1.0
    """

    n: int
    m: int
    s: Any
    rr: Any
    cc: Any
    ss: Any

    @property
    def mean_squared(self) -> Any:
        """rho = a.b, the mean of all entries."""
        return self.s / (self.n * self.m)

    @property
    def mean_fourth(self) -> Any:
        """rho^2: the mean of H_ij H_kl over i != k and j != l."""
        n, m = self.n, self.m
        return (self.s * self.s - self.rr - self.cc + self.ss) / (n * (n - 1) * m * (m - 1))

    @property
    def quadratic(self) -> Any:
        """b'Sb, from pairs in one row (one train gradient, two test gradients)."""
        return (self.rr - self.ss) / (self.n * self.m * (self.m - 1)) - self.mean_fourth

    @property
    def quadratic_test(self) -> Any:
        """a'Ta, from pairs in one column (two train gradients, one test gradient)."""
        return (self.cc - self.ss) / (self.n * (self.n - 1) * self.m) - self.mean_fourth

    @property
    def trace_squared(self) -> Any:
        """tr(ST)."""
        return self.ss / (self.n * self.m) - self.quadratic - self.quadratic_test - self.mean_fourth

    def mean_variance(self) -> Any:
        """Var(`mean_squared`) = b'Sb/n + a'Ta/m + tr(ST)/(nm); a negative estimate of any of them counts as 0."""
        v, w, t = (np.maximum(each, 0) for each in (self.quadratic, self.quadratic_test, self.trace_squared))
        return v / self.n + w / self.m + t / (self.n * self.m)


@dataclass(frozen=True)
class BlockMeans(_PairEstimates):
    """The U-statistics of blocks of samples, averaged over blocks: unbiased, mergeable, less precise than the whole."""

    mean_squared: Any
    mean_fourth: Any
    quadratic: Any
    trace_squared: Any
    trace: Any
    variance_of_mean: float

    @property
    def quadratic_test(self) -> Any:
        """The same: train and test gradients have one law here."""
        return self.quadratic

    def mean_variance(self) -> float:
        """Var(`mean_squared`) from the spread of the blocks."""
        return self.variance_of_mean
