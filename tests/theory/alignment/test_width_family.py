"""The width family: exponents against slopes at large widths, and against matrices at small ones."""

from fractions import Fraction

import pytest
from sympy import Matrix, Rational, eye, log, symbols

from theory import formula
from theory.alignment.width import A, N, P, family, leading_exponent, linear_growth, sigma, signal, tau

WIDTH = formula("alignment.width_exponent")
CASES = [
    ("1", "0", "1"),
    ("1", "1/2", "1/2"),
    ("1", "1", "0"),
    ("1/2", "0", "0"),
    ("2", "-1", "2"),
    ("3/4", "1/4", "1/2"),
]


@pytest.mark.parametrize(
    ("a", "p", "exponent"), [*CASES, ("3/2", "1/3", "7/6"), ("1/4", "-1/2", "-1/2"), ("1", "4/3", "-2/3")]
)
def test_slopes_at_large_width(a, p, exponent):
    """log d(N^2)/d(N) / log N at N = 10^60: the next power of N is at least N^(-1/4), so 1e-15 away."""
    energy, quadratic, trace = (
        each.subs({A.symbol: Rational(a), P.symbol: Rational(p), signal: 2, sigma: 3, tau: Rational(1, 2)})
        for each in family()
    )

    def dimension(power):
        width = 10**power
        at = [each.subs(N, width).evalf(60) for each in (energy, quadratic, trace)]
        return min(at[0] ** 2 / at[1], at[0] ** 2 / at[2])

    assert WIDTH.statement.subs({A.symbol: Rational(a), P.symbol: Rational(p)}) == Rational(exponent)
    slope = (log(dimension(120)) - log(dimension(60))) / log(10**60)
    assert abs(slope.evalf(30) - Rational(exponent)) < 1e-13


def test_the_family_as_a_matrix():
    """mu along (3, 4, 0)/5: mu'Sigma mu and tr(Sigma^2) of the covariance itself."""
    direction = Matrix([Rational(3, 5), Rational(4, 5), 0])
    values = {A.symbol: 1, P.symbol: 2, signal: 2, sigma: 3, tau: Rational(1, 2), N: 3}
    covariance = 9 * eye(3) + Rational(1, 4) * 3**2 * direction * direction.T
    mean = direction * 6 ** Rational(1, 2)
    energy, quadratic, trace = (each.subs(values) for each in family())
    assert energy == (mean.T * mean)[0]
    assert quadratic == (mean.T * covariance * mean)[0]
    assert trace == (covariance * covariance).trace()
    assert trace != covariance.trace() ** 2


def test_leading_exponents():
    a = A.symbol
    assert leading_exponent(5 * N) == 1
    assert leading_exponent(N - 1) == 1
    assert leading_exponent(7 * N**0) == 0
    assert leading_exponent((1 + N**a) ** 3 / N) == leading_exponent((1 + N**a) ** 3) - 1
    assert leading_exponent((2 + N**P.symbol) ** -2).subs(P.symbol, Rational(1, 2)) == -1


def test_terms_that_may_cancel_are_refused():
    with pytest.raises(ValueError, match="not decided"):
        leading_exponent(N**A.symbol - N**P.symbol)


def test_linear_growth_is_met_with_equality_by_white_noise():
    """Sigma = L 1 and ||mu||^2 = sN attain the lower bound on both dimensions."""
    L = next(each for each in linear_growth().result.free_symbols if each.name == "L")
    for s, size in ((2, 3), (3, 2)):
        bound = linear_growth().result.subs({signal: s, L: size, N: 50})
        energy = Fraction(50 * s)
        assert Fraction(int(bound.p), int(bound.q)) == min(energy**2 / (size * energy), energy**2 / (50 * size**2))


def test_growth_is_not_necessary_for_itself():
    """A bounded spike keeps exponent 1 although ||Sigma|| exceeds the noise; one that grows like N^p takes p away."""
    p = symbols("p")
    statement = WIDTH.statement.subs(A.symbol, 1).subs(P.symbol, p)
    assert [statement.subs(p, each) for each in (Rational(-1, 2), 0, Rational(1, 4), 1)] == [1, 1, Rational(3, 4), 0]
