"""Unbiasedness and the finite-pool identity, by exact enumeration in rational numbers: no tolerance, no draws."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import pytest

from empirics.alignment import CrossSums, GramSums

F = Fraction
# Skew laws on three points of the plane whose means are no eigenvectors of their covariances.
TRAIN = {(F(2), F(1)): F(1, 2), (F(-1), F(3)): F(1, 3), (F(0), F(-2)): F(1, 6)}
TEST = {(F(1), F(0)): F(1, 4), (F(3), F(-1)): F(1, 4), (F(-1), F(5)): F(1, 2)}


def dot(u, v):
    return sum(x * y for x, y in zip(u, v, strict=True))


def mean_and_covariance(law):
    mean = [sum(p * q[a] for q, p in law.items()) for a in range(2)]
    covariance = [
        [sum(p * (q[a] - mean[a]) * (q[b] - mean[b]) for q, p in law.items()) for b in range(2)] for a in range(2)
    ]
    return mean, covariance


def form(v, S, w):
    return sum(v[a] * S[a][b] * w[b] for a in range(2) for b in range(2))


def trace_of_product(S, T):
    return sum(S[a][b] * T[b][a] for a in range(2) for b in range(2))


def gram_sums(sample):
    G = [[dot(u, v) if i != j else F(0) for j, v in enumerate(sample)] for i, u in enumerate(sample)]
    r = [sum(row) for row in G]
    squares = sum(x * x for row in G for x in row)
    return GramSums(len(sample), sum(r), squares, dot(r, r), sum(dot(q, q) for q in sample))


def cross_sums(train, test):
    H = [[dot(u, v) for v in test] for u in train]
    r, c = [sum(row) for row in H], [sum(column) for column in zip(*H, strict=True)]
    return CrossSums(len(train), len(test), sum(r), dot(r, r), dot(c, c), sum(x * x for row in H for x in row))


def samples(law, n):
    for points in product(law, repeat=n):
        yield points, prod(law[q] for q in points)


def expectation(values):
    return sum(p * value for value, p in values)


@pytest.mark.parametrize("n", [4, 5])
def test_every_estimate_of_one_law_is_unbiased(n):
    mu, Sigma = mean_and_covariance(TRAIN)
    E = dot(mu, mu)
    sums = [(gram_sums(sample), p) for sample, p in samples(TRAIN, n)]
    truth = {
        "mean_squared": E,
        "mean_fourth": E * E,
        "quadratic": form(mu, Sigma, mu),
        "trace_squared": trace_of_product(Sigma, Sigma),
        "trace": Sigma[0][0] + Sigma[1][1],
    }
    assert {name: expectation((getattr(s, name), p) for s, p in sums) for name in truth} == truth
    assert truth["trace_squared"] != truth["trace"] ** 2


def test_the_plug_in_is_biased():
    # E |m|^2 = E + tr Sigma/n: the test above would notice it.
    mu, Sigma = mean_and_covariance(TRAIN)
    n = 4
    means = (([sum(x) / n for x in zip(*sample, strict=True)], p) for sample, p in samples(TRAIN, n))
    plug_in = expectation((dot(m, m), p) for m, p in means)
    assert plug_in == dot(mu, mu) + (Sigma[0][0] + Sigma[1][1]) / n
    assert plug_in > dot(mu, mu)


def test_every_estimate_of_two_laws_is_unbiased():
    a, S = mean_and_covariance(TRAIN)
    b, T = mean_and_covariance(TEST)
    sums = [(cross_sums(u, v), p * r) for u, p in samples(TRAIN, 2) for v, r in samples(TEST, 3)]
    truth = {
        "mean_squared": dot(a, b),
        "mean_fourth": dot(a, b) ** 2,
        "quadratic": form(b, S, b),
        "quadratic_test": form(a, T, a),
        "trace_squared": trace_of_product(S, T),
    }
    assert {name: expectation((getattr(s, name), p) for s, p in sums) for name in truth} == truth
    assert truth["quadratic"] != truth["quadratic_test"]


def test_variance_of_the_mean_squared():
    # Var(U1) over all samples of 4 is 4 v/n + 2 t2/(n(n-1)) in the truth's v and t2.
    n = 4
    mu, Sigma = mean_and_covariance(TRAIN)
    u = [(gram_sums(sample).mean_squared, p) for sample, p in samples(TRAIN, n)]
    variance = expectation((x * x, p) for x, p in u) - expectation(u) ** 2
    v, t2 = form(mu, Sigma, mu), trace_of_product(Sigma, Sigma)
    assert variance == 4 * v / n + 2 * t2 / (n * (n - 1))
    # ... and `mean_variance` puts the estimates there, where they are positive.
    s = gram_sums([(F(1), F(0)), (F(2), F(1)), (F(0), F(3)), (F(5), F(2)), (F(1), F(1))])
    assert s.quadratic > 0
    assert s.trace_squared > 0
    assert s.mean_variance() == 4 * s.quadratic / 5 + 2 * s.trace_squared / 20


def test_variance_of_the_cross_mean():
    a, S = mean_and_covariance(TRAIN)
    b, T = mean_and_covariance(TEST)
    u = [(cross_sums(x, y).mean_squared, p * r) for x, p in samples(TRAIN, 2) for y, r in samples(TEST, 3)]
    variance = expectation((x * x, p) for x, p in u) - expectation(u) ** 2
    assert variance == form(b, S, b) / 2 + form(a, T, a) / 3 + trace_of_product(S, T) / 6
    s = cross_sums([(F(1), F(2)), (F(4), F(0)), (F(0), F(1))], [(F(3), F(1)), (F(1), F(5)), (F(9), F(1)), (F(2), F(2))])
    assert min(s.quadratic, s.quadratic_test, s.trace_squared) > 0
    assert s.mean_variance() == s.quadratic / 3 + s.quadratic_test / 4 + s.trace_squared / 12


def test_negative_estimates_count_as_zero_in_the_variance():
    s = CrossSums(2, 2, 0, 0, 0, 4)
    assert (s.quadratic, s.quadratic_test, s.trace_squared, s.mean_variance()) == (-2, -2, 4, 1)
    s = GramSums(4, 0, 12, 0, 4)
    assert (s.quadratic, s.trace_squared, s.mean_variance()) == (-1.5, 3, 0.5)


POOL = [(F(1), F(2)), (F(0), F(-3)), (F(4), F(1)), (F(-2), F(2)), (F(1), F(1)), (F(3), F(-1)), (F(0), F(5))]
OTHERS = [(F(2), F(0)), (F(-1), F(1)), (F(3), F(3)), (F(0), F(-4)), (F(1), F(6)), (F(5), F(5))]


def mean_of(points):
    return [sum(x) / len(points) for x in zip(*points, strict=True)]


def mean_and_variance(values):
    mean = sum(values) / len(values)
    return mean, sum(x * x for x in values) / len(values) - mean**2


def disjoint_products(pool, M, K):
    for train in combinations(range(len(pool)), M):
        rest = [i for i in range(len(pool)) if i not in train]
        for test in combinations(rest, K):
            yield dot(mean_of([pool[i] for i in train]), mean_of([pool[i] for i in test]))


@pytest.mark.parametrize(("M", "K"), [(2, 3), (1, 1), (4, 3), (1, 5)])
def test_finite_pool_identity(M, K):
    s = gram_sums(POOL)
    assert (s.mean_squared, s.pool_variance(F(M), F(K))) == mean_and_variance(list(disjoint_products(POOL, M, K)))
    assert s.variance(F(M), F(K)) != s.pool_variance(F(M), F(K))


@pytest.mark.parametrize(("M", "K"), [(2, 3), (1, 6), (7, 1)])
def test_finite_pool_identity_across_two_pools(M, K):
    s = cross_sums(POOL, OTHERS)
    products = [
        dot(mean_of(train), mean_of(test)) for train in combinations(POOL, M) for test in combinations(OTHERS, K)
    ]
    assert (s.mean_squared, s.pool_variance(F(M), F(K))) == mean_and_variance(products)
    if M != K:
        assert s.pool_variance(F(K), F(M)) != s.pool_variance(F(M), F(K))
