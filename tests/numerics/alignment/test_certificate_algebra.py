"""The certificates' algebra: against the lemmas' statements, against exact coverage, and at its edges."""

from math import comb, inf, log, sqrt

import numpy as np
import pytest
from sympy import Float, lambdify

from numerics import predict
from numerics.alignment.certificate import (
    bound_a,
    bound_b,
    cantelli_weight,
    clopper_pearson_upper,
    kurtosis_constant,
    kurtosis_of_mean,
    theorem_c,
    theorem_u,
)
from numerics.inputs import admit
from numerics.statement import evaluate_statement
from theory import InputError, formula
from theory.alignment.lemmas import LEMMAS
from verify.cases import random_inputs

LEMMA = {each.name: each.statement for each in LEMMAS}


def stated(name, **given):
    """A lemma's statement, or a catalogue's, at 30 digits."""
    statement = LEMMA[name] if name in LEMMA else formula(f"alignment.{name}").statement
    point = {each: Float(given[each.name], 30) for each in statement.free_symbols}
    return float(statement.subs(point).evalf(25))


@pytest.mark.parametrize("id", ["alignment.certificate", "alignment.certificate_unconditional"])
def test_two_routes_at_thirty_random_points(id):
    known, rng, worst = formula(id), np.random.default_rng(5), 0.0
    for _ in range(30):
        drawn = random_inputs(known, rng)
        one, other = float(predict(id, drawn)), float(evaluate_statement(known, admit(known, drawn)[0]))
        worst = max(worst, abs(one - other) / other)
    assert worst < 1e-14


@pytest.mark.parametrize(
    ("id", "given", "value"),
    [
        ("certificate", {"w": "1", "k": 4, "K": 8}, "1"),
        ("certificate", {"w": "inf", "k": 4, "K": 8}, "1"),
        ("certificate", {"w": "0", "k": 4, "K": 8}, "0"),
        ("certificate", {"w": "0.5", "k": 4, "K": "inf"}, "0"),
        ("certificate", {"w": "0.2", "k": 1, "K": 1}, "0.2"),
        ("certificate_unconditional", {"w": "0.2", "m": 3, "M": 3, "K": 3}, "0.2"),
        ("certificate_unconditional", {"w": "0.5", "m": 2, "M": 1, "K": 1}, "0.8"),
        ("certificate_unconditional", {"w": "0.5", "m": 2, "M": "inf", "K": 2}, "0.333333333333333"),
        ("certificate_unconditional", {"w": "0.5", "m": 2, "M": "inf", "K": "inf"}, "0"),
        ("certificate_unconditional", {"w": "2", "m": 2, "M": "inf", "K": "inf"}, "1"),
    ],
)
def test_edges_of_the_catalogue(id, given, value):
    assert predict(f"alignment.{id}", given).to_dict()["value"] == value


def test_lemmas_by_two_routes():
    rng = np.random.default_rng(9)
    for _ in range(30):
        mean, kap, w_max = rng.uniform(0.1, 2), rng.uniform(1, 4), rng.uniform(3, 9)
        N, delta, kurtosis, k = (
            int(rng.integers(60, 500)),
            rng.uniform(0.02, 0.5),
            rng.uniform(1, 12),
            int(rng.integers(1, 40)),
        )
        tail = {"mean": mean, "N": N, "delta": delta}
        assert bound_a(mean, kap, N, delta) == pytest.approx(stated("lemma_2a", kap=kap, **tail), rel=1e-12)
        assert bound_b(mean, w_max, N, delta) == pytest.approx(stated("lemma_2b", w_max=w_max, **tail), rel=1e-13)
        assert kurtosis_constant(kurtosis) == pytest.approx(stated("lemma_3", kurtosis=kurtosis), rel=1e-14)
        assert kurtosis_of_mean(kurtosis, k) == pytest.approx(
            stated("mean_kurtosis", kurtosis=kurtosis, k=k), rel=1e-14
        )


def test_theorem_c_is_the_chain_of_its_lemmas():
    rng = np.random.default_rng(10)
    for _ in range(20):
        n, k, K = int(rng.integers(2000, 9000)), int(rng.integers(1, 20)), int(rng.integers(1, 200))
        yb, s2, lam, delta, k0 = (
            1.0,
            rng.uniform(0.1, 4),
            rng.uniform(0.3, 1),
            rng.uniform(0.02, 0.5),
            rng.uniform(2, 9),
        )
        mean = stated("pilot_statistic", lam=lam, yb=yb, s2=s2, n=n, k=k)
        kap = stated("lemma_3", kurtosis=stated("mean_kurtosis", kurtosis=k0, k=k))
        w_max = (1 + lam * 9) ** 2
        one = stated("lemma_2a", mean=mean, kap=kap, N=n // k, delta=delta)
        other = stated("lemma_2b", mean=mean, w_max=w_max, N=n // k, delta=delta)
        for given, w in (
            ({"kurtosis": k0}, one),
            ({"w_max": w_max}, other),
            ({"kurtosis": k0, "w_max": w_max}, min(one, other)),
        ):
            seen = theorem_c(yb, s2, n, k, K, lam, delta, **given)
            assert seen.w == pytest.approx(w, rel=1e-11)
            expected = stated("certificate", w=w, k=k, K=K) if w < 1 else 1.0
            assert seen.bound == pytest.approx(expected, rel=1e-10)


def test_theorem_u_is_the_chain_of_its_lemmas():
    rng = np.random.default_rng(12)
    for _ in range(20):
        n, m, M, K = int(rng.integers(4000, 9000)), *(int(each) for each in rng.integers(1, 40, 3))
        U1, lam, delta = 1.0, rng.uniform(0.3, 1), rng.uniform(0.02, 0.5)
        C, B, A = 1.0, 1 + rng.uniform(0, 2), 4 + rng.uniform(0, 4)
        mean = stated("pair_statistic", lam=lam, U1=U1, A=A, B=B, C=C, m=m)
        w = stated("lemma_2a", mean=mean, kap=16, N=n // (2 * m), delta=delta)
        seen = theorem_u(U1, A, B, C, n, m, M, K, lam, delta, kurtosis=9.0)
        assert seen.w == pytest.approx(w, rel=1e-10)
        expected = stated("certificate_unconditional", w=w, m=m, M=M, K=K) if w < 1 else 1.0
        assert seen.bound == pytest.approx(expected, rel=1e-9)


def binomial_coverage(bound, p, N):
    """The probability that `bound` of the mean of N Bernoulli(p) falls below p: by summing the binomial law."""
    chances = np.array([comb(N, hits) * p**hits * (1 - p) ** (N - hits) for hits in range(N + 1)])
    return chances[bound(np.arange(N + 1) / N) < p * (1 - 1e-12)].sum()


@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_lemma_2_covers_exactly_and_a_smaller_logarithm_does_not(delta):
    """Bernoulli W: E W^2 = E W, so kap = 1/p and w_max = 1 are sharp. A sixth of log(1/delta) undercovers somewhere."""
    N, worst_of_mutant = 60, 0.0
    for p in np.linspace(0.05, 0.95, 37):
        for bound in (
            lambda mean, d, p=p: bound_a(mean, 1 / p, N, d),
            lambda mean, d: bound_b(mean, 1.0, N, d),
        ):
            assert binomial_coverage(lambda mean, bound=bound: bound(mean, delta), p, N) <= delta
            mutant = binomial_coverage(lambda mean, bound=bound: bound(mean, delta ** (1 / 6)), p, N)
            worst_of_mutant = max(worst_of_mutant, mutant)
    assert worst_of_mutant > delta


def pilots(rng, draws, n, mean, sd):
    """Means and unbiased variances of normal pilots, from their own exact laws."""
    return mean + sd / sqrt(n) * rng.standard_normal(draws), sd**2 * rng.chisquare(n - 1, draws) / (n - 1)


def test_theorem_c_undercovers_with_probability_at_most_delta_and_its_mutants_more():
    """100,000 normal pilots at once. The plug-in, w = its mean, undercovers half of the time; so does k/K forgotten."""
    draws, n, k, K, sd, delta = 100_000, 4000, 16, 64, 2.0, 0.05
    truth = (sd**2 / K) / (sd**2 / K + 1)
    yb, s2 = pilots(np.random.default_rng(1), draws, n, 1.0, sd)
    lam = cantelli_weight(1.0, sd**2 / k)
    seen = theorem_c(yb, s2, n, k, K, lam, delta, kurtosis=3.0)
    assert np.mean(seen.bound < truth) <= delta
    assert np.mean(seen.bound < 1) > 0.5, "a bound that is always 1 would pass"
    plug_in = theorem_c(yb, s2, n, k, K, lam, 1 - 1e-12, kurtosis=3.0)
    assert np.mean(plug_in.bound < truth) > 0.3
    unscaled = theorem_c(yb, s2, n, k, 16 * K, lam, delta, kurtosis=3.0)
    assert np.mean(unscaled.bound < truth) > 0.3


def test_an_understated_kurtosis_breaks_the_certificate():
    """y = 1 but for a rare outlier of -L: pilots without one see no noise at all. Its true kurtosis keeps the promise."""
    n, k, K, p, low, delta = 200, 4, 4, 0.004, -60.0, 0.05
    mean = (1 - p) + p * low
    variance = p * (1 - p) * (1 - low) ** 2
    kurtosis = (1 - 3 * p * (1 - p)) / (p * (1 - p))
    truth = variance / K / (variance / K + mean**2)
    hits = np.random.default_rng(2).binomial(n, p, 20_000)
    yb = 1 - hits / n * (1 - low)
    s2 = hits * (n - hits) / (n * (n - 1)) * (1 - low) ** 2
    honest = theorem_c(yb, s2, n, k, K, 0.9, delta, kurtosis=kurtosis)
    broken = theorem_c(yb, s2, n, k, K, 0.9, delta, kurtosis=1.5)
    assert np.mean(honest.bound < truth) <= delta
    assert np.mean(broken.bound < truth) > 4 * delta


def test_cantelli_weight_minimises_and_gives_bound_exact():
    lam = cantelli_weight(1.25, 0.75)
    means = [1 - 2 * each * 1.25 + each**2 * (0.75 + 1.25**2) for each in (lam, 0.9 * lam, 1.1 * lam, 0.0)]
    assert means[0] == min(means) == pytest.approx(0.75 / (0.75 + 1.25**2))
    assert list(cantelli_weight([-1.0, 0.0, 2.0], [1.0, 0.0, 0.0])) == [0.0, 0.0, 0.5]


@pytest.mark.parametrize(("failures", "groups"), [(0, 1), (0, 40), (1, 40), (7, 40), (39, 40)])
def test_clopper_pearson_is_the_binomial_tail_inverted(failures, groups):
    for delta in (0.3, 0.05, 1e-9):
        p = clopper_pearson_upper(failures, groups, delta)
        tail = sum(comb(groups, hits) * p**hits * (1 - p) ** (groups - hits) for hits in range(failures + 1))
        assert tail == pytest.approx(delta, rel=1e-8)
    assert clopper_pearson_upper(groups, groups, 0.05) == 1.0


def test_clopper_pearson_without_failures_has_its_closed_form():
    assert clopper_pearson_upper(0, 100, 0.05) == pytest.approx(1 - 0.05**0.01, rel=1e-12)
    assert clopper_pearson_upper(np.array([0, 3]), 100, 0.05).shape == (2,)


def test_too_few_draws_certify_nothing():
    """N <= 2 kap log(1/delta): no finite bound, so the certificate is 1; an infinite kurtosis or norm likewise."""
    N = int(2 * 16 * log(20))
    assert bound_a(0.1, 16.0, N, 0.05) == inf
    assert bound_a(0.1, 16.0, N + 2, 0.05) < inf
    assert theorem_c(1.0, 1.0, 90, 1, 8, 0.5, 0.05, kurtosis=9.0).bound == 1.0
    assert theorem_c(1.0, 1.0, 90, 1, 8, 0.5, 0.05, kurtosis=inf).bound == 1.0
    assert theorem_c(1.0, 1.0, 90, 1, 8, 0.5, 0.05, w_max=inf).bound == 1.0


def test_no_weight_certifies_nothing():
    """lam = 0 makes W = 1, whose mean is known to be 1 and is bounded by more."""
    seen = theorem_c(1.0, 1.0, 9000, 1, 8, 0.0, 0.05, kurtosis=3.0)
    assert seen.bound == 1.0
    assert seen.w == pytest.approx(1 / (1 - sqrt(2 * (1 + sqrt(3)) ** 2 * log(20) / 9000)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theorem_c(1, 1, 100, 4, 8, 0.5, 0.05), ["assumption", "kurtosis", "w_max", "clipping"]),
        (lambda: theorem_u(1, 2, 1, 1, 100, 4, 8, 8, 0.5, 0.05), ["assumption", "kurtosis", "w_max"]),
        (lambda: theorem_c(1, 1, 100, 101, 8, 0.5, 0.05, kurtosis=3), ["k must be at most n = 100", "101"]),
        (lambda: theorem_c(1, -1, 100, 4, 8, 0.5, 0.05, kurtosis=3), ["s2", ">= 0"]),
        (lambda: theorem_c(1, 1, 100, 4, 8, -0.5, 0.05, kurtosis=3), ["lam", ">= 0"]),
        (lambda: theorem_c(1, 1, 100, 4, 8, 0.5, 1.0, kurtosis=3), ["delta", "< 1"]),
        (lambda: theorem_c(float("nan"), 1, 100, 4, 8, 0.5, 0.05, kurtosis=3), ["mean", "nan"]),
        (lambda: theorem_c(1, 1, 100, 4, 8, 0.5, 0.05, kurtosis=0.9), ["kurtosis", ">= 1"]),
        (lambda: theorem_c(30, 1, 100, 4, 8, 0.5, 0.05, w_max=4), ["at most w_max", "largest W"]),
        (lambda: theorem_u(1, 2, 1, 1, 100, 51, 8, 8, 0.5, 0.05, kurtosis=9), ["m must be", "n/2"]),
        (lambda: theorem_u(9, 0, 0, 0, 100, 4, 8, 8, 0.5, 0.05, kurtosis=9), ["of one sample"]),
        (lambda: bound_a(1, 0.5, 100, 0.05), ["kap", ">= 1"]),
        (lambda: bound_a(1, 2, 0, 0.05), ["N", "independent terms"]),
        (lambda: cantelli_weight(1, -1), ["variance", ">= 0"]),
        (lambda: kurtosis_of_mean(3, 0), ["k must be", ">= 1"]),
        (lambda: clopper_pearson_upper(5, 4, 0.05), ["failures", "groups = 4"]),
        (lambda: clopper_pearson_upper(0, 0, 0.05), ["groups", ">= 1"]),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InputError) as refusal:
        call()
    for word in words:
        assert word in str(refusal.value), str(refusal.value)


def test_arrays_in_arrays_out_and_inputs_untouched():
    yb, s2 = np.array([0.5, 1.0, 1.5]), np.array([1.0, 1.0, 2.0])
    before = yb.copy(), s2.copy()
    seen = theorem_c(yb, s2, 4000, 8, 32, 0.6, 0.05, kurtosis=3.0)
    singles = [
        theorem_c(float(a), float(b), 4000, 8, 32, 0.6, 0.05, kurtosis=3.0).bound for a, b in zip(yb, s2, strict=True)
    ]
    assert seen.bound.tolist() == singles
    assert isinstance(singles[0], float)
    assert np.array_equal(yb, before[0])
    assert np.array_equal(s2, before[1])


def test_lambdified_statement_is_the_same_certificate():
    """A third route through NumPy: the Piecewise of the statement at the pilot's own w."""
    statement = formula("alignment.certificate").statement
    symbols = sorted(statement.free_symbols, key=str)
    function = lambdify(symbols, statement)
    seen = theorem_c(1.0, 2.0, 5000, 8, 32, 0.7, 0.05, kurtosis=4.0)
    given = {"w": seen.w, "k": 8, "K": 32}
    assert float(function(*(given[each.name] for each in symbols))) == pytest.approx(seen.bound, rel=1e-13)
