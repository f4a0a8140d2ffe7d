"""Edgeworth's expansion: the reference number, the order of its error, and its place among the cumulants."""

import mpmath
from mpmath import mpf
from sympy import erfc, lambdify, simplify, sqrt

from numerics import admit
from numerics.alignment import words
from theory import formula
from theory.alignment.edgeworth import FOURTH, THIRD, VARIANCE
from theory.alignment.words import AB

EDGEWORTH = formula("alignment.edgeworth")


def at(inputs):
    """The statement with Var[X], kappa_3 and kappa_4 replaced by the statements that its conventions name."""
    cumulants = {VARIANCE: "variance", THIRD: "third_cumulant", FOURTH: "fourth_cumulant"}
    statement = EDGEWORTH.statement.subs({word: formula(f"alignment.{id}").statement for word, id in cumulants.items()})
    admitted, _ = admit(EDGEWORTH, inputs)
    values = words(admitted) | {"M": mpf(admitted["M"]), "K": mpf(admitted["K"])}
    symbols = sorted(statement.free_symbols, key=str)
    return lambdify(symbols, statement, "mpmath")(*(values[each.name] for each in symbols))


def test_the_reference_number():
    """R7."""
    with mpmath.workdps(25):
        assert mpmath.nstr(at({"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": 4, "K": 9}), 18) == "0.064857267665904107"


def test_without_cumulants_it_is_the_normal_law():
    normal = EDGEWORTH.statement.subs({THIRD: 0, FOURTH: 0})
    assert simplify(normal - erfc(AB / sqrt(2 * VARIANCE)) / 2) == 0


def test_the_cumulants_enter_once_and_squared():
    statement = EDGEWORTH.statement.expand()
    assert statement.coeff(FOURTH, 2) == 0
    assert statement.coeff(THIRD, 3) == 0
    assert statement.coeff(THIRD, 2) != 0


def test_it_is_exact_to_second_order_for_a_gamma_mean():
    """A mean of n unit exponentials at a point x standard deviations below: the error falls like n^(-3/2).

    Its cumulants are (r-1)!/n^(r-1), and its distribution function is an incomplete gamma function. Without the squared
    third cumulant the error falls like 1/n only.
    """
    symbols = (AB, VARIANCE, THIRD, FOURTH)
    full = lambdify(symbols, EDGEWORTH.statement, "mpmath")
    squared = EDGEWORTH.statement.expand().coeff(THIRD, 2) * THIRD**2
    without = lambdify(symbols, EDGEWORTH.statement - squared, "mpmath")
    errors = {}
    with mpmath.workdps(30):
        for name, function in (("full", full), ("without", without)):
            for n in (mpf(400), mpf(6400)):
                # X = mean - (1 - x/sqrt(n)) has mean x/sqrt(n), so X <= 0 lies x = 1/2 standard deviations below.
                threshold = 1 - mpf("0.5") / mpmath.sqrt(n)
                truth = mpmath.gammainc(n, 0, n * threshold, regularized=True)
                errors[name, n] = abs(function(mpf("0.5") / mpmath.sqrt(n), 1 / n, 2 / n**2, 6 / n**3) - truth)
        slopes = {name: mpmath.log(errors[name, 6400] / errors[name, 400], 16) for name in ("full", "without")}
    assert abs(slopes["full"] + 1.5) < 0.1, slopes
    assert abs(slopes["without"] + 1) < 0.1, slopes


def test_it_can_leave_the_unit_interval_and_is_returned_raw():
    """Phi(-2) - phi(2)(3/6 He_2 + 9/72 He_5) with He_2(-2) = 3 and He_5(-2) = 18."""
    value = EDGEWORTH.statement.subs({AB: 2, VARIANCE: 1, THIRD: 3, FOURTH: 0}).evalf(20)
    with mpmath.workdps(20):
        expected = mpmath.ncdf(-2) - mpmath.npdf(2) * (mpf(3) / 2 + mpf(9) / 4)
    assert abs(mpf(str(value)) - expected) < 1e-15
    assert value < 0
