"""What the certificates rest on: bounds on the mean of W = (1 - lam X)^2, and how W is averaged over a sample.

`LEMMAS` are formulas that the catalogue does not list: each is derived, and notices when an axiom is broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Expr,
    Integer,
    Max,
    Rational,
    Symbol,
    cancel,
    diff,
    exp,
    expand,
    factor,
    limit,
    log,
    oo,
    simplify,
    solve,
    sqrt,
    symbols,
    sympify,
)

from ..cumulants import cumulant_of_mean
from ..formula import DERIVED_HERE, Assumption, Axiom, Derivation, Domain, Formula, Parameter
from . import words as w
from .cantelli import E, V
from .gaussian import coordinate_cgf
from .gaussian import s as tilt

__all__ = ["INDEPENDENT_PILOT", "LEMMAS", "SMALL_K", "SMALL_M"]

POSITIVE, COUNT = Domain("real", low=0, open_low=True), Domain("integer", low=1)
SMALL_K = Parameter("k", "alignments averaged in w", COUNT, typical=(1, 64))
SMALL_M = Parameter("m", "training and test samples, m of each, averaged in w", COUNT, typical=(1, 64))
KURTOSIS = Parameter("kurtosis", "E(X - E X)^4/Var(X)^2", Domain("real", low=1), typical=(1, 12), latex=r"\kappa_0")
MEAN = Parameter("mean", "mean of N nonnegative W", POSITIVE, typical=(0.1, 2), latex=r"\overline{W}")
KAP = Parameter("kap", "bound on E W^2/(E W)^2", Domain("real", low=1), typical=(1, 4), latex=r"\kappa")
LARGEST = Parameter("w_max", "largest W", POSITIVE, typical=(2, 9), latex=r"w_{\max}")
TERMS = Parameter("N", "independent terms of the mean", COUNT, typical=(50, 500))
BOUND = Parameter("b", "claimed bound", Domain("real", 0, 1), typical=(0.01, 0.9))
LAM = Parameter("lam", "weight of X", Domain("real", low=0), typical=(0.1, 2), latex=r"\lambda")
PILOT_MEAN = Parameter("yb", "mean of the pilot's y", Domain("real"), typical=(0.1, 2), latex=r"\bar y")
PILOT_VARIANCE = Parameter("s2", "unbiased variance of the y", POSITIVE, typical=(0.1, 4), latex="s^2")
PILOT = Parameter("n", "pilot samples", Domain("integer", low=2), typical=(64, 900))
PAIRS = tuple(
    Parameter(name, f"U-statistic for E {what}, k = q.q'", Domain("real"), typical=(0.1, 4))
    for name, what in (("U1", "k12"), ("A", "k12^2"), ("B", "k12 k13"), ("C", "k12 k34"))
)
m, k, x = SMALL_M.symbol, SMALL_K.symbol, Symbol("x", real=True)
lam, delta, deviation, t = LAM.symbol, w.DELTA.symbol, Symbol("e", positive=True), Symbol("t", positive=True)
first, second = symbols("m_1 m_2", positive=True)  # moments of W

INDEPENDENT_PILOT = Assumption(
    "independent_pilot", "the pilot, the training and the test sample are drawn independently"
)

JOINT = Axiom(
    "independence",
    "the certificate is independent of X: probabilities multiply; the rival adds them",
    lambda one, other: one * other,
    lambda one, other: one + other,
)
COVERAGE = Axiom("coverage", "Pr(Bh < B) <= delta; the rival takes the other tail", delta, 1 - delta)
DOMINATION = Axiom(
    "domination", "1{X<=0} <= (1 - lam X)^2 for lam >= 0; the rival halves the square", sympify(1), Rational(1, 2)
)
RAW = Axiom("second moment", "E X^2 = Var X + (E X)^2; the rival forgets the mean", V + E**2, V)
TAYLOR = Axiom("exponential", "exp(-x) <= 1 - x + x^2/2 for x >= 0; the rival has no 1/2", Rational(1, 2), sympify(1))
COPIES = Axiom(
    "independent copies",
    "cumulant generating functions of the N terms add (for a U-statistic by Hoeffding's averaging); the rival has one term",
    TERMS.symbol,
    sympify(1),
)
BY_KURTOSIS = Axiom(
    "bounded kurtosis of W",
    "E W^2 <= kap (E W)^2; the rival has the mean once",
    KAP.symbol * first**2,
    KAP.symbol * first,
)
BY_NORM = Axiom(
    "bounded W", "E W^2 <= w_max E W; the rival takes w_max^2", LARGEST.symbol * first, LARGEST.symbol**2 * first
)
MINKOWSKI = Axiom(
    "Minkowski",
    "the 4-norm of mean plus noise is at most |mean| + noise kurtosis^(1/4); the rival adds squares",
    lambda mean, noise: (mean + noise) ** 2,
    lambda mean, noise: mean**2 + noise**2,
)
NORMAL = Axiom("kurtosis", "3 + kappa_4/kappa_2^2; the rival is the excess, without 3", Integer(3), Integer(0))
UNBIASED = Axiom(
    "unbiased variance",
    "s^2 divides by n - 1: the mean of y^2 is yb^2 + (n-1)/n s^2; the rival divides by n",
    lambda n: (n - 1) / n,
    lambda n: sympify(1),
)
DISJOINT = Axiom(
    "coincidences",
    "of m^4 index patterns of X^2, m^2 share both indices and 2 m^2 (m-1) one; the rival counts those once",
    Integer(2),
    Integer(1),
)


def _prove_lemma_0(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    B, b = Symbol("B", nonnegative=True), BOUND.symbol
    joint = d.step("Pr(X<=0) <= B and Pr(Bh<=b) <= 1", Symbol("joint"), known[JOINT.name](B, Integer(1)))
    case = d.step("if B <= b, at most", Symbol("joint"), joint.subs(B, b))
    other = d.step("if B > b, Bh <= b means Bh < B, at most", Symbol("joint"), known[COVERAGE.name])
    d.step("in either case at most the larger", Symbol("joint"), Max(case, other))
    return d


def _prove_lemma_1(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    square = known[DOMINATION.name] * (1 - lam * x) ** 2
    d.step("at x = 0 the square is 1", Symbol("f(0)"), square.subs(x, 0))
    d.step("and it falls towards 0 from x < 0", Symbol("f'(x)"), factor(diff(square, x)))
    moments = {1: E, 2: known[RAW.name]}
    mean = square.subs(x, 0) + sum(expand(square).coeff(x, n) * moment for n, moment in moments.items())
    d.step("its mean", Symbol("E W"), mean)
    best = d.step("stationary weight", lam, solve(diff(mean, lam), lam)[0])
    d.step("the mean there", Symbol("B_exact"), simplify(mean.subs(lam, best)))
    return d


def _shortfall(d: Derivation, known: Mapping[str, Any]) -> Expr:
    """e with Pr(mean < E W - e) = delta, in m_2 = E W^2."""
    half, count = known[TAYLOR.name], known[COPIES.name]
    gap = 1 - x + x**2 / 2 - exp(-x)
    d.step("1 - x + x^2/2 - exp(-x) is 0 at x = 0", Symbol("f(0)"), gap.subs(x, 0))
    d.step("so is its slope", Symbol("f'(0)"), diff(gap, x).subs(x, 0))
    d.step("and it is convex for x >= 0", Symbol("f''(x)"), diff(gap, x, 2))
    single = d.step("log E exp(-tW), by 1 + u <= exp(u) at most", Symbol("h(t)"), -t * first + half * t**2 * second)
    tail = d.step("log Pr(mean <= m_1 - e), at most", Symbol("L"), expand(count * (t * (first - deviation) + single)))
    best = d.step("stationary t", t, solve(diff(tail, t), t)[0])
    least = d.step("the bound there", Symbol("L"), cancel(tail.subs(t, best)))
    return d.step("equal to log(delta)", deviation, sqrt(log(1 / delta) / cancel(-least / deviation**2)))


def _prove_lemma_2a(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    missing = _shortfall(d, known).subs(second, known[BY_KURTOSIS.name])
    upper = d.step("E W - e <= mean", Symbol("e"), simplify(missing))
    root = _largest(solve(first - upper - MEAN.symbol, first))
    d.step("solved for E W; N > 2 kap log(1/delta) keeps the sign", first, root)
    return d


def _prove_lemma_2b(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    root = Symbol("z", positive=True)
    missing = _shortfall(d, known).subs(second, known[BY_NORM.name]).subs(first, root**2)
    upper = d.step("e, with z = sqrt(E W)", Symbol("e"), simplify(missing))
    largest = _largest(solve(root**2 - upper - MEAN.symbol, root))
    d.step("z^2 - e <= mean up to the larger root, squared", first, largest**2)
    return d


def _largest(candidates: list[Expr]) -> Expr:
    """The largest at one admissible point, and so everywhere: no two of them cross. There, kurtosis > 1."""
    return max(
        candidates, key=lambda each: float(each.subs(delta, Rational(1, 2)).subs(dict.fromkeys(each.free_symbols, 2)))
    )


def _prove_lemma_3(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    c, share = (
        Symbol("c", positive=True),
        Symbol("share", positive=True),
    )  # kurtosis^(1/4); noise over mean of 1 - lam X
    fourth = d.step(
        "E W^2 = E(1 - lam X)^4, at most, at mean 1", Symbol("E W^2"), known[MINKOWSKI.name](1, c * share) ** 2
    )
    ratio = d.step("over (E W)^2", Symbol("kap"), fourth / (1 + share**2) ** 2)
    largest = _largest([limit(ratio, share, point) for point in (*solve(diff(ratio, share), share), 0, oo)])
    at_fourth_root = factor(simplify(largest)).subs(c, KURTOSIS.symbol ** Rational(1, 4))
    d.step("the largest over all lam", Symbol("kap"), at_fourth_root)
    return d


def _prove_gaussian_kurtosis(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    u, v, c = symbols("u v d", positive=True)
    cgf = coordinate_cgf(u, v, c)
    two, four = (
        d.step("of one coordinate of X", Symbol(f"kappa_{n}"), factor(simplify(diff(cgf, tilt, n).subs(tilt, 0))))
        for n in (2, 4)
    )
    most = d.step("without linear noise the ratio is", Symbol("kappa_4/kappa_2^2"), (four / two**2).subs({u: 0, v: 0}))
    d.step("which is the most: the gap", Symbol("gap"), factor(most * two**2 - four))
    d.step(
        "sums of squares are at most squared sums, so for any coordinates",
        Symbol("kurtosis"),
        known[NORMAL.name] + most,
    )
    return d


def _prove_mean_kurtosis(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    two, four = (d.step("of a mean of k", Symbol(f"kappa_{n}"), cumulant_of_mean(n, k)) for n in (2, 4))
    single = d.step("kappa_4 of one, from its kurtosis", Symbol("k_4"), (KURTOSIS.symbol - 3) * Symbol("k_2") ** 2)
    d.step("kurtosis of the mean", Symbol("kurtosis"), known[NORMAL.name] + (four / two**2).subs(Symbol("k_4"), single))
    return d


def _prove_pilot_statistic(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    yb, s2, n = PILOT_MEAN.symbol, PILOT_VARIANCE.symbol, PILOT.symbol
    square = d.step("mean of y_i^2", Symbol("Q"), yb**2 + known[UNBIASED.name](n) * s2)
    pair = d.step("mean of y_i y_j over pairs", Symbol("P"), cancel((n**2 * yb**2 - n * square) / (n * (n - 1))))
    mean = d.step("mean of the squared means of k of them", Symbol("S"), (square + (k - 1) * pair) / k)
    d.step("mean of (1 - lam mean_k)^2 over all k-subsets", Symbol("W"), 1 - 2 * lam * yb + lam**2 * mean)
    return d


def _prove_pair_statistic(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    U1, A, B, C = (each.symbol for each in PAIRS)
    placements = (m**2 * A, known[DISJOINT.name] * m**2 * (m - 1) * B, (m * (m - 1)) ** 2 * C)
    square = d.step("X^2 over index patterns: both shared, one, none", Symbol("S"), sum(placements) / m**4)
    d.step("mean of (1 - lam X)^2 over all disjoint samples", Symbol("W"), 1 - 2 * lam * U1 + lam**2 * square)
    return d


def _by_kurtosis() -> Expr:
    return MEAN.symbol / (1 - sqrt(2 * KAP.symbol * log(1 / delta) / TERMS.symbol))


def _by_norm() -> Expr:
    a = LARGEST.symbol * log(1 / delta) / (2 * TERMS.symbol)
    return (sqrt(a) + sqrt(MEAN.symbol + a)) ** 2


def _pilot_statistic() -> Expr:
    yb, s2, n = PILOT_MEAN.symbol, PILOT_VARIANCE.symbol, PILOT.symbol
    return 1 - 2 * lam * yb + lam**2 * (yb**2 - s2 / n + s2 / k)


def _pair_statistic() -> Expr:
    U1, A, B, C = (each.symbol for each in PAIRS)
    return 1 - 2 * lam * U1 + lam**2 * ((m - 1) ** 2 * C + 2 * (m - 1) * B + A) / m**2


def _lemma(
    name: str, title: str, symbol: str, parameters: tuple[Parameter, ...], conventions: str, **rest: Any
) -> Formula:
    return Formula(
        id=f"alignment.{name}",
        title=title,
        symbol=symbol,
        parameters=parameters,
        assumptions=(INDEPENDENT_PILOT,),
        conventions=conventions,
        source=DERIVED_HERE,
        **rest,
    )


_TAIL = (MEAN, TERMS, w.DELTA)
_TERMS = "W >= 0; N counts independent terms, floor(n/r) for a complete U-statistic of order r"

LEMMAS = (
    _lemma(
        "lemma_0",
        "a certificate that undercovers with probability delta",
        "Pr(X<=0, Bh<=b)",
        (BOUND, w.DELTA),
        "b is fixed beforehand, Bh is independent of X",
        state=lambda: Max(BOUND.symbol, delta),
        prove=_prove_lemma_0,
        axioms=(JOINT, COVERAGE),
    ),
    _lemma(
        "lemma_1",
        "least mean of W over lam",
        "B_exact",
        (),
        "E and V are mean and variance of X",
        state=lambda: V / (V + E**2),
        prove=_prove_lemma_1,
        axioms=(DOMINATION, RAW),
    ),
    _lemma(
        "lemma_2a",
        "upper bound on a mean, bounded kurtosis",
        "E W",
        (*_TAIL, KAP),
        _TERMS + "; N > 2 kap log(1/delta)",
        state=_by_kurtosis,
        prove=_prove_lemma_2a,
        axioms=(TAYLOR, COPIES, BY_KURTOSIS),
    ),
    _lemma(
        "lemma_2b",
        "upper bound on a mean, bounded W",
        "E W",
        (*_TAIL, LARGEST),
        _TERMS + "; both bounds fail in one event only",
        state=_by_norm,
        prove=_prove_lemma_2b,
        axioms=(TAYLOR, COPIES, BY_NORM),
    ),
    _lemma(
        "lemma_3",
        "E W^2/(E W)^2 from the kurtosis of X",
        "kap",
        (KURTOSIS,),
        "kurtosis is not in excess of 3; the same for every lam",
        state=lambda: (1 + sqrt(KURTOSIS.symbol)) ** 2,
        prove=_prove_lemma_3,
        axioms=(MINKOWSKI,),
    ),
    _lemma(
        "gaussian_kurtosis",
        "largest kurtosis of X, Gaussian gradients",
        "kurtosis",
        (),
        "over all means, covariances and sample sizes; 3 when one mean is given",
        state=lambda: Integer(9),
        prove=_prove_gaussian_kurtosis,
        axioms=(NORMAL,),
    ),
    _lemma(
        "mean_kurtosis",
        "kurtosis of a mean of k",
        "kurtosis",
        (KURTOSIS, SMALL_K),
        "kurtosis is not in excess of 3",
        state=lambda: 3 + (KURTOSIS.symbol - 3) / k,
        prove=_prove_mean_kurtosis,
        axioms=(NORMAL,),
    ),
    _lemma(
        "pilot_statistic",
        "mean of W over all groups of k pilot samples",
        "W",
        (LAM, PILOT_MEAN, PILOT_VARIANCE, PILOT, SMALL_K),
        "s2 divides by n - 1; a complete U-statistic of order k",
        state=_pilot_statistic,
        prove=_prove_pilot_statistic,
        axioms=(UNBIASED,),
    ),
    _lemma(
        "pair_statistic",
        "mean of W over all disjoint samples of m and m",
        "W",
        (LAM, *PAIRS, SMALL_M),
        "k12 = q_1 . q_2; a complete U-statistic of order 2m",
        state=_pair_statistic,
        prove=_prove_pair_statistic,
        axioms=(DISJOINT,),
    ),
)
