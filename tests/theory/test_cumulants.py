"""The cumulant engine: two derivations of the variance, cumulants of means, and full enumeration of a skewed law."""

from fractions import Fraction
from itertools import product

import pytest
from sympy import Rational, Symbol, bell, diff, expand, factorial, log, series, simplify, symbols

from theory.alignment.gaussian import coordinate_cgf
from theory.alignment.gaussian import s as tilt
from theory.cumulants import (
    contraction,
    cumulant_of_mean,
    cumulant_pairs,
    kappa,
    second_moment_by_coincidences,
)

M, K = symbols("M K", positive=True)


def test_derivations_a_and_b_of_the_variance_agree():
    mean = kappa(1, M, K)
    assert expand(second_moment_by_coincidences(M, K) - mean**2 - kappa(2, M, K)) == 0
    assert str(kappa(2, M, K)) == "(b'Sb)/M + (a'Ta)/K + tr[ST]/(K*M)"


def test_the_variance_needs_no_gaussian_law():
    assert kappa(2, M, K, gaussian=False) == kappa(2, M, K, gaussian=True)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_cumulant_of_a_mean_is_divided_by_the_count_to_the_order_less_one(order):
    single = Symbol(f"k_{order}")
    assert simplify(cumulant_of_mean(order, M) - single / M ** (order - 1)) == 0
    # Not proved by inserting: at M = 1 nothing is averaged, and the falling factorials vanish but for one block.
    assert cumulant_of_mean(order, Rational(1)) == single


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_pairs_of_partitions_are_counted(order):
    """Bell(n)^2 pairs in all; the connected ones are n! times the coefficients of log sum_n Bell(n)^2 x^n/n!."""
    x = Symbol("x")
    pairs = sum(bell(n) ** 2 * x**n / factorial(n) for n in range(order + 1))
    connected = series(log(pairs), x, 0, order + 1).removeO().coeff(x, order) * factorial(order)
    assert connected == {1: 1, 2: 3, 3: 15, 4: 119}[order]
    assert len(cumulant_pairs(order, connected=False)) == bell(order) ** 2
    assert len(cumulant_pairs(order)) == connected


def test_all_pairs_make_the_moment():
    moment = kappa(2, M, K, connected=False)
    assert expand(moment - kappa(2, M, K) - kappa(1, M, K) ** 2) == 0


# A law on three points of the plane, skewed, its covariance neither diagonal nor singular: that of the notes' numbers.
POINTS = (((1, 0), Fraction(1, 2)), ((-1, 2), Fraction(3, 10)), ((3, 1), Fraction(1, 5)))


def tensors(law):
    """Mean, covariance and third cumulant of a law on finitely many points, exactly."""
    mean = [sum(chance * point[i] for point, chance in law) for i in range(2)]

    def centred(*indices):
        total = Fraction(0)
        for point, chance in law:
            for i in indices:
                chance = chance * (point[i] - mean[i])
            total += chance
        return total

    covariance = [[centred(i, j) for j in range(2)] for i in range(2)]
    third = [[[centred(i, j, k) for k in range(2)] for j in range(2)] for i in range(2)]
    return mean, covariance, third


def words(law):
    """The words of one law, for training and test alike, in the engine's names."""
    mu, S, k3 = tensors(law)
    two = list(product(range(2), repeat=2))
    three = list(product(range(2), repeat=3))
    quadratic = sum(mu[i] * S[i][j] * mu[j] for i, j in two)
    squared = sum(mu[i] * S[i][j] * S[j][k] * mu[k] for i, j, k in three)
    values = {
        "a'b": sum(each**2 for each in mu),
        "b'Sb": quadratic,
        "a'Ta": quadratic,
        "tr[ST]": sum(S[i][j] ** 2 for i, j in two),
        "b'STa": squared,
        "<k3,k3'>": sum(k3[i][j][k] ** 2 for i, j, k in three),
    }
    cubic = sum(k3[i][j][k] * mu[i] * mu[j] * mu[k] for i, j, k in three)
    mixed = sum(k3[i][j][k] * S[i][j] * mu[k] for i, j, k in three)
    values |= {"k3[b,b,b]": cubic, "k3'[a,a,a]": cubic, "k3[T,b]": mixed, "k3'[S,a]": mixed}
    return {name: Rational(value.numerator, value.denominator) for name, value in values.items()}


def enumerated(law, m, k):
    """The first three cumulants of X over all (3^(m+k)) samples."""
    moments = [Fraction(0)] * 4
    for sample in product(law, repeat=m + k):
        chance = Fraction(1)
        for _, each in sample:
            chance *= each
        train, test = (
            [sum(Fraction(point[i]) for point, _ in part) / len(part) for i in range(2)]
            for part in (sample[:m], sample[m:])
        )
        x = train[0] * test[0] + train[1] * test[1]
        for order in range(1, 4):
            moments[order] += chance * x**order
    first, second, third = moments[1:]
    return first, second - first**2, third - 3 * first * second + 2 * first**3


def test_three_cumulants_of_a_skewed_law_against_full_enumeration():
    values = words(POINTS)
    seen = enumerated(POINTS, 2, 3)
    assert [f"{float(each):.10g}" for each in seen] == ["1.28", "1.641066667", "2.543552"]
    for order, truth in enumerate(seen, 1):
        formula = kappa(order, Rational(2), Rational(3), gaussian=False)
        predicted = formula.subs({word: values[word.name] for word in formula.free_symbols})
        assert predicted == Rational(truth.numerator, truth.denominator)
    gaussian = kappa(3, Rational(2), Rational(3))
    dropped = gaussian.subs({word: values[word.name] for word in gaussian.free_symbols})
    assert abs(float(dropped) - float(seen[2])) > 0.1, (
        "a law whose third cumulant tensor mattered nothing tests nothing"
    )


def test_the_third_cumulant_of_any_law_has_the_words_of_the_notes():
    """6 mu'S^2mu/(MK) + k3[mu,mu,mu](1/M^2+1/K^2) + 3 k3[S,mu](1/(M^2K)+1/(MK^2)) + ||k3||^2/(MK)^2, all words apart."""
    by_name = {str(word): word for word in kappa(3, M, K, gaussian=False).free_symbols if word not in (M, K)}
    expected = {
        "b'STa": 6 / (M * K),
        "k3[b,b,b]": 1 / M**2,
        "k3'[a,a,a]": 1 / K**2,
        "k3[T,b]": 3 / (M**2 * K),
        "k3'[S,a]": 3 / (M * K**2),
        "<k3,k3'>": 1 / (M * K) ** 2,
    }
    assert set(by_name) == set(expected)
    for name, coefficient in expected.items():
        assert expand(kappa(3, M, K, gaussian=False)).coeff(by_name[name]) == coefficient, name


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_gaussian_cumulants_by_differentiating_the_cgf(order):
    """In coordinates b'STa = sum alpha sigma beta and so on: kappa_p is the p-th derivative of K(s) at 0."""
    alpha, beta, sigma, c = symbols("alpha beta sigma c", positive=True)
    cgf = tilt * c + coordinate_cgf(
        beta / M ** Rational(1, 2), alpha / K ** Rational(1, 2), sigma / (M * K) ** Rational(1, 2)
    )
    in_coordinates = {
        "a'b": c,
        "b'Sb": beta**2,
        "a'Ta": alpha**2,
        "tr[ST]": sigma**2,
        "b'STa": alpha * sigma * beta,
        "b'STSb": beta**2 * sigma**2,
        "a'TSTa": alpha**2 * sigma**2,
        "tr[(ST)^2]": sigma**4,
    }
    engine = kappa(order, M, K)
    engine = engine.subs({word: in_coordinates[word.name] for word in engine.free_symbols if word not in (M, K)})
    assert simplify(diff(cgf, tilt, order).subs(tilt, 0) - engine) == 0


def test_the_fourth_cumulant_of_a_product_of_two_normals_by_isserlis():
    """E xi^4 eta^4 - 3 (E xi^2 eta^2)^2 = 3 * 3 - 3 = 6, the coefficient of tr[(ST)^2]."""
    matchings = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    word = contraction([[0, 1], [2, 3]], [[1, 2], [3, 0]])
    assert str(word) == "tr[(ST)^2]"
    assert kappa(4, Rational(1), Rational(1)).coeff(word) == len(matchings) ** 2 - 3


def test_a_word_and_its_reversal_are_one():
    forward = contraction([[0, 1], [2]], [[0], [1, 2]])
    assert str(forward) == "b'STa"
    assert contraction([[0], [1, 2]], [[0, 1], [2]]) == forward


def test_blocks_beyond_the_third_order_are_refused():
    with pytest.raises(ValueError, match="order 3 only"):
        contraction([[0, 1, 2], [3]], [[0, 1], [2, 3]])
