"""Spectral Bregman divergences of the path kernel from the identity, and what of them PathCond minimises.

P = J J' and G = J' J have the same non-zero spectrum, so d(P || I) - d(G || I) = (q - p) f(0) and no more than that: for
the LogDet divergence f(0) is infinite, and both sides are (G is singular, rank p - H). What is finite, and minimised, is
the scale-optimised LogDet divergence of the diagonal of G' from the identity: p log(AM(g')/GM(g')).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sympy import (
    Expr,
    Integer,
    Matrix,
    Poly,
    Symbol,
    diff,
    exp,
    expand,
    expand_log,
    limit,
    log,
    oo,
    simplify,
    solve,
    sqrt,
)

from ..formula import DERIVED_HERE, Axiom, Derivation, Domain, Formula, InputError, Parameter, Source
from ..words import Word

__all__ = ["CONDITION_BOUND", "GAP", "GENERATORS", "SEED", "condition_from_gap", "criterion", "difference", "generator"]

SEED = Source("Path-conditioned training: a principled way to rescale ReLU neural networks", place="seed 003")

eigenvalue = Symbol("lambda", positive=True)
GENERATORS: Mapping[str, Callable[[Any], Any]] = {
    "frobenius": lambda x: x**2 / 2,
    "von_neumann": lambda x: x * log(x) - x,
    "logdet": lambda x: -log(x),
}
"""The convex functions zeta of an eigenvalue that generate the three divergences."""


def generator(zeta: Callable[[Any], Any]) -> Expr:
    """f(lambda) = zeta(lambda) - zeta(1) - zeta'(1) (lambda - 1): what one eigenvalue adds to d(X || I) = sum f(lambda_i).

    >>> [generator(GENERATORS[name]) for name in ("frobenius", "logdet")]
    [lambda**2/2 - lambda + 1/2, lambda - log(lambda) - 1]
    """
    at = zeta(eigenvalue)
    return expand(at - at.subs(eigenvalue, 1) - diff(at, eigenvalue).subs(eigenvalue, 1) * (eigenvalue - 1))


def difference(name: str, paths: int, parameters: int) -> Expr:
    """d(P || I) - d(G || I) = (q - p) f(0), for q paths and p parameters; f(0) is 1/2, 1 and infinity. Derived here.

    oo says that the LogDet equality is "infinity = infinity": neither side is finite where q > p, nor, G being singular,
    where there is a unit to rescale.

    >>> [difference(name, 70, 32) for name in GENERATORS]
    [19, 38, oo]
    """
    if name not in GENERATORS:
        raise InputError(f"the divergences are {', '.join(GENERATORS)}; got {name!r}")
    at_zero = limit(generator(GENERATORS[name]), eigenvalue, 0, "+")
    return (paths - parameters) * at_zero if paths != parameters or at_zero != oo else Integer(0)


def criterion(g: Sequence[Any], B: Matrix, z: Sequence[Any]) -> tuple[Expr, Matrix, Matrix]:
    """(F, gradient, Hessian) of F(z) = p log sum_i g_i e^((Bz)_i) - sum_i (Bz)_i, symbolic.

    B (p x H) as `Graph.rescalings`. The gradient is p (B' pi) - B' 1 with the shares pi = g'/sum g', the Hessian p times
    the covariance of the rows of B under pi: positive semidefinite, so F is convex. Seed 003; the Hessian is derived here.

    >>> from sympy import symbols
    >>> F, gradient, _ = criterion((4, 1), Matrix([[-1], [1]]), [symbols("z", real=True)])
    >>> solve(gradient[0])
    [log(2)]
    """
    p, size = B.shape
    rows = B * Matrix(size, 1, list(z))
    masses = [g[i] * exp(rows[i]) for i in range(p)]
    total = sum(masses)
    pi = Matrix([mass / total for mass in masses])
    ones = Matrix([1] * p)
    value = p * log(total) - sum(rows)
    mean = B.T * pi
    spread = B.T * Matrix.diag(*pi) * B - mean * mean.T
    return value, p * mean - B.T * ones, p * spread


DIAGONAL = Parameter(
    "diagonal", "g of each parameter", Domain("vector", low=0, open_low=True), typical=(0.05, 4), latex="g"
)
MEAN, MEAN_LOG = Word("mean g", r"\overline{g}", positive=True), Word("mean log g", r"\overline{\log g}")
g, a, log_g = Symbol("g", positive=True), Symbol("a", positive=True), Symbol("log g")
WORDS: Mapping[tuple[int, ...], Any] = {
    (0, 0): 1,
    (1, 0): MEAN,
    (0, 1): MEAN_LOG,
    (1, 1): Word("mean g log g"),
    (2, 0): Word("mean g^2"),
}
"""The mean over the parameters of g^i (log g)^j."""

LOGDET = Axiom(
    "LogDet",
    "zeta(lambda) = -log lambda; the rival is the von Neumann generator",
    GENERATORS["logdet"],
    GENERATORS["von_neumann"],
)
TANGENT = Axiom(
    "Bregman divergence",
    "f is zeta minus its tangent at 1; the rival takes zeta itself",
    generator,
    lambda zeta: zeta(eigenvalue),
)


def _prove_gap(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    f = d.step("one eigenvalue's share", Symbol("f"), known[TANGENT.name](known[LOGDET.name]))
    terms = Poly(expand_log(f.subs(eigenvalue, a * g)).expand().subs(log(g), log_g), g, log_g)
    averaged = sum((factor * WORDS[power] for power, factor in terms.terms()), Integer(0))
    d.step("of a diag(g), averaged over the p parameters", Symbol("d(a diag g || I)/p"), averaged)
    scale = solve(diff(averaged, a), a)
    best = averaged.subs(a, scale[0]) if scale else averaged
    d.step("least over the scale a", Symbol("gap"), expand(expand_log(simplify(best), force=True)))
    return d


GAP = Formula(
    id="path.gap",
    title="spread of diag G: the PathCond criterion per parameter",
    symbol="gap",
    parameters=(DIAGONAL,),
    assumptions=(),
    conventions=(
        "log of arithmetic over geometric mean of g over the parameters with g > 0, natural logarithm; g_i is the sum over "
        "paths through i of the squared product of the other parameters; p times it is F minus sum log g plus a constant"
    ),
    source=DERIVED_HERE,
    state=lambda: log(MEAN) - MEAN_LOG,
    prove=_prove_gap,
    axioms=(LOGDET, TANGENT),
    example={"diagonal": "4,1"},
)

GAP_VALUE = Parameter("gap", "log(AM/GM) of the eigenvalues", Domain("real", low=0), typical=(0.01, 1))
COUNT = Parameter("parameters", "number of eigenvalues n", Domain("integer", low=2), typical=(2, 12), latex="n")
n, gap = COUNT.symbol, GAP_VALUE.symbol
kappa, x, K = Symbol("kappa", positive=True), Symbol("x", positive=True), Symbol("K", positive=True)

EACH = Axiom(
    "K of a spectrum",
    "gap is log K for each of the n eigenvalues, K = (arithmetic mean)^n / product; the rival takes it for log K",
    lambda gap: exp(n * gap),
    lambda gap: exp(gap) + 0 * n,
)


def condition_from_gap(K: Any) -> Any:
    """(sqrt K + sqrt(K-1))^2, at most 4K; on symbols and numbers alike."""
    return (sqrt(K) + sqrt(K - 1)) ** 2


def _prove_condition(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    log_k = n * log((1 + kappa + (n - 2) * x) / n) - log(kappa) - (n - 2) * log(x)
    d.step("extremes 1 and kappa, the n - 2 others at x", Symbol("log K"), log_k)
    best = d.step("the best place of the others", x, solve(diff(log_k, x), x)[0])
    least = simplify(expand_log(log_k.subs(x, best), force=True))
    K_least = d.step("so K is at least", Symbol("K_min"), simplify(exp(least)))
    roots = solve(K_least - K, kappa)
    bound = d.step("solved for the larger kappa", kappa, next(root for root in roots if root.subs(K, 4) > 1))
    d.step("K from the gap", kappa, bound.subs(K, known[EACH.name](gap)))
    return d


CONDITION_BOUND = Formula(
    id="path.condition_bound",
    title="largest condition number that a gap allows",
    symbol="kappa_max",
    parameters=(GAP_VALUE, COUNT),
    assumptions=(),
    conventions=(
        "kappa is largest over smallest of n positive numbers whose log(AM/GM) is gap: of diag G, or of the non-zero spectrum "
        "of G; very loose for many parameters, and kappa of G need not fall when the gap does"
    ),
    source=DERIVED_HERE,
    state=lambda: condition_from_gap(exp(n * gap)),
    prove=_prove_condition,
    axioms=(EACH,),
    example={"gap": "0.25", "parameters": "8"},
)
