"""Edgeworth's expansion of the misalignment probability: the normal law, corrected by the third and fourth cumulants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Expr,
    I,
    Rational,
    Symbol,
    diff,
    erfc,
    exp,
    expand,
    factor,
    hermite_prob,
    integrate,
    oo,
    pi,
    series,
    simplify,
    sqrt,
    symbols,
)

from ..cumulants import kappa
from ..formula import DERIVED_HERE, Axiom, Derivation, Formula
from ..words import Word
from . import words as w

__all__ = ["EDGEWORTH"]

M, K = w.M.symbol, w.K.symbol
x, tau = symbols("x tau", real=True)
skew, excess = symbols("g l", real=True)
order = Symbol("epsilon", positive=True)

VARIANCE = Word("Var[X]", r"\operatorname{Var}[X]", positive=True)
THIRD = Word("kappa_3", r"\kappa_3")
FOURTH = Word("kappa_4", r"\kappa_4")

ORDERS = Axiom(
    "orders of the cumulants",
    "standardised cumulants of a sum of n terms fall like n^(-1/2) and 1/n, so g^2 counts with l; the rival gives both the order "
    "1/n, and g^2 is lost",
    (1, 2),
    (2, 2),
)
STANDARD = Axiom(
    "standardised cumulants",
    "g = kappa_3/sd^3 and l = kappa_4/sd^4; the rival divides both by the variance",
    (Rational(3, 2), 2),
    (1, 1),
)
EVENT = Axiom(
    "misalignment",
    "X <= 0 is (X - E)/sd <= -E/sd; the rival has the other sign, and so one minus the probability",
    -1,
    1,
)


def _normal(at: Any) -> Expr:
    return exp(-(at**2) / 2) / sqrt(2 * pi)


def _prove(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    for number in (3, 4):
        d.step(f"cumulant {number} of Gaussian gradients", Symbol(f"kappa_{number}"), expand(kappa(number, M, K)))
    first, second = known[ORDERS.name]
    u = I * tau
    exponent = d.step(
        "logarithm of the standardised characteristic function, less the normal one",
        Symbol("h"),
        order**first * skew * u**3 / 6 + order**second * excess * u**4 / 24,
    )
    truncated = series(exp(exponent), order, 0, 3).removeO().subs(order, 1)
    d.step("its exponential, to the order of l", Symbol("exp(h)"), expand(truncated))
    # (i tau)^n times the normal characteristic function is the transform of (-d/dx)^n of the density.
    coefficients = {n: expand(truncated).coeff(tau, n) / I**n for n in (3, 4, 6)}
    density = _normal(x)
    terms = [c * (-1) ** n * diff(density, x, n - 1) for n, c in coefficients.items()]
    correction = d.step(
        "transformed back and integrated up to x: (i tau)^n becomes -He_(n-1) times the density",
        Symbol("F(x) - Phi(x)"),
        factor(sum(terms) / density) * density,
    )
    normal = d.step("the normal part", Symbol("Phi(x)"), simplify(integrate(density, (x, -oo, x)).rewrite(erfc)))
    point = d.step("misalignment in standard deviations", x, known[EVENT.name] * w.AB / sqrt(VARIANCE))
    third, fourth = known[STANDARD.name]
    inside = {skew: THIRD / VARIANCE**third, excess: FOURTH / VARIANCE**fourth}
    d.step("inserted", Symbol("P"), (normal + correction).subs(inside).subs(x, point))
    return d


def _state() -> Expr:
    at = -w.AB / sqrt(VARIANCE)
    third, fourth = THIRD / VARIANCE ** Rational(3, 2), FOURTH / VARIANCE**2
    terms = (third / 6 * hermite_prob(2, at), fourth / 24 * hermite_prob(3, at), third**2 / 72 * hermite_prob(5, at))
    return erfc(-at / sqrt(2)) / 2 - _normal(at) * sum(terms)


EDGEWORTH = Formula(
    id="alignment.edgeworth",
    title="Edgeworth expansion of the misalignment probability, Gaussian gradients",
    symbol="Pr(X<=0)",
    parameters=w.PAIR,
    assumptions=(w.INDEPENDENT, w.GAUSSIAN),
    conventions="three terms, with the probabilists' He_2, He_3 and He_5; Var[X], kappa_3 and kappa_4 are alignment.variance, "
    ".third_cumulant and .fourth_cumulant; an approximation where (E X)^2/Var X is below about 4, returned raw: it can leave "
    "[0, 1]",
    source=DERIVED_HERE,
    state=_state,
    prove=_prove,
    axioms=(ORDERS, STANDARD, EVENT),
    example=w.EXAMPLE,
)
