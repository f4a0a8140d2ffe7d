"""The exact Gaussian probability: reference numbers, two engines on hard laws, limits, invariances, sampling."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from numerics import admit
from numerics.alignment.gaussian import BilinearGaussian, gaussian, log_probability, probability
from numerics.alignment.gaussian_mp import gaussian_at, law_at, saddle, slope
from numerics.number import working_precision
from theory import InputError, formula

THREE = {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}
TWO_LAWS = {"mu": "1,2", "mu_test": "2,1", "Sigma": "2,1;1,3", "Sigma_test": "1,-1/2;-1/2,2", "M": 3, "K": 7}
POWER = {
    "mu": ",".join(f"0.7/sqrt({j})" for j in range(1, 65)),
    "Sigma": ",".join(f"1/{j}" for j in range(1, 65)),
    "M": 16,
    "K": 16,
}
REFERENCES = {
    "R4": (THREE, "0.0637174522567659620"),
    "R9": ({"mu": "sqrt(0.7),0", "Sigma": "1,1", "M": 3, "K": 3}, "0.174968874555577677"),
    "R10": ({"mu": "0.6", "Sigma": "1", "M": 3, "K": 5}, "0.212365183935927077"),
    "R11": ({"mu": "sqrt(2)" + ",0" * 63, "Sigma": "1", "M": 8, "K": 32}, "0.00287735759617451221"),
    "R12": (POWER, "1.78280824283907840e-14"),
    "R15": (TWO_LAWS, "0.0449835595033573155"),
}


def evaluate(inputs, digits=15):
    return gaussian(**admit(formula("alignment.variance"), inputs)[0], digits=digits)


@pytest.mark.parametrize("name", REFERENCES)
def test_references(name):
    """Eighteen digits in multiple precision; in doubles within the radius, and to the rounding of the inputs times log P."""
    inputs, reference = REFERENCES[name]
    assert evaluate(inputs, 18).to_dict()["value"] == reference
    shown = evaluate(inputs)
    assert shown.kind == "estimate"
    assert shown.contains(Fraction(reference))
    assert float(shown) == pytest.approx(float(reference), rel=1e-14)


def test_reference_15_by_polar_quadrature():
    """Given V the sign of U'V is normal, and depends on the angle of V only, whose density is the projected normal one."""
    a, b, S, T = mpmath.matrix([1, 2]), mpmath.matrix([2, 1]), [[2, 1], [1, 3]], [[1, -0.5], [-0.5, 2]]
    with mpmath.workdps(30):
        M, precision = 3, 7 * mpmath.matrix(T) ** -1
        length = (b.T * precision * b)[0]

        def at(angle):
            r = mpmath.matrix([mpmath.cos(angle), mpmath.sin(angle)])
            A, B = (r.T * precision * r)[0], (r.T * precision * b)[0]
            z = B / mpmath.sqrt(A)
            radial = mpmath.exp(-length / 2) + z * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(
                (z * z - length) / 2
            ) * mpmath.ncdf(z)
            density = mpmath.sqrt(mpmath.det(precision)) / (2 * mpmath.pi * A) * radial
            return density * mpmath.ncdf(-(r.T * a)[0] / mpmath.sqrt((r.T * mpmath.matrix(S) * r)[0] / M))

        # The integrand is periodic and analytic: the trapezoid rule converges geometrically.
        value = mpmath.fsum(at(2 * mpmath.pi * j / 400) for j in range(400)) * 2 * mpmath.pi / 400
        assert mpmath.nstr(value, 18) == "0.0449835595033573155"[: len(mpmath.nstr(value, 18))]
        assert abs(value - mpmath.mpf(str(evaluate(TWO_LAWS, 20).midpoint))) < mpmath.mpf(10) ** -21


def covariance(rng, d, kind):
    if kind == "diagonal":
        return rng.exponential(size=d)
    if kind == "singular diagonal":
        return rng.exponential(size=d) * (np.arange(d) % 2)
    if kind == "graded":
        return 10.0 ** -rng.uniform(0, 12, d)
    rank = max(1, d - 2) if kind == "singular" else d
    factor = rng.standard_normal((d, rank))
    if kind == "nearly singular":
        factor *= 10.0 ** -rng.uniform(0, 6, rank)
    full = factor @ factor.T / rank
    return (full + full.T) / 2


KINDS = ("diagonal", "singular diagonal", "graded", "full", "singular", "nearly singular")


def random_law(rng, draw):
    """Means, covariances and sample sizes: every pair of kinds, every third time with the same law, half with c < 0 possible."""
    d = int(rng.integers(2, 6))
    S = covariance(rng, d, KINDS[draw % 6])
    T = S if draw % 3 == 0 else covariance(rng, d, KINDS[(draw // 6 + draw) % 6])
    a = rng.standard_normal(d) * 10 ** rng.uniform(-1, 0.5)
    b = a if draw % 3 == 0 else rng.standard_normal(d) if draw % 2 else a + 0.5 * rng.standard_normal(d)
    M, K = (int(x) for x in rng.integers(1, 20, 2))
    return a, S, b, T, M, M if draw % 5 == 0 else K


def gap(law, a, S, b, T, M, K):
    """(relative error of the float engine, the same over its own radius)."""
    p, error = probability(law)
    with mpmath.workdps(30):
        truth = mpmath.mpf(str(gaussian_at(a, S, b, T, M, K, 17).midpoint))
        return float(abs(p - truth) / truth), float(abs(p - truth) / error), float(truth)


def test_two_engines_at_thirty_random_laws():
    """The radius covers every case: 40 eps for each unit of log P, the effect of inputs and sums rounded to a few eps."""
    rng, rows = np.random.default_rng(3), []
    for draw in range(36):
        a, S, b, T, M, K = drawn = random_law(rng, draw)
        rows.append((*gap(BilinearGaussian.of_means(a, S, M, K, b, T), *drawn), draw))
    worst = max(rows, key=lambda row: row[1])
    assert worst[1] < 1, f"worst (relative error, over radius, P, draw): {worst}; largest relative {max(rows)}"
    assert sum(1e-12 < row[2] < 1 - 1e-12 for row in rows) >= 25
    assert any(row[2] > 0.5 for row in rows)


RANK_ONE = np.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
OTHER_RANK_ONE = np.array([[2.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 2.0]])


@pytest.mark.parametrize(
    ("a", "b", "side"),
    [
        ((1.0, 0.0, 0.5), (0.5, 1.0, 0.0), -1),
        ((1.0, 1.0, 0.0), (1.0, -0.5, 0.25), -1),
        ((0.25, 1.0, 1.0), (-0.5, 1.5, 0.5), 1),
        ((2.0, 0.0, -0.5), (1.0, 0.5, 1.0), -1),
    ],
)
def test_different_ranges_and_leftover_means_of_both_signs(a, b, side):
    a, b = np.array(a), np.array(b)
    law = BilinearGaussian.of_means(a, RANK_ONE, 2, 5, b, OTHER_RANK_ONE)
    kept = law.d > 1e-12
    assert np.count_nonzero(kept) == 1
    leftover = law.c - float(np.sum(law.u[kept] * law.v[kept] / law.d[kept]))
    assert side * leftover > 0.1
    relative, over_radius, _ = gap(law, a, RANK_ONE, b, OTHER_RANK_ONE, 2, 5)
    assert relative < 1e-13
    assert over_radius < 1


def test_orthogonal_ranges_leave_a_normal_law():
    """ST = 0: no product term, or one of 1e-17 with a mean of 1e17 in the textbook form."""
    c, s = math.cos(0.3), math.sin(0.3)
    S, T = np.outer([c, s], [c, s]), np.outer([-s, c], [-s, c])
    a, b, M, K = np.array([1.0, 0.25]), np.array([0.5, 0.75]), 3, 4
    S, T = (S + S.T) / 2, (T + T.T) / 2
    law = BilinearGaussian.of_means(a, S, M, K, b, T)
    assert law.d.max() < 1e-15
    expected = 0.5 * math.erfc(a @ b / math.sqrt(2 * (b @ S @ b / M + a @ T @ a / K)))
    assert probability(law)[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("M", "K", "variance"), [(4, math.inf, "S"), (math.inf, 9, "T")])
def test_a_mean_without_noise_leaves_a_normal_law(M, K, variance):
    a, S, b, T = (np.array(x) for x in ([1.0, 0.5], [[2.0, 1.0], [1.0, 3.0]], [0.25, 1.0], [[1.0, 0.5], [0.5, 1.0]]))
    noise = b @ S @ b / 4 if variance == "S" else a @ T @ a / 9
    expected = 0.5 * math.erfc(a @ b / math.sqrt(2 * noise))
    p, error = probability(BilinearGaussian.of_means(a, S, M, K, b, T))
    assert abs(p - expected) <= error
    inputs = {"mu": a, "Sigma": S, "mu_test": b, "Sigma_test": T, "M": M, "K": K}
    assert float(evaluate(inputs, 20)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("inputs", "value"),
    [
        ({"mu": "1,0", "Sigma": "0,0"}, "0"),
        ({"mu": "1,0", "mu_test": "-1,0", "Sigma": "0,0"}, "1"),
        ({"mu": "0,0", "Sigma": "0,0"}, "1"),
        ({"mu": "1,0", "Sigma": "0,1"}, "0"),
        # A constant X = 0 is misaligned: rounded products, 0.3 - 3 * 0.1 in doubles, would say that it is positive.
        ({"mu": "0.1,0.3", "mu_test": "3,-1", "Sigma": "0,0"}, "1"),
        ({"mu": "1,0", "Sigma": "1,1", "M": "inf", "K": "inf"}, "0"),
    ],
)
@pytest.mark.parametrize("digits", [15, 30])
def test_atoms(inputs, value, digits):
    shown = evaluate({"M": 2, "K": 3} | inputs, digits)
    if inputs["Sigma"] == "0,1":  # mu in the null space: X = 1 + product of normals, not constant
        assert 0 < float(shown) < 0.5
    else:
        assert (shown.to_dict()["value"], shown.kind) == (value, "exact")


@pytest.mark.parametrize("Sigma", [[1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]], [[1.0, 0.0], [0.0, 0.0]]])
def test_no_signal_is_a_fair_coin(Sigma):
    p, error = probability(BilinearGaussian.of_means([0.0, 0.0], Sigma, 2, 7))
    assert abs(p - 0.5) <= error < 1e-13


def test_more_digits_agree_with_fewer():
    deep, deeper = evaluate(TWO_LAWS, 40), evaluate(TWO_LAWS, 60)
    assert deep.contains(Fraction(deeper.midpoint))
    assert 0 < deep.radius < Fraction(1, 10**40)


def test_one_covariance_and_two_means_in_multiple_precision():
    """S = T in full takes a road of its own through both reductions: u belongs to the test mean, v to the training mean."""
    inputs = {"mu": "1,2", "mu_test": "1/2,1", "Sigma": "2,1;1,3", "M": 2, "K": 9}
    shown, fine = evaluate(inputs), evaluate(inputs, 20)
    assert shown.contains(Fraction(fine.midpoint))
    swapped = evaluate(inputs | {"mu": "1/2,1", "mu_test": "1,2"}, 20)
    assert float(swapped) != pytest.approx(float(fine), rel=0.05)


@pytest.mark.parametrize("mu_test", ["sqrt(2),-2", "-sqrt(2),2"])
def test_an_irrational_mean_that_vanishes_is_an_atom(mu_test):
    """sqrt(2) sqrt(2) - 2 = 0: no precision shows it, and X = 0 is misaligned."""
    shown = evaluate({"mu": "sqrt(2),1", "mu_test": mu_test, "Sigma": "0,0", "M": 2, "K": 3}, 25)
    assert (shown.to_dict()["value"], shown.kind) == ("1", "exact")


def test_a_ray_that_rises_again_far_out():
    """d_2 of 1e-10 d_1 turns the sign of the leftover mean beyond y = 1e10, where the left ray has long died down."""
    a, b = np.array([0.1658717, 0.0003909, 0.00157372]), np.array([1.92551736, -3.60622717, 6.7846984e-4])
    S = np.array([1.31113372e-05, 0.0, 1.58741233e05])
    relative, over_radius, _ = gap(BilinearGaussian.of_means(a, S, 389, 6674, b), a, S, b, S, 389, 6674)
    assert relative < 1e-13
    assert over_radius < 1


def test_multiple_precision_next_to_the_pole():
    """log P = -3e10. At the pole itself the ball of K' contains everything, and the root must not be lost to it."""
    a, S = np.array([-596.59492209]), np.array([0.00479329])
    with working_precision(386):
        law = law_at(a, S, a, S, 874, 874)
        s = saddle(law, 1)
        assert abs(slope(law, s) * s - 1) < 1e-9
    log_p, error = log_probability(BilinearGaussian.of_means(a, S, 874, 874))
    with mpmath.workdps(30):
        truth = mpmath.log(mpmath.mpf(str(gaussian_at(a, S, a, S, 874, 874, 17).midpoint)))
    assert abs(log_p - truth) < error < 1e-3


def _law(rng, d):
    a, b = rng.standard_normal((2, d)) * 0.3 + 0.3
    S, T = (covariance(rng, d, "full") for _ in "ST")
    return a, S, b, T


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scaling_either_law_changes_nothing(factor):
    a, S, b, T = _law(np.random.default_rng(5), 4)
    plain = probability(BilinearGaussian.of_means(a, S, 3, 8, b, T))[0]
    one = probability(BilinearGaussian.of_means(factor * a, factor**2 * S, 3, 8, b, T))[0]
    two = probability(BilinearGaussian.of_means(a, S, 3, 8, factor * b, factor**2 * T))[0]
    assert (one, two) == (pytest.approx(plain, rel=1e-13), pytest.approx(plain, rel=1e-13))
    # A standard deviation taken for a variance would pass with factor 1 and fails here.
    assert probability(BilinearGaussian.of_means(factor * a, factor * S, 3, 8, b, T))[0] != pytest.approx(plain, 1e-2)


@pytest.mark.parametrize("exponent", [-200, 150])
def test_gradients_of_any_size_are_evaluated(exponent):
    """||mu||^4 under- or overflows; the probability does not depend on it."""
    plain = evaluate({"mu": np.array([1.0, 0.5, 0.0]), "Sigma": np.array([1.0, 3.0, 0.25]), "M": 4, "K": 9})
    a, S = np.ldexp([1.0, 0.5, 0.0], exponent), np.ldexp([1.0, 3.0, 0.25], 2 * exponent)
    assert float(evaluate({"mu": a, "Sigma": S, "M": 4, "K": 9})) == float(plain)


def test_rotation_padding_and_the_two_routes_of_the_reduction():
    """Diagonal laws turned by one rotation: the singular values must find what the diagonals say."""
    rng, d, M, K = np.random.default_rng(2), 120, 9, 14
    S, T = rng.exponential(size=(2, d))
    a = 0.15 * rng.standard_normal(d)
    b = a + 0.1 * rng.standard_normal(d)
    expected = probability(BilinearGaussian.of_means(a, S, M, K, b, T))[0]
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    S_full, T_full = ((Q * x) @ Q.T for x in (S, T))
    S_full, T_full = (S_full + S_full.T) / 2, (T_full + T_full.T) / 2
    turned = probability(BilinearGaussian.of_means(Q @ a, S_full, M, K, Q @ b, T_full))[0]
    assert turned == pytest.approx(expected, rel=1e-12)
    mixed = BilinearGaussian.of_means(a, np.diag(S), M, K, b, T)
    assert probability(mixed)[0] == pytest.approx(expected, rel=1e-12)
    other = BilinearGaussian.of_means(a, S, M, K, b, np.diag(T))
    assert probability(other)[0] == pytest.approx(expected, rel=1e-12)
    padded = (np.append(x, [0.0, 0.0]) for x in (a, S, b, T))
    a2, S2, b2, T2 = padded
    assert probability(BilinearGaussian.of_means(a2, S2, M, K, b2, T2))[0] == pytest.approx(expected, rel=1e-13)


def test_training_and_test_change_places():
    """X is symmetric in its two samples, each with its own size: (a, S, M) and (b, T, K) swap as wholes, not in parts."""
    a, S, b, T = _law(np.random.default_rng(8), 3)
    T = T / 8
    p = probability(BilinearGaussian.of_means(a, S, 2, 11, b, T))[0]
    assert probability(BilinearGaussian.of_means(b, T, 11, 2, a, S))[0] == pytest.approx(p, rel=1e-13)
    assert probability(BilinearGaussian.of_means(a, S, 11, 2, b, T))[0] != pytest.approx(p, rel=1e-2)


def test_a_threshold_by_conditional_quadrature():
    """d = 1: given V = y, Pr(U y <= t) = Phi((t - a y)/(abs(y) sd U)); and -X has the threshold -t."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    a, s, b, r, M, K, t = 1.0, 2.0, 0.75, 1.5, 3, 4, 0.3125
    sd_u, sd_v = math.sqrt(s / M), math.sqrt(r / K)

    def integrand(y):
        return math.exp(-0.5 * ((y - b) / sd_v) ** 2) / sd_v * ndtr((t - a * y) / (abs(y) * sd_u))

    pieces = [quad(integrand, low, high, epsabs=1e-14)[0] for low, high in ((-9, 0), (0, 0.5), (0.5, 9))]
    expected = sum(pieces) / math.sqrt(2 * math.pi)
    law = BilinearGaussian.of_means([a], [s], M, K, [b], [r], threshold=t)
    assert probability(law)[0] == pytest.approx(expected, abs=1e-11)
    mirrored = BilinearGaussian.of_means([-a], [s], M, K, [b], [r], threshold=-t)
    assert probability(mirrored)[0] == pytest.approx(1 - expected, abs=1e-11)
    assert law.c == a * b - t


def test_moments_and_cgf_against_the_joint_normal_law():
    """X = w'Qw for w = (U, V): log E exp(sX) = s m'Q(I - 2s Omega Q)^-1 m - log det(I - 2s Omega Q)/2."""
    a, S, b, T = _law(np.random.default_rng(4), 3)
    M, K = 2, 5
    law = BilinearGaussian.of_means(a, S, M, K, b, T)
    assert law.c == pytest.approx(a @ b, rel=1e-15)
    assert law.variance == pytest.approx(b @ S @ b / M + a @ T @ a / K + np.sum(S * T) / (M * K), rel=1e-13)
    zero, one = np.zeros((3, 3)), np.eye(3)
    Omega, Q, m = np.block([[S / M, zero], [zero, T / K]]), np.block([[zero, one], [one, zero]]) / 2, np.append(a, b)
    for s in (-0.9, -0.3, 0.4):
        s /= law.d.max()
        core = np.eye(6) - 2 * s * Omega @ Q
        expected = s * m @ Q @ np.linalg.solve(core, m) - 0.5 * np.linalg.slogdet(core)[1]
        assert law.cgf(s) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError, match="K\\(s\\) exists"):
        law.cgf(1 / law.d.max())


def test_sampling_and_the_mutants_it_rejects():
    rng, n, M, K = np.random.default_rng(11), 200_000, 2, 9
    a, S, b, T = (
        np.array([0.8, 0.1, 0.0]),
        np.diag([2.0, 1.0, 0.5]),
        np.array([0.5, 0.4, 0.3]),
        np.diag([0.2, 1.0, 3.0]),
    )
    S[0, 1] = S[1, 0] = 0.9
    U = a + rng.standard_normal((n, 3)) @ np.linalg.cholesky(S / M).T
    V = b + rng.standard_normal((n, 3)) @ np.linalg.cholesky(T / K).T
    frequency = np.mean(np.sum(U * V, axis=1) <= 0)

    def z(law):
        p = probability(law)[0]
        return (frequency - p) / math.sqrt(p * (1 - p) / n)

    law = BilinearGaussian.of_means(a, S, M, K, b, T)
    assert abs(z(law)) < 4
    mutants = {
        "M and K swapped": BilinearGaussian.of_means(a, S, K, M, b, T),
        "factor 2 in v": BilinearGaussian(law.c, law.u, 2 * law.v, law.d),
        "products dropped": BilinearGaussian(law.c, law.u, law.v, 0 * law.d),
        "S and T swapped": BilinearGaussian.of_means(a, T, M, K, b, S),
        "means swapped": BilinearGaussian.of_means(b, S, M, K, a, T),
        "training law for both": BilinearGaussian.of_means(a, S, M, K),
        "Sigma for the covariance of the mean": BilinearGaussian.of_means(a, S, 1, 1, b, T),
    }
    survivors = {name: z(mutant) for name, mutant in mutants.items() if abs(z(mutant)) < 8}
    assert not survivors


def test_refusals():
    good = {"mu": [1.0, 0.5], "Sigma": [1.0, 1.0], "M": 2, "K": 3}
    for bad, words in [
        ({"mu": [1.0, 0.5, 0.0]}, "one dimension"),
        ({"Sigma": [1.0, -1.0]}, "negative variance"),
        ({"Sigma": [[1.0, 2.0], [2.0, 1.0]]}, "semidefinite"),
        ({"Sigma": [[1.0, 0.5], [0.4, 1.0]]}, "symmetric"),
        ({"mu": [math.nan, 1.0]}, "finite"),
        ({"M": 0}, "M must be"),
        ({"K": 2.5}, "K must be"),
        ({"M": math.nan}, "M must be"),
    ]:
        with pytest.raises(InputError, match=words):
            BilinearGaussian.of_means(**(good | bad))
    for bad in ((1.0, [1.0], [1.0], [-1.0]), (1.0, [1.0], [1.0, 2.0], [1.0]), (math.inf, [1.0], [1.0], [1.0])):
        with pytest.raises(InputError):
            BilinearGaussian(bad[0], *(np.array(each) for each in bad[1:]))


def test_a_reduction_that_would_take_hours_is_refused():
    with pytest.raises(InputError, match="dimension 200"):
        evaluate({"mu": np.ones(201), "Sigma": np.eye(201), "M": 2, "K": 2}, 18)


def test_arguments_are_left_alone():
    a, S, b, T = _law(np.random.default_rng(1), 3)
    copies = [each.copy() for each in (a, S, b, T)]
    probability(BilinearGaussian.of_means(a, S, 2, 3, b, T))
    assert all(np.array_equal(x, y) for x, y in zip((a, S, b, T), copies, strict=True))
