"""How the alignment dimension grows with width: a family with one exponent for the signal and one for a spike along it.

||mu||^2 = s N^a and Sigma = sigma^2 1 + tau^2 N^p mu^mu^', mu^ = mu/||mu||: the covariance has sigma^2 + tau^2 N^p along the mean
and sigma^2 in the other N - 1 directions. Growth like N is sufficient for nothing more than itself: it needs a = 1 and p <= 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Expr, Max, Min, Mul, Pow, Symbol, degree, symbols, sympify

from ..formula import DERIVED_HERE, Assumption, Axiom, Derivation, Domain, Formula, Parameter
from . import words as w

__all__ = ["WIDTH_EXPONENT", "family", "leading_exponent", "linear_growth"]

A = Parameter("a", "exponent of the signal, ||mu||^2 ~ N^a", Domain("real"), typical=(0.25, 2))
P = Parameter("p", "exponent of the spike along mu, ~ N^p", Domain("real"), typical=(-1, 0.5))
a, p = A.symbol, P.symbol
N, signal, sigma, tau = symbols("N s sigma tau", positive=True)

FAMILY = Assumption(
    "one_spike_along_the_mean",
    "||mu||^2 = s N^a, Sigma = sigma^2 1 + tau^2 N^p along mu, with s, sigma and tau positive and free of N",
)

SIGNAL = Axiom(
    "signal", "||mu||^2 = s N^a; the rival takes the norm itself for it", signal * N**a, signal**2 * N ** (2 * a)
)
SPIKE = Axiom(
    "spike along the mean",
    "mu'Sigma mu/||mu||^2 is the eigenvalue of the spike, sigma^2 + tau^2 N^p; the rival has the spike elsewhere",
    sigma**2 + tau**2 * N**p,
    sigma**2,
)
BULK = Axiom(
    "bulk",
    "the N - 1 directions across the mean have variance sigma^2; the rival forgets them",
    (N - 1) * sigma**4,
    sympify(0),
)
SMALLER = Axiom("smaller dimension", "d_align is the smaller of the two; the rival takes the larger", Min, Max)


def leading_exponent(expression: Expr) -> Expr:
    """e with expression ~ N^e as N -> infinity, for sums, products and powers of positive terms N^(...).

    Exponents of a product add, of a sum of positive terms the largest leads; polynomials in N, as N - 1, have their
    degree. ValueError where terms of unknown sign could cancel.

    >>> leading_exponent(3 * N**2 * (1 + N**p))
    Max(0, p) + 2
    """
    if expression.is_polynomial(N):
        return sympify(degree(expression, N))
    if isinstance(expression, Mul):
        return Add(*map(leading_exponent, expression.args))
    if isinstance(expression, Add) and all(map(_positive, expression.args)):
        return Max(*map(leading_exponent, expression.args))
    if isinstance(expression, Pow) and expression.base == N:
        return expression.exp
    if isinstance(expression, Pow) and expression.exp.is_Integer:
        inner = leading_exponent(expression.base)
        if isinstance(inner, Max) and expression.exp > 0:  # a positive factor goes into the maximum
            return Max(*(expression.exp * each for each in inner.args))
        return expression.exp * inner
    raise ValueError(f"the leading power of N in {expression} is not decided term by term")


def _positive(term: Expr) -> bool:
    """For large N; SymPy does not know that N - 1 is."""
    return bool(term.subs(N, 1 + Symbol("n", positive=True)).is_positive)


def family(known: Mapping[str, Any] | None = None) -> tuple[Expr, Expr, Expr]:
    """(||mu||^2, mu'Sigma mu, tr Sigma^2) of the family at width N.

    >>> family()[2]
    sigma**4*(N - 1) + (N**p*tau**2 + sigma**2)**2
    """
    energy, spike, bulk = (axiom.value if known is None else known[axiom.name] for axiom in (SIGNAL, SPIKE, BULK))
    return energy, energy * spike, bulk + spike**2


def _prove(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    names = (w.ENERGY, w.QUADRATIC, w.TRACE_SQUARED)
    whys = ("the signal", "the eigenvalue along the mean", "the square of every eigenvalue")
    values = [d.step(why, name, value) for why, name, value in zip(whys, names, family(known), strict=True)]
    inside = dict(zip((w.ENERGY, w.QUADRATIC, w.TRACE_SQUARED), values, strict=True))
    exponents = []
    for letter, noise in (("d_parallel", w.QUADRATIC), ("d_2", w.TRACE_SQUARED)):
        dimension = d.step("its definition", Symbol(letter), w.ENERGY**2 / noise)
        at_width = d.step("in the family", Symbol(letter), dimension.subs(inside))
        exponents.append(d.step("leading power of N", Symbol(f"exponent of {letter}"), leading_exponent(at_width)))
    d.step("the smaller dimension grows with the smaller exponent", Symbol("exponent"), known[SMALLER.name](*exponents))
    return d


def linear_growth() -> Derivation:
    """Sufficient for growth like N: ||mu||^2 = s N and ||Sigma|| <= L give d_align >= N min(s/L, (s/L)^2).

    A covariance of norm L has mu'Sigma mu <= L ||mu||^2 and tr(Sigma^2) <= N L^2; both dimensions fall with these. It is not
    necessary: a spike of size N^p, p <= 0, along other directions leaves the exponent at 1.

    >>> print(linear_growth().result)
    N*Min(s**2/L**2, s/L)
    """
    d = Derivation()
    largest = Symbol("L", positive=True)
    energy = d.step("the signal", w.ENERGY, signal * N)
    along = d.step("at most, with L the largest eigenvalue", w.QUADRATIC, largest * energy)
    square = d.step("at most, N eigenvalues of at most L", w.TRACE_SQUARED, N * largest**2)
    first = d.step("at least", Symbol("d_parallel"), energy**2 / along)
    second = d.step("at least", Symbol("d_2"), energy**2 / square)
    d.step("the smaller, at least", Symbol("d_align"), N * Min(first / N, second / N))
    return d


WIDTH_EXPONENT = Formula(
    id="alignment.width_exponent",
    title="growth exponent of the alignment dimension with width",
    symbol="exponent",
    parameters=(A, P),
    assumptions=(FAMILY,),
    conventions="d_align ~ N^exponent as the width N -> infinity, per sample; a is the exponent of the squared norm; slopes at "
    "finite N approach it slowly where two terms are close",
    source=DERIVED_HERE,
    state=lambda: Min(a - Max(p, 0), 2 * a - Max(1, 2 * p)),
    prove=_prove,
    axioms=(SIGNAL, SPIKE, BULK, SMALLER),
    example={"a": "1", "p": "0.5"},
)
