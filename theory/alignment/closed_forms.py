"""Where the misalignment probability of Gaussian gradients is elementary: one law with Sigma = sigma^2 1, in four forms.

Formulas that the catalogue does not list: second routes to `alignment.gaussian`. theta = ||mu||^2/sigma^2, per sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Abs,
    Expr,
    Integral,
    Rational,
    Sum,
    Symbol,
    besseli,
    beta,
    binomial,
    cancel,
    erfc,
    exp,
    factor,
    factorial,
    oo,
    simplify,
    sqrt,
    symbols,
)

from ..formula import DERIVED_HERE, Assumption, Axiom, Derivation, Domain, Formula, Parameter
from . import words as w
from .gaussian import coordinate_cgf
from .gaussian import s as tilt

__all__ = ["ANY_DIMENSION", "CLOSED_FORMS", "EVEN_DIMENSION", "ONE_DIMENSION", "TWO_DIMENSIONS", "marcum_q"]

THETA = Parameter("theta", "||mu||^2/sigma^2", Domain("real", low=0), typical=(0.1, 3), latex=r"\theta")
HALF = Parameter("L", "half of the dimension", Domain("integer", low=1), typical=(1, 5))
SIZE = Parameter("d", "dimension", Domain("integer", low=1), typical=(1, 8))
M, K, theta, L, d_ = w.M.symbol, w.K.symbol, THETA.symbol, HALF.symbol, SIZE.symbol
i, j, k, n = symbols("i j k n", integer=True, nonnegative=True)
t, x, y = symbols("t x y", positive=True)

ISOTROPIC = Assumption("isotropic_covariance", "one law of covariance Sigma = sigma^2 1 in training and test")

EITHER_SIGN = Axiom(
    "signs",
    "X <= 0 if exactly one of the two means is negative; the rival counts one of the two cases",
    lambda p, q: p * (1 - q) + (1 - p) * q,
    lambda p, q: p * (1 - q),
)
POLARISED = Axiom(
    "sum and difference",
    "4 sqrt(MK) U'V = |sqrt(M) U + sqrt(K) V|^2 - |sqrt(M) U - sqrt(K) V|^2, and the two vectors are independent; the rival "
    "weighs by M and K",
    lambda sign: (sqrt(M) + sign * sqrt(K)) ** 2,
    lambda sign: (M + sign * K) ** 2,
)
MIXTURE = Axiom(
    "Poisson mixture",
    "the squared length of d unit normals of squared mean c is chi^2 of d + 2j degrees, j Poisson of mean c/2; the rival has c",
    Rational(1, 2),
    Rational(1),
)
RICE = Axiom(
    "two Rice variables",
    "a length of two unit normals of offset a exceeds one of offset b with probability Q_1(x, y) - exp(-(x^2+y^2)/2) I_0(xy)/2 "
    "at x, y = a/sqrt(2), b/sqrt(2); the rival takes the Bessel term whole",
    Rational(1, 2),
    Rational(1),
)
ENCLOSED = Axiom(
    "contour",
    "Re s = s_0 < 0 is closed to the left, around s = -1/d; the rival closes it around s = 0 as well",
    False,
    True,
)
BINOMIAL = Axiom(
    "binomial series",
    "the coefficient of y^i in (2 - y)^(-a) is binomial(a+i-1, i) 2^(-a-i); the rival is that of (1 - y)^(-a)",
    lambda a, i: binomial(a + i - 1, i) / 2 ** (a + i),
    lambda a, i: binomial(a + i - 1, i),
)


def marcum_q(offset: Any, threshold: Any) -> Expr:
    """Marcum's Q_1(a, b) = int_b^oo t exp(-(t^2 + a^2)/2) I_0(at) dt: the length of a unit normal pair of offset a exceeds b.

    >>> marcum_q(0, 2).doit()
    exp(-2)
    """
    return Integral(t * exp(-(t**2 + offset**2) / 2) * besseli(0, offset * t), (t, threshold, oo))


def _normal(at: Any) -> Expr:
    return erfc(-at / sqrt(2)) / 2


def _prove_one(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    chances = [
        d.step(f"the mean of {count} is negative", Symbol(f"Phi_{count}"), _normal(-sqrt(count * theta)))
        for count in (M, K)
    ]
    d.step("the signs differ", Symbol("P"), known[EITHER_SIGN.name](*chances))
    return d


def _squared_means(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr]:
    """Of sqrt(M) U + sqrt(K) V and of their difference, both over their standard deviation sigma sqrt(2)."""
    longer, shorter = (
        d.step(f"squared mean of the {name}", Symbol(name), theta * known[POLARISED.name](sign) / 2)
        for name, sign in (("sum", 1), ("difference", -1))
    )
    return longer, shorter


def _prove_two(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    longer, shorter = _squared_means(d, known)
    d.step(
        "X <= 0 if the difference is the longer",
        Symbol("P"),
        _rice(sqrt(shorter / 2), sqrt(longer / 2), known[RICE.name]),
    )
    return d


def _rice(offset: Expr, other: Expr, share: Expr) -> Expr:
    return marcum_q(offset, other) - share * exp(-(offset**2 + other**2) / 2) * besseli(0, offset * other)


def _prove_any(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    weights = [
        d.step(f"{index} extra pairs of degrees", Symbol(f"p_{index}"), _poisson(known[MIXTURE.name] * mean, index))
        for index, mean in zip((j, k), _squared_means(d, known), strict=True)
    ]
    half = d.step(
        "the sum's share of two chi^2 is beta, and at most 1/2", Symbol("I"), _half_beta(d_ / 2 + j, d_ / 2 + k)
    )
    d.step("over both numbers", Symbol("P"), Sum(weights[0] * weights[1] * half, (j, 0, oo), (k, 0, oo)))
    return d


def _poisson(mean: Expr, count: Expr) -> Expr:
    return exp(-mean) * mean**count / factorial(count)


def _half_beta(a: Expr, b: Expr) -> Expr:
    """The regularised incomplete beta function I_{1/2}(a, b)."""
    return Integral(x ** (a - 1) * (1 - x) ** (b - 1), (x, 0, Rational(1, 2))) / beta(a, b)


def _prove_even(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    u, c, z, g = symbols("u d z g", positive=True)
    single = coordinate_cgf(u, u, c).subs(tilt, z / c)
    own = single.subs(u, 0)
    pair = d.step("exp(-K_j) of two coordinates' noise; M = K, s = z/d", Symbol("q"), factor(simplify(exp(-2 * own))))
    # All u_j = v_j, E X = sum_j u_j^2/d and sum_j u_j^2/d^2 = M theta =: 2g: mean and linear noise are one multiple of g.
    mean = factor((single - own).subs(u, sqrt(2 * g) * c) + 2 * g * z)
    d.step("the mean and what it does to the noise, g = M theta/2", Symbol("h"), mean)
    near = d.step("near the pole, z = -1 + y", Symbol("h"), cancel(mean.subs(z, y - 1)))
    constant = d.step("of which, at the pole", Symbol("h_0"), near.subs(y, 0))
    slope = d.step("and the rest is this times y/(2 - y)", Symbol("h_1"), cancel((near - constant) * (2 - y) / y))
    d.step("the integrand exp(K)/(-z)", Symbol("F"), factor(pair.subs(z, y - 1)) ** -L * exp(near) / (1 - y))
    coefficient = Sum(known[BINOMIAL.name](L + k, i), (i, 0, L - 1 - k))
    pole = exp(constant) * Sum(slope**k / factorial(k) * coefficient, (k, 0, L - 1))
    d.step("its residue: y^(L-1-k) in (2-y)^(-L-k)/(1-y), with h_1^k/k!", Symbol("residue"), pole)
    origin = d.step("the residue at z = 0", Symbol("residue"), -exp(mean.subs(z, 0)))
    enclosed = pole + origin if known[ENCLOSED.name] else pole
    d.step("those enclosed", Symbol("P"), enclosed.subs(g, M * theta / 2))
    return d


def _one() -> Expr:
    one, other = sqrt(M * theta), sqrt(K * theta)
    return _normal(one) * _normal(-other) + _normal(-one) * _normal(other)


def _two() -> Expr:
    short, long = (sqrt(theta) * (sqrt(M) + sign * sqrt(K)) / 2 for sign in (-1, 1))
    return marcum_q(Abs(short), long) - exp(-(short**2 + long**2) / 2) * besseli(0, Abs(short) * long) / 2


def _even() -> Expr:
    g = M * theta / 2
    # In this order SymPy sums right; of a partial sum of binomials with a symbolic end its doit makes a wrong number.
    inner = Sum(g**k / factorial(k), (k, 0, L - 1 - n))
    return 2 ** (1 - 2 * L) * exp(-g) * Sum(binomial(2 * L - 1, n) * inner, (n, 0, L - 1))


def _any() -> Any:
    A, B = (theta * (sqrt(M) + sign * sqrt(K)) ** 2 / 4 for sign in (1, -1))
    return Sum(_poisson(A, j) * _poisson(B, k) * _half_beta(d_ / 2 + j, d_ / 2 + k), (j, 0, oo), (k, 0, oo))


def _closed_form(name: str, title: str, parameters: tuple[Parameter, ...], conventions: str, **rest: Any) -> Formula:
    return Formula(
        id=f"alignment.{name}",
        title=title,
        symbol="Pr(X<=0)",
        parameters=parameters,
        assumptions=(w.INDEPENDENT, w.GAUSSIAN, ISOTROPIC),
        conventions="theta is per sample; " + conventions,
        source=DERIVED_HERE,
        **rest,
    )


ONE_DIMENSION = _closed_form(
    "one_dimension",
    "misalignment probability in one dimension",
    (THETA, w.M, w.K),
    "Phi(x) Phi(-y) + Phi(-x) Phi(y) at x = sqrt(M theta), y = sqrt(K theta)",
    state=_one,
    prove=_prove_one,
    axioms=(EITHER_SIGN,),
)
TWO_DIMENSIONS = _closed_form(
    "two_dimensions",
    "misalignment probability in two dimensions",
    (THETA, w.M, w.K),
    "Q_1(x, y) - exp(-(x^2+y^2)/2) I_0(xy)/2 at 2x, 2y = sqrt(theta) |sqrt(M) -+ sqrt(K)|: the difference first",
    state=_two,
    prove=_prove_two,
    axioms=(POLARISED, RICE),
)
EVEN_DIMENSION = _closed_form(
    "even_dimension",
    "misalignment probability in 2L dimensions, equal sample sizes",
    (THETA, HALF, w.M),
    "M = K; exp(-M theta/2)/2 in two dimensions",
    state=_even,
    prove=_prove_even,
    axioms=(BINOMIAL, ENCLOSED),
)
ANY_DIMENSION = _closed_form(
    "any_dimension",
    "misalignment probability in d dimensions",
    (THETA, SIZE, w.M, w.K),
    "two Poisson numbers, j for the sum and k for the difference, whose shares compare as I_{1/2}(d/2 + j, d/2 + k)",
    state=_any,
    prove=_prove_any,
    axioms=(POLARISED, MIXTURE),
)
CLOSED_FORMS = (ONE_DIMENSION, TWO_DIMENSIONS, EVEN_DIMENSION, ANY_DIMENSION)
