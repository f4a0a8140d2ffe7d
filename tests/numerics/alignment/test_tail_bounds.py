"""Bounds and approximations: reference numbers, second routes, their order, their limits."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from numerics import admit, predict
from numerics.alignment.gaussian import BilinearGaussian, probability
from numerics.alignment.tail_bounds import (
    bernstein,
    bernstein_bound,
    chernoff,
    chernoff_bound,
    clt,
    edgeworth,
    edgeworth_expansion,
    lugannani_rice,
)
from theory import formula

THREE = {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}
TWO_LAWS = {"mu": "1,2", "mu_test": "2,1", "Sigma": "2,1;1,3", "Sigma_test": "1,-1/2;-1/2,2", "M": 3, "K": 7}
EVALUATORS = [chernoff_bound, bernstein_bound, edgeworth_expansion]


def evaluate(function, inputs, digits=15):
    return function(**admit(formula("alignment.variance"), inputs)[0], digits=digits)


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (chernoff_bound, "0.402166908203832218"),  # R5
        (bernstein_bound, "0.601412288024467274"),  # R6
        (edgeworth_expansion, "0.0648572676659041070"),  # R7
    ],
)
def test_references(function, reference):
    assert evaluate(function, THREE, 18).to_dict()["value"] == reference
    shown = evaluate(function, THREE)
    assert shown.contains(Fraction(reference))
    assert float(shown) == pytest.approx(float(reference), rel=2e-15)


@pytest.mark.parametrize("function", EVALUATORS)
def test_two_precisions(function):
    fine = Fraction(evaluate(function, TWO_LAWS, 50).midpoint)
    for digits in (15, 16, 30):
        shown = evaluate(function, TWO_LAWS, digits)
        assert shown.kind == "estimate"
        assert shown.contains(fine)
        assert Fraction(shown.radius) < abs(fine) * 10 ** (2 - min(digits, 15))


def test_chernoff_by_golden_section_on_the_determinant():
    """min over s of s m'Q(I - 2s Omega Q)^-1 m - log det(I - 2s Omega Q)/2, the joint normal law of (U, V)."""
    with mpmath.workdps(40):
        S, T = mpmath.matrix([[2, 1], [1, 3]]) / 3, mpmath.matrix([[1, -0.5], [-0.5, 2]]) / 7
        core, m = mpmath.zeros(4), mpmath.matrix([1, 2, 2, 1])
        core[:2, 2:], core[2:, :2] = S, T  # Omega times the exchange of U and V, which is 2Q

        def exponent(s):
            inverse = (mpmath.eye(4) - s * core) ** -1
            half = inverse * m
            exchanged = mpmath.matrix([m[2], m[3], m[0], m[1]])
            return s * (exchanged.T * half)[0] / 2 - mpmath.log(mpmath.det(mpmath.eye(4) - s * core)) / 2

        low, high, golden = mpmath.mpf(-1), mpmath.mpf(0), (mpmath.sqrt(5) - 1) / 2
        for _ in range(90):
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if exponent(left) < exponent(right) else (left, high)
        expected = mpmath.exp(exponent((low + high) / 2))
        assert abs(expected - mpmath.mpf(str(evaluate(chernoff_bound, TWO_LAWS, 30).midpoint))) < mpmath.mpf(10) ** -28


def test_bernstein_from_its_words():
    """exp(-E^2/(2(V + DE))), D the root of the largest eigenvalue of ST over sqrt(MK)."""
    S, T = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, -0.5], [-0.5, 2.0]])
    D = math.sqrt(max(np.linalg.eigvals(S @ T).real) / 21)
    expected = math.exp(-(4**2) / (2 * (19 / 3 + 4 * D)))
    assert float(evaluate(bernstein_bound, TWO_LAWS)) == pytest.approx(expected, rel=1e-14)
    assert bernstein(4.0, 19 / 3, D) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("inputs", [THREE, TWO_LAWS])
def test_edgeworth_from_the_certified_cumulants(inputs):
    names = ("mean", "variance", "third_cumulant", "fourth_cumulant")
    cumulants = [float(predict(f"alignment.{name}", inputs)) for name in names]
    assert edgeworth(*cumulants) == pytest.approx(float(evaluate(edgeworth_expansion, inputs)), rel=1e-13)


def test_edgeworth_terms():
    """The terms by numerical Fourier inversion of phi(t)[1 + g(it)^3/6 + l(it)^4/24 + g^2(it)^6/72]."""
    mean, variance, third, fourth = 0.7, 1.3, 0.4, -0.5
    sd = math.sqrt(variance)
    g, lam, x = third / sd**3, fourth / sd**4, -mean / sd
    t = np.linspace(-12, 12, 200_001)
    # Integrated over (-inf, x]: the terms are divided by -it, and the first one is Phi.
    terms = g * (1j * t) ** 3 / 6 + lam * (1j * t) ** 4 / 24 + g**2 * (1j * t) ** 6 / 72
    odd = np.divide(terms, -1j * t, out=np.zeros_like(terms), where=t != 0)
    integral = np.trapezoid(odd * np.exp(-0.5 * t * t - 1j * t * x), t).real / (2 * math.pi)
    expected = 0.5 * math.erfc(-x / math.sqrt(2)) + integral
    assert edgeworth(mean, variance, third, fourth) == pytest.approx(expected, abs=1e-13)


def random_law(rng, draw):
    """(law, a, S, b, T, M, K) with different, non-commuting laws, every other pair singular, a'b > 0."""
    d = int(rng.integers(2, 6))
    S, T = (factor @ factor.T for factor in (rng.standard_normal((d, d - draw % 2)) for _ in "ST"))
    S, T = (S + S.T) / 2, (T + T.T) / 2
    a = rng.standard_normal(d) * 10 ** rng.uniform(-0.5, 0.7)
    b = a + rng.standard_normal(d)
    b = b if a @ b > 0 else a
    M, K = (int(x) for x in rng.integers(1, 30, 2))
    return BilinearGaussian.of_means(a, S, M, K, b, T), a, S, b, T, M, K


def test_the_order_of_the_bounds():
    """P <= Chernoff <= Bernstein <= 1 and P <= Var/(Var + E^2), training and test laws different; each one strict somewhere."""
    rng, informative = np.random.default_rng(6), 0
    for draw in range(80):
        law, a, S, b, T, M, K = random_law(rng, draw)
        p = probability(law)[0]
        variance = b @ S @ b / M + a @ T @ a / K + np.sum(S * T) / (M * K)
        cantelli = variance / (variance + (a @ b) ** 2)
        upper, relaxed = chernoff(law), bernstein(law.c, law.variance, law.d.max())
        slack = 1 + 1e-12
        assert p <= upper * slack <= relaxed * slack**2 <= slack**3, (draw, p, upper, relaxed)
        assert p <= cantelli * slack, (draw, p, cantelli)
        # Chernoff without its square root of slack, exp(2K), would be below P here.
        informative += upper**2 < p
    assert informative > 10


def test_chernoff_bounds_sub_gaussian_gradients():
    """q = mu + Rademacher signs: Sigma = I is a variance proxy. All sign patterns of M = K = 2 in d = 2 counted."""
    mu = np.array([0.9, 0.4])
    means = [mu + np.mean(np.reshape(signs, (2, 2)), axis=0) for signs in itertools.product((-1, 1), repeat=4)]
    exact = np.mean([u @ v <= 0 for u in means for v in means])
    law = BilinearGaussian.of_means(mu, [1.0, 1.0], 2, 2)
    assert 0 < exact <= chernoff(law) <= bernstein(law.c, law.variance, law.d.max()) < 1


J = np.arange(1.0, 65)
ONES = np.ones(64)
UNIT = np.eye(64)[0]
TABLE = [
    # mean, diagonal, M, K, CLT, Edgeworth, Lugannani-Rice, Chernoff, Bernstein: section 3b of the notes
    (UNIT, ONES, 4, 4, 0.3187, 0.3187, 0.3187, 0.894, 0.900),
    (UNIT, ONES, 16, 16, 0.05124, 0.04794, 0.04796, 0.250, 0.319),
    (UNIT, ONES, 64, 16, 0.00383, 0.002849, 0.002877, 0.0222, 0.0545),
    (8 * UNIT, ONES, 1, 1, 1.9e-6, 2.3e-6, 2.229e-7, 3.0e-6, 3.4e-4),
    (0.7 / np.sqrt(J), 1 / J, 1, 1, 0.0978, 0.0644, 0.0661, 0.420, 0.615),
    (0.7 / np.sqrt(J), 1 / J, 4, 4, 5.1e-4, 1.1e-3, 1.50e-4, 3.5e-3, 0.0824),
    (0.7 / np.sqrt(J), 1 / J, 16, 16, 4.9e-13, 1.2e-10, 1.97e-14, 1.8e-12, 2.2e-5),
]


@pytest.mark.parametrize("row", TABLE)
def test_the_table_of_the_notes(row):
    """To the two to four digits that it prints."""
    mu, Sigma, M, K, *expected = row
    law = BilinearGaussian.of_means(mu, Sigma, M, K)
    series = edgeworth_expansion(mu, Sigma, M, K, digits=15)
    found = [
        clt(law.c, law.variance),
        float(series),
        lugannani_rice(law),
        chernoff(law),
        bernstein(law.c, law.variance, law.d.max()),
    ]
    # Half a unit of the last digit printed, which has a place value of at least 5 % in 1.1e-3.
    assert found == pytest.approx(expected, rel=0.05)
    assert found[:3] == pytest.approx(expected[:3], rel=0.05 if expected[0] < 1e-3 else 2e-3)
    assert lugannani_rice(law) == pytest.approx(probability(law)[0], rel=0.11)


def test_lugannani_rice_near_and_at_zero_mean():
    """The limit Phi + kappa_3/(6 sqrt(2 pi)) at c = 0 joins the formula on both sides of the switch."""
    a = np.array([1.0, 1.0])
    at_zero = lugannani_rice(BilinearGaussian.of_means(a, [1.0, 2.0], 3, 5, [1.0, -1.0]))
    law = BilinearGaussian.of_means(a, [1.0, 2.0], 3, 5, [1.0, -1.0])
    skewness = 6 * float(np.sum(law.u * law.v * law.d)) / law.variance**1.5
    assert at_zero == pytest.approx(0.5 + skewness / (6 * math.sqrt(2 * math.pi)), rel=1e-13)
    for c in (1e-9, 1e-7, 1e-6):
        for sign in (1, -1):
            law = BilinearGaussian.of_means(a, [1.0, 2.0], 3, 5, [1.0, -1.0 + sign * c])
            assert lugannani_rice(law) == pytest.approx(at_zero, abs=2e-7 + c)


def test_lugannani_rice_mirrors():
    for draw in range(5):
        law = random_law(np.random.default_rng(draw), draw)[0]
        mirrored = BilinearGaussian(-law.c, law.u, -law.v, law.d)
        assert lugannani_rice(mirrored) == pytest.approx(1 - lugannani_rice(law), abs=1e-14)


def test_lugannani_rice_is_exact_for_a_normal_law():
    law = BilinearGaussian(1.5, np.array([0.5, 1.0]), np.array([0.25, 0.0]), np.zeros(2))
    assert lugannani_rice(law) == pytest.approx(probability(law)[0], rel=1e-13)
    assert chernoff(law) == pytest.approx(math.exp(-(1.5**2) / (2 * law.variance)), rel=1e-14)


@pytest.mark.parametrize("digits", [15, 25])
@pytest.mark.parametrize(
    ("inputs", "bound", "series"),
    [
        ({"mu": "1,0", "mu_test": "-1,0", "Sigma": "1,1"}, 1, None),
        ({"mu": "0,0", "Sigma": "1,1"}, 1, None),
        ({"mu": "1,0", "Sigma": "0,0"}, 0, 0),
        ({"mu": "0,0", "Sigma": "0,0"}, 1, 1),
        ({"mu": "1,0", "mu_test": "-1,0", "Sigma": "0,0"}, 1, 1),
    ],
)
def test_limits(inputs, bound, series, digits):
    inputs = {"M": 2, "K": 3} | inputs
    assert float(evaluate(chernoff_bound, inputs, digits)) == bound
    assert float(evaluate(bernstein_bound, inputs, digits)) == bound
    if series is not None:
        assert float(evaluate(edgeworth_expansion, inputs, digits)) == series


def test_a_test_mean_without_noise():
    """K = inf: X is normal, Chernoff and Bernstein are exp(-E^2/2V), Edgeworth the normal tail."""
    inputs = {"mu": "1,0.5", "Sigma": "2,1", "M": 3, "K": "inf"}
    energy, variance = 1.25, (2 * 1 + 1 * 0.25) / 3
    for digits in (15, 20):
        for function in (chernoff_bound, bernstein_bound):
            assert float(evaluate(function, inputs, digits)) == pytest.approx(math.exp(-(energy**2) / (2 * variance)))
        tail = 0.5 * math.erfc(energy / math.sqrt(2 * variance))
        assert float(evaluate(edgeworth_expansion, inputs, digits)) == pytest.approx(tail, rel=1e-13)


@pytest.mark.parametrize("function", EVALUATORS)
@pytest.mark.parametrize("size", ["1e-100", "1", "1e60"])
def test_gradients_of_any_size(function, size):
    """mu and the root of Sigma scaled together."""
    scaled = {"mu": f"{size},{size}/2", "Sigma": f"{size}*{size},3*{size}*{size}", "M": 4, "K": 9}
    plain = {"mu": "1,1/2", "Sigma": "1,3", "M": 4, "K": 9}
    assert float(evaluate(function, scaled)) == pytest.approx(float(evaluate(function, plain)), rel=1e-13)


def test_deep_tails_do_not_overflow():
    """Edgeworth's polynomial may overflow where the density underflows; the bounds have decimals of their own."""
    inputs = {"mu": "60,0", "Sigma": "1,1", "M": 9, "K": 9}
    assert float(evaluate(edgeworth_expansion, inputs)) == 0.0
    assert edgeworth(1e200, 1.0, 1.0, 1.0) == 0.0
    for function in (chernoff_bound, bernstein_bound):
        shown, fine = evaluate(function, inputs), evaluate(function, inputs, 30)
        assert float(shown) == 0.0 < shown.midpoint
        assert shown.contains(Fraction(fine.midpoint))


def test_edgeworth_is_returned_raw():
    """Outside its range it is no probability, and is not made one: at x = 0 it is 1/2 + g/(6 sqrt(2 pi))."""
    assert edgeworth(0.0, 1.0, 20.0, 0.0) == pytest.approx(0.5 + 20 / (6 * math.sqrt(2 * math.pi)), rel=1e-14)
    assert edgeworth(2.0, 1.0, 1.0, 0.0) < 0
