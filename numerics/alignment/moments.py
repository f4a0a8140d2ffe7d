"""Mean, variance and Gaussian cumulants of the alignment, exact for rational input and certified at any digits."""

from __future__ import annotations

from typing import Any

from ..certified import certified
from ..evaluate import evaluates
from ..value import Value
from .sample import broadcast, inner, quadratic, reciprocal, trace_product

__all__ = ["fourth_cumulant", "mean", "third_cumulant", "variance", "variance_words"]


def variance_words(M: Any, K: Any, a: list[Any], S: list[Any], b: list[Any], T: list[Any]) -> tuple[Any, Any]:
    """(E X, Var X) over any field: a'b and b'Sb/M + a'Ta/K + tr(ST)/(MK)."""
    over_m, over_k = reciprocal(M), reciprocal(K)
    variance = quadratic(b, S) * over_m + quadratic(a, T) * over_k + trace_product(S, T) * (over_m * over_k)
    return inner(a, b), variance


def _times(matrix: list[Any], vector: list[Any]) -> list[Any]:
    if isinstance(matrix[0], list):
        return [inner(row, vector) for row in matrix]
    return [c * x for c, x in zip(matrix, vector, strict=True)]


@evaluates("alignment.mean")
def mean(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """E X = a'b, the inner product of the two mean gradients. Exact for rational input.

    Source: seed 000. R14's laws, a = (1, 2) and b = (2, 1):

    >>> from numerics import predict
    >>> float(predict("alignment.mean", {"mu": "1,2", "mu_test": "2,1", "Sigma": "1", "M": 3, "K": 7}))
    4.0
    """
    a, _, b, _ = broadcast(mu, Sigma, mu_test, Sigma_test)
    return certified(inner, a, b, digits=digits)


@evaluates("alignment.variance")
def variance(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """Var X = b'Sb/M + a'Ta/K + tr(ST)/(MK), for any laws with second moments. Exact for rational input.

    Sigma is per sample. Source: seed 000. Reference R1:

    >>> from numerics import predict
    >>> predict("alignment.variance", {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}, digits=18).value
    Value(0.911458333333333333 +/- 3.34e-19, ball)
    """
    a, S, b, T = broadcast(mu, Sigma, mu_test, Sigma_test)
    return certified(lambda *words: variance_words(*words)[1], M, K, a, S, b, T, digits=digits)


@evaluates("alignment.third_cumulant")
def third_cumulant(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """kappa_3(X) = 6 b'STa/(MK) for Gaussian gradients. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.third_cumulant", {"mu": 1, "Sigma": 1, "M": 1, "K": 3}).value
    Value(2, exact)
    """

    def formula(m: Any, k: Any, a: Any, S: Any, b: Any, T: Any) -> Any:
        return 6 * inner(_times(S, b), _times(T, a)) * reciprocal(m) * reciprocal(k)

    return certified(formula, M, K, *broadcast(mu, Sigma, mu_test, Sigma_test), digits=digits)


@evaluates("alignment.fourth_cumulant")
def fourth_cumulant(
    mu: Any, Sigma: Any, M: Any, K: Any, mu_test: Any = None, Sigma_test: Any = None, *, digits: int = 15
) -> Value:
    """kappa_4(X) = 12 b'STSb/(M^2 K) + 12 a'TSTa/(M K^2) + 6 tr((ST)^2)/(MK)^2 for Gaussian gradients. Derived here.

    Reference R8:

    >>> from numerics import predict
    >>> predict("alignment.fourth_cumulant", {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}).value
    Value(1.31251808449074 +/- 7.41e-16, ball)
    """

    def formula(m: Any, k: Any, a: Any, S: Any, b: Any, T: Any) -> Any:
        over_m, over_k = reciprocal(m), reciprocal(k)
        Sb, Ta = _times(S, b), _times(T, a)
        first = 12 * quadratic(Sb, T) * over_m * over_m * over_k
        second = 12 * quadratic(Ta, S) * over_m * over_k * over_k
        return first + second + 6 * _trace_of_square(S, T) * (over_m * over_k) * (over_m * over_k)

    return certified(formula, M, K, *broadcast(mu, Sigma, mu_test, Sigma_test), digits=digits)


def _trace_of_square(S: list[Any], T: list[Any]) -> Any:
    """tr((ST)^2) = sum_ij (ST)_ij (ST)_ji."""
    if not isinstance(S[0], list) and not isinstance(T[0], list):
        product = [s * t for s, t in zip(S, T, strict=True)]
        return inner(product, product)
    if not isinstance(S[0], list):  # tr(STST) = tr(TSTS): let the full one stand first
        S, T = T, S
    product = [_row(row, T) for row in S]
    transposed = [list(column) for column in zip(*product, strict=True)]
    return inner([x for row in product for x in row], [x for row in transposed for x in row])


def _row(row: list[Any], T: list[Any]) -> list[Any]:
    if isinstance(T[0], list):
        return [inner(row, column) for column in T]  # T is symmetric: its rows are its columns
    return [x * t for x, t in zip(row, T, strict=True)]
