"""The four closed forms against each other, against the contour integral, and at their conventions."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from numerics.alignment.closed_forms import even_dimension, isotropic, line, plane
from numerics.alignment.gaussian import BilinearGaussian, gaussian, log_probability, probability
from numerics.alignment.gaussian_mp import gaussian_at
from theory import InputError

CONFIGURATIONS = [
    (Fraction(1), 1, 3, 5),
    (Fraction(9, 25), 1, 4, 4),
    (Fraction(7, 10), 2, 3, 3),
    (Fraction(3), 2, 2, 9),
    (Fraction(1, 2), 4, 2, 9),
    (Fraction(5), 6, 10, 10),
    (Fraction(3), 7, 1, 7),
    (Fraction(2), 64, 8, 32),
]


def engine(theta, d, M, K, digits):
    """mu = (theta, 0, ...), Sigma = theta I: ||mu||^2/sigma^2 = theta, rational throughout."""
    mu, Sigma = (theta,) + (Fraction(0),) * (d - 1), (theta,) * d
    return gaussian_at(mu, Sigma, mu, Sigma, M, K, digits)


def agree(one, two):
    return abs(Fraction(one.midpoint) - Fraction(two.midpoint)) <= Fraction(one.radius) + Fraction(two.radius)


@pytest.mark.parametrize(("theta", "d", "M", "K"), CONFIGURATIONS)
def test_every_form_is_the_contour_integral(theta, d, M, K):
    truth = engine(theta, d, M, K, 22)
    forms = [isotropic(theta, d, M, K, digits=22)]
    forms += [line(theta, M, K, digits=22)] if d == 1 else []
    forms += [plane(theta, M, K, digits=22)] if d == 2 else []
    forms += [even_dimension(theta, d, M, digits=22)] if d % 2 == 0 and M == K else []
    for form in forms:
        assert form.kind == "ball"
        assert agree(form, truth)
        assert Fraction(form.radius) < Fraction(form.midpoint) / 10**21


@pytest.mark.parametrize(("theta", "d", "M", "K"), CONFIGURATIONS)
def test_the_float_engine_covers_the_certified_value(theta, d, M, K):
    mu, Sigma = [float(theta)] + [0.0] * (d - 1), [float(theta)] * d
    p, error = probability(BilinearGaussian.of_means(mu, Sigma, M, K))
    assert abs(Fraction(p) - Fraction(isotropic(theta, d, M, K, digits=22).midpoint)) <= Fraction(error)


@pytest.mark.parametrize("theta", [40, 1.5])
def test_large_inputs_form_no_matrix(theta):
    """d = 10,000 by diagonals: 800 MB as a matrix. Against the Poisson-beta series; equal roundings do not add up."""
    d, M, K = 10_000, 8, 11
    mu = np.full(d, math.sqrt(theta / d))
    tracemalloc.start()
    p, error = probability(BilinearGaussian.of_means(mu, np.ones(d), M, K))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert abs(p - float(isotropic(theta, d, M, K))) <= error


@pytest.mark.parametrize(("theta", "M", "K"), [("0.36", 3, 5), ("1/64", 2, 7), ("4", 1, 9), ("1", 30, 30)])
def test_one_dimension_keeps_its_last_digits(theta, M, K):
    """Rank one is the slowest to decay: far out on the ray c s and the pair's own mean cancel."""
    size = Fraction(theta)
    p, _ = probability(BilinearGaussian.of_means([float(size)], [float(size)], M, K))
    truth = Fraction(line(size, M, K, digits=25).midpoint)
    assert abs(Fraction(p) - truth) < (10 + abs(math.log(p))) * np.finfo(float).eps * truth


@pytest.mark.parametrize("digits", [15, 25])
def test_tails_below_the_smallest_double(digits):
    shown = gaussian((Fraction(40), Fraction(0)), (Fraction(1),) * 2, 4, 4, digits=digits)
    truth = Fraction(even_dimension(1600, 2, 4, digits=40).midpoint)  # about 1e-1390
    assert shown.contains(truth)
    assert 0 < Fraction(shown.radius) < truth * Fraction(1, 10 ** (10 if digits == 15 else 24))
    assert shown.kind == "estimate"
    assert float(shown) == 0.0


@pytest.mark.parametrize("d_parallel", [1.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("M", [1, 7])
def test_the_root_near_the_pole(d_parallel, M):
    """M = K, Sigma = I_2: P = exp(-M d_par/2)/2. The saddle is within 1/d_par of the pole."""
    law = BilinearGaussian.of_means([math.sqrt(d_parallel), 0.0], [1.0, 1.0], M, M)
    log_p, error = log_probability(law)
    truth = -M * d_parallel / 2 - math.log(2)
    assert abs(log_p - truth) <= error <= 2e-14 * abs(truth)
    # sqrt(d_par) is rounded: its square may be off by 2 eps, log P as much, and nothing else shows.
    assert abs(log_p / truth - 1) < 1e-15


def test_references():
    assert even_dimension("0.7", 2, 3, digits=18).to_dict()["value"] == "0.174968874555577677"  # R9
    assert line("0.36", 3, 5, digits=18).to_dict()["value"] == "0.212365183935927077"  # R10
    assert isotropic(2, 64, 8, 32, digits=18).to_dict()["value"] == "0.00287735759617451221"  # R11


@pytest.mark.parametrize("form", [isotropic, even_dimension, plane, line])
def test_fifteen_digits_enclose_forty(form):
    arguments = {isotropic: (3, 5, 2, 9), even_dimension: (3, 8, 5), plane: (3, 2, 9), line: (3, 2, 9)}[form]
    fine = form(*arguments, digits=40)
    assert form(*arguments).contains(Fraction(fine.midpoint))


def test_conventions():
    """theta is squared and per draw; M and K count draws; in one dimension P is the chance of one sign change."""
    two = float(plane("1/2", 4, 4))
    assert two == pytest.approx(math.exp(-4 * 0.5 / 2) / 2, rel=1e-15)
    for mutant in (math.exp(-4 * 0.25 / 2) / 2, math.exp(-4 * 0.5) / 2, math.exp(-4 * 0.5 / 2)):
        assert two != pytest.approx(mutant, rel=0.1)
    x, y = math.sqrt(2 * 0.3), math.sqrt(9 * 0.3)

    def phi(z):
        return 0.5 * math.erfc(-z / math.sqrt(2))

    assert float(line("0.3", 2, 9)) == pytest.approx(phi(x) * phi(-y) + phi(-x) * phi(y), rel=1e-14)
    # Merging two draws into one mean halves sigma^2: theta doubles, M and K halve.
    assert agree(isotropic("0.3", 5, 4, 6), isotropic("0.6", 5, 2, 3))
    assert agree(isotropic("0.3", 5, 4, 7), isotropic("0.3", 5, 7, 4))


def test_no_signal_is_a_fair_coin():
    for form in (isotropic(0, 5, 2, 3), even_dimension(0, 6, 2), plane(0, 2, 3), line(0, 2, 3)):
        assert form.contains(Fraction(1, 2))


def test_a_deep_tail_keeps_its_digits():
    deep = isotropic(20, 6, 10, 10, digits=30)
    assert float(deep) < 1e-41
    assert agree(deep, even_dimension(20, 6, 10, digits=30))
    assert Fraction(deep.radius) < Fraction(deep.midpoint) / 10**29


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: even_dimension(1, 3, 2), "even dimension"),
        (lambda: isotropic(-1, 3, 2, 2), "theta"),
        (lambda: isotropic(math.inf, 3, 2, 2), "theta"),
        (lambda: line(1, 0, 2), "M must be"),
        (lambda: plane(1, 2, math.inf), "K must be"),
        (lambda: isotropic(1, 2.5, 2, 2), "d must be"),
        (lambda: line(1, True, 2), "M must be"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InputError, match=words):
        call()
