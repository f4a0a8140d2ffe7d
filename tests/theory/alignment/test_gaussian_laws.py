"""The Gaussian statements as numbers: reference values, closed forms, and the order of the bounds."""

from functools import cache
from random import Random

import mpmath
import pytest
from comparing import opened
from mpmath import mp, mpf
from sympy import Float, I, Integral, Rational, Symbol, beta, lambdify, oo

from theory import formula
from theory.alignment.closed_forms import ANY_DIMENSION, EVEN_DIMENSION, ONE_DIMENSION, TWO_DIMENSIONS
from theory.alignment.gaussian import OFFSET, Infimum, coordinate_cgf
from theory.alignment.gaussian import s as tilt

R4 = {"mu": (1, mpf("0.5"), 0), "Sigma": (1, 3, mpf("0.25")), "M": 4, "K": 9}
R15 = {
    "mu": (1, 2),
    "mu_test": (2, 1),
    "Sigma": ((2, 1), (1, 3)),
    "Sigma_test": ((1, mpf("-0.5")), (mpf("-0.5"), 2)),
    "M": 3,
    "K": 7,
}
DPS = 25


def root(covariance):
    """The symmetric square root of a matrix, or of a diagonal."""
    if not isinstance(covariance[0], tuple):
        return mpmath.diag([mpmath.sqrt(each) for each in covariance])
    values, vectors = mpmath.eigsy(mpmath.matrix(covariance))
    return vectors * mpmath.diag([mpmath.sqrt(each) for each in values]) * vectors.T


def coordinates(case):
    """(a'b, alpha, beta, sigma): what the conventions of the Gaussian formulas say, from the two laws."""
    a = mpmath.matrix(case["mu"])
    b = mpmath.matrix(case.get("mu_test", case["mu"]))
    S, T = root(case["Sigma"]), root(case.get("Sigma_test", case["Sigma"]))
    P, sigma, Q = mpmath.svd_r(S * T)  # P diag(sigma) Q, Q being transposed already
    return (a.T * b)[0], list(Q * T * a), list(P.T * S * b), list(sigma)


@cache
def function(id, number, mutant=None):
    """The statement's integrand, or an infimum's body, of `number` coordinates as a function of s and all of them."""
    statement = formula(id).statement
    body = statement.args[0] if isinstance(statement, Infimum) else opened(statement, number)
    body = opened(body, number)
    if mutant:
        body = body.subs(mutant)
    names = [Symbol(f"{letter}_{each + 1}") for letter in ("alpha", "beta", "sigma") for each in range(number)]
    others = {each.name: each for each in body.free_symbols if each not in names}
    return lambdify([tilt, others["a'b"], others["M"], others["K"], *names], body, "mpmath")


def values(case):
    mean, *vectors = coordinates(case)
    return [mean, mpf(case["M"]), mpf(case["K"]), *(each for vector in vectors for each in vector)]


def probability(case):
    """The statement's integral along a ray that starts at half of the strip and bends away from the imaginary axis."""
    given = values(case)
    integrand = function("alignment.gaussian", len(given[3:]) // 3)
    largest = max(given[-len(given[3:]) // 3 :])
    start = -mpmath.sqrt(given[1] * given[2]) / (2 * largest)
    # Both halves of the contour, each with its own bend: together they are twice the imaginary part's half.
    bend = mpmath.mpc(mpf("-0.4"), 1)

    def along(u):
        y = mpmath.exp(mp.pi / 2 * mpmath.sinh(u)) * abs(start)
        slope = mp.pi / 2 * mpmath.cosh(u) * y
        # The integrand includes 1/(2 pi i); ds = bend dy.
        return (integrand(start + bend * y, *given) * bend * slope).real

    step = mpf(1) / 32
    return 2 * step * mpmath.fsum(along(step * k) for k in range(-128, 129))


def test_the_stated_integral_is_the_reference_probability():
    with mpmath.workdps(DPS):
        assert mpmath.nstr(probability(R4), 18) == "0.063717452256765962"
        assert mpmath.nstr(probability(R15), 18) == "0.0449835595033573155"
        swapped = probability({**R15, "M": R15["K"], "K": R15["M"]})
        assert abs(swapped - probability(R15)) > 1e-3


def test_the_contour_runs_left_of_the_pole():
    integral = next(iter(formula("alignment.gaussian").statement.atoms(Integral)))
    assert integral.limits[0] == (tilt, OFFSET - I * oo, OFFSET + I * oo)
    assert OFFSET.is_negative


def chernoff(case):
    given = values(case)
    body, largest = function("alignment.chernoff", len(given[3:]) // 3), max(given[-len(given[3:]) // 3 :])
    end = -mpmath.sqrt(given[1] * given[2]) / largest
    inside = [end * k / 400 for k in range(1, 400)]
    start = min(inside, key=lambda s: body(s, *given))
    best = mpmath.findroot(lambda s: mpmath.diff(lambda t: mpmath.log(body(t, *given)), s), start)
    assert end < best < 0
    return body(best, *given)


def bernstein(case):
    mean, alpha, beta, sigma = coordinates(case)
    squares = [sum(each**2 for each in vector) for vector in (alpha, beta, sigma)]
    names = {"a'b": mean, "a'Ta": squares[0], "b'Sb": squares[1], "tr[ST]": squares[2]}
    names |= {"||S^(1/2) T^(1/2)||": max(sigma), "M": case["M"], "K": case["K"]}
    statement = formula("alignment.bernstein").statement
    symbols = sorted(statement.free_symbols, key=str)
    return lambdify(symbols, statement, "mpmath")(*(names[each.name] for each in symbols))


def test_the_bounds_are_the_reference_numbers():
    with mpmath.workdps(DPS):
        assert mpmath.nstr(chernoff(R4), 18) == "0.402166908203832218"
        assert mpmath.nstr(bernstein(R4), 18) == "0.601412288024467274"


def random_case(rng):
    """One law of full rank, M and K apart: then the mean has no part without noise, and the ray may bend left."""
    x, y, z = (mpf(rng.randint(-8, 8)) / 8 for _ in range(3))
    covariance = ((1 + x * x, x * y), (x * y, mpf("0.25") + y * y + z * z))
    mean = tuple(mpf(rng.randint(2, 12)) / 8 for _ in range(2))
    return {"mu": mean, "Sigma": covariance, "M": rng.randint(1, 4), "K": rng.randint(5, 9)}


def test_probability_chernoff_and_bernstein_are_ordered_at_random_laws():
    rng = Random(3)
    with mpmath.workdps(
        DPS
    ):  # the ray ends at 4e18: of a mean that rounding leaves over, exp must not see more than 1e-7
        for _ in range(6):
            case = random_case(rng)
            exact, sharp, simple = probability(case), chernoff(case), bernstein(case)
            assert 0 < exact < sharp < simple < 1, (case, exact, sharp, simple)
            assert bernstein({**case, "M": case["K"]}) < simple


def test_one_coordinate_against_quadrature():
    """E exp(s(u xi + v eta + d xi eta)) with eta integrated by hand: exp(s^2 (v + d xi)^2/2)."""
    u, v, d, s = mpf("0.7"), mpf("-0.4"), mpf("1.3"), mpf("-0.6")
    symbols = [Symbol(each) for each in "uvd"]
    closed = lambdify([tilt, *symbols], coordinate_cgf(*symbols), "mpmath")

    def density(x):
        return mpmath.exp(s * u * x + s**2 * (v + d * x) ** 2 / 2 - x**2 / 2) / mpmath.sqrt(2 * mp.pi)

    with mpmath.workdps(DPS):
        assert abs(mpmath.log(mpmath.quad(density, [-20, -5, 0, 5, 20])) - closed(s, u, v, d)) < 1e-20
        forgotten = closed(s, u, v, 0)
        assert abs(forgotten - closed(s, u, v, d)) > 0.1


def isotropic(theta, dimension, M, K):
    return {"mu": (mpmath.sqrt(theta),) + (0,) * (dimension - 1), "Sigma": (1,) * dimension, "M": M, "K": K}


def at(closed_form, **given):
    """The statement's number; Marcum's integral by mpmath, cut where the Rice density is below 1e-40."""
    statement = closed_form.statement
    statement = statement.subs({each: Rational(given[each.name]) for each in statement.free_symbols})
    for integral in statement.atoms(Integral):
        ((t, low, _),) = integral.limits
        density, start = lambdify(t, integral.function, "mpmath"), mpmath.mpmathify(low.evalf(mp.dps))
        statement = statement.subs(
            integral, Float(mpmath.quad(density, [start, start + 3, start + 8, start + 18]), DPS)
        )
    return mpf(str(statement.evalf(DPS)))


def series(theta, dimension, M, K, terms=60):
    """The double series of any dimension, cut where the Poisson weights are below 1e-22."""
    statement = ANY_DIMENSION.statement
    (j, *_), (k, *_) = statement.limits
    integral, whole = (next(iter(statement.atoms(kind))) for kind in (Integral, beta))
    names = [next(each for each in statement.free_symbols if each.name == name) for name in ("theta", "d", "M", "K")]
    weight = lambdify([j, k, *names], statement.function.subs(integral, whole), "mpmath")  # integral over whole is 1
    first, second = (lambdify([j, k, *names], each, "mpmath") for each in whole.args)
    given = (theta, mpf(dimension), mpf(M), mpf(K))
    origin = weight(0, 0, *given)
    left = [weight(each, 0, *given) for each in range(terms)]
    right = [weight(0, each, *given) / origin for each in range(terms)]
    return mpmath.fsum(
        one * other * mpmath.betainc(first(m, n, *given), second(m, n, *given), 0, mpf(1) / 2, regularized=True)
        for m, one in enumerate(left)
        for n, other in enumerate(right)
        if one * other > mpf("1e-22")
    )


@pytest.mark.parametrize(("theta", "M", "K"), [("0.36", 3, 5), ("1.5", 2, 2)])
def test_one_dimension(theta, M, K):
    with mpmath.workdps(DPS):
        closed = at(ONE_DIMENSION, theta=theta, M=M, K=K)
        assert abs(closed - probability(isotropic(mpf(theta), 1, M, K))) < 1e-16
        assert abs(closed - series(mpf(theta), 1, M, K)) < 1e-16


@pytest.mark.parametrize(("theta", "M", "K"), [("0.7", 3, 3), ("0.7", 2, 9)])
def test_two_dimensions(theta, M, K):
    with mpmath.workdps(DPS):
        closed = at(TWO_DIMENSIONS, theta=theta, M=M, K=K)
        assert abs(closed - probability(isotropic(mpf(theta), 2, M, K))) < 1e-15
        assert abs(closed - series(mpf(theta), 2, M, K)) < 1e-15


@pytest.mark.parametrize("half", [1, 2, 3])
def test_even_dimensions(half):
    with mpmath.workdps(DPS):
        closed = at(EVEN_DIMENSION, theta="0.7", L=half, M=3)
        assert abs(closed - probability(isotropic(mpf("0.7"), 2 * half, 3, 3))) < 1e-16
        assert abs(closed - series(mpf("0.7"), 2 * half, 3, 3)) < 1e-16


def test_the_closed_forms_meet_the_references():
    """R9, R10 and R11."""
    with mpmath.workdps(DPS):
        assert mpmath.nstr(at(EVEN_DIMENSION, theta="0.7", L=1, M=3), 18) == "0.174968874555577677"
        assert mpmath.nstr(at(ONE_DIMENSION, theta="0.36", M=3, K=5), 18) == "0.212365183935927077"
        assert mpmath.nstr(series(mpf(2), 64, 8, 32, terms=100), 15) == "0.00287735759617451"


def test_doit_and_evalf_of_the_even_dimension_agree():
    """SymPy sums some partial sums of binomials wrongly: the statement is written so that it does not."""
    for half in (1, 2, 3):
        names = {each.name: each for each in EVEN_DIMENSION.statement.free_symbols}
        at_half = EVEN_DIMENSION.statement.subs({names["L"]: half, names["M"]: 3})
        one, other = (each.subs(names["theta"], 2).evalf(20) for each in (at_half, at_half.doit()))
        assert abs(one - other) < 1e-18


def test_the_infimum_behaves_as_an_expression():
    body = (tilt - Symbol("q")) ** 2
    least = Infimum(body, tilt, 0, 1)
    assert least.free_symbols == {Symbol("q")}
    assert least.subs(Symbol("q"), 3) == Infimum((tilt - 3) ** 2, tilt, 0, 1)
    assert str(least) == "inf((-q + s)**2, 0 < s < 1)"
