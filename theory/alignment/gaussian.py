"""The misalignment probability of Gaussian gradients, and two bounds on it that hold for sub-Gaussian ones.

Rotations that diagonalise S^(1/2) T^(1/2) = P diag(sigma) Q' split X = mu_M . g_K into independent coordinates, each with a
cumulant generating function in closed form. With beta = P'S^(1/2) b and alpha = Q'T^(1/2) a, per sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import (
    Expr,
    I,
    IndexedBase,
    Integral,
    Matrix,
    MatrixSymbol,
    Rational,
    Sum,
    Symbol,
    cancel,
    diff,
    exp,
    factor,
    integrate,
    log,
    oo,
    pi,
    simplify,
    sqrt,
    symbols,
    sympify,
)

from ..formula import DERIVED_HERE, Axiom, Derivation, Formula
from ..words import Word
from . import words as w
from .moments import variance_of

__all__ = ["BERNSTEIN", "CHERNOFF", "GAUSSIAN", "Infimum", "coordinate_cgf"]

M, K = w.M.symbol, w.K.symbol
s, x = Symbol("s"), Symbol("x", real=True)
t = Symbol("t", positive=True)
j = Symbol("j", integer=True)
RANK = Symbol("r", integer=True, positive=True)
OFFSET = Symbol("s_0", negative=True)
ALPHA, BETA, SIGMA = (IndexedBase(name) for name in ("alpha", "beta", "sigma"))
LARGEST = Word(
    "||S^(1/2) T^(1/2)||", r"\lVert S^{1/2} T^{1/2}\rVert", positive=True
)  # the operator norm, max_j sigma_j


class Infimum(Expr):
    """The infimum of `body` over low < variable < high, unevaluated.

    >>> print(Infimum((s - 1) ** 2, s, 0, oo))
    inf((s - 1)**2, 0 < s < oo)
    """

    def __new__(cls, body: Expr, variable: Symbol, low: Any, high: Any) -> Infimum:
        """Of a SymPy expression, in one of its symbols."""
        return super().__new__(cls, *map(sympify, (body, variable, low, high)))

    @property
    def free_symbols(self) -> set[Any]:
        """Those of the body but for the variable, and those of the ends."""
        body, variable, low, high = self.args
        return (body.free_symbols - {variable}) | low.free_symbols | high.free_symbols

    def _sympystr(self, printer: Any) -> str:
        body, variable, low, high = (printer._print(each) for each in self.args)
        return f"inf({body}, {low} < {variable} < {high})"

    def _pretty(self, printer: Any) -> Any:
        from sympy.printing.pretty.stringpict import prettyForm, stringPict

        body, variable, low, high = (printer._print(each) for each in self.args)
        under = prettyForm(*stringPict.next(low, " < ", variable, " < ", high))
        return prettyForm(*stringPict.next(prettyForm(*prettyForm("inf").below(under)), " ", body))

    def _latex(self, printer: Any) -> str:
        body, variable, low, high = (printer._print(each) for each in self.args)
        return rf"\inf_{{{low} < {variable} < {high}}} {body}"

    def _mathml_presentation(self, printer: Any) -> Any:
        body, variable, low, high = (printer._print(each) for each in self.args)
        less = [printer.dom.createElement("mo") for _ in range(2)]
        for sign in less:
            sign.appendChild(printer.dom.createTextNode("&lt;"))  # SymPy's printer writes text unescaped
        name = printer.dom.createElement("mo")
        name.appendChild(printer.dom.createTextNode("inf"))
        row, under, whole = (printer.dom.createElement(tag) for tag in ("mrow", "munder", "mrow"))
        for parent, children in (
            (row, (low, less[0], variable, less[1], high)),
            (under, (name, row)),
            (whole, (under, body)),
        ):
            for child in children:
                parent.appendChild(child)
        return whole


SIZES = Axiom(
    "two sample sizes",
    "the training mean has covariance S/M, the test mean T/K; the rival exchanges the sizes",
    (M, K),
    (K, M),
)
PRODUCTS = Axiom(
    "singular values",
    "noise times noise: in the rotated basis the coefficient of xi_j eta_j is sigma_j; the rival forgets it",
    lambda sigma: sigma,
    lambda sigma: 0 * sigma,
)
DETERMINANT = Axiom(
    "Gaussian integral",
    "E exp(x'Bx/2 + h'x) over a standard normal pair is det(A)^(-1/2) exp(h'A^(-1) h/2), A = 1 - B; the rival is the integral of "
    "a single variable twice, det(A)^(-1)",
    Rational(-1, 2),
    Rational(-1),
)
ADDITIVE = Axiom(
    "independent coordinates",
    "cumulant generating functions of independent terms add; the rival counts every coordinate twice",
    lambda term: Sum(term, (j, 1, RANK)),
    lambda term: 2 * Sum(term, (j, 1, RANK)),
)
EVENT = Axiom("misalignment", "the event is X <= 0; the rival is X >= 0", -1, 1)
PROXY = Axiom(
    "sub-Gaussian gradients",
    "E exp(w'(q - E q)) <= exp(w'Sigma w/2), with equality for Gaussian ones; the rival forgets the 1/2",
    Rational(1, 2),
    Rational(1),
)
COORDINATE_BOUND = Axiom(
    "bound of one coordinate",
    "K_j(-t) <= t^2 V_j/(2(1 - t d)) with V_j its variance; the rival is the normal law's t^2 V_j/2",
    lambda variance, d: t**2 * variance / (2 * (1 - t * d)),
    lambda variance, d: t**2 * variance / 2,
)
VARIANCE = Axiom(
    "variance of X",
    "Var X = b'Sb/M + a'Ta/K + tr(ST)/(MK); the rival drops the trace",
    variance_of(w.ATA, w.BSB, w.TR_ST, 1 / M, 1 / K),
    variance_of(w.ATA, w.BSB, 0, 1 / M, 1 / K),
)
LARGEST_COORDINATE = Axiom(
    "largest coordinate",
    "max_j d_j = ||S^(1/2) T^(1/2)||/sqrt(MK), the operator norm; the rival is per sample",
    LARGEST / sqrt(M * K),
    LARGEST,
)


def coordinate_cgf(u: Any, v: Any, d: Any, power: Any = DETERMINANT.value) -> Expr:
    """log E exp(s (u xi + v eta + d xi eta)) for independent standard normal xi, eta and abs(s d) < 1.

    >>> u, v, d = symbols("u v d")
    >>> coordinate_cgf(u, v, d).series(s, 0, 3).removeO().coeff(s, 2)
    d**2/2 + u**2/2 + v**2/2
    """
    form, linear = Matrix([[1, -s * d], [-s * d, 1]]), Matrix([s * u, s * v])
    return power * log(form.det()) + cancel((linear.T * form.inv() * linear)[0] / 2)


def _coordinates(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr, Expr]:
    """The coefficients u_j, v_j, d_j of X = a'b + sum_j (u_j xi_j + v_j eta_j + d_j xi_j eta_j), recorded in `d`."""
    size = Symbol("n", integer=True, positive=True)
    train, test = known[SIZES.name]
    a, b, xi, eta = (MatrixSymbol(name, size, 1) for name in ("a", "b", "xi", "eta"))
    A, B, P, Q = (MatrixSymbol(name, size, size) for name in ("A", "B", "P", "Q"))
    left: Any = a + A * P * xi / sqrt(train)
    right: Any = b + B * Q * eta / sqrt(test)
    whole = d.step("A A' = S, B B' = T; P and Q rotate the standard normal xi, eta", Symbol("X"), left.T * right)
    terms = d.step("multiplied out", Symbol("X"), whole.doit().expand())
    coefficients = {product: scalar for scalar, product in (term.as_coeff_mmul() for term in terms.args)}
    where = {
        "beta_j": (xi.T * P.T * A.T * b, BETA[j]),
        "alpha_j": (a.T * B * Q * eta, ALPHA[j]),
        "sigma_j": (xi.T * P.T * A.T * B * Q * eta, known[PRODUCTS.name](SIGMA[j])),
    }
    d.step("the singular value decomposition", A.T * B, P * MatrixSymbol("diag(sigma)", size, size) * Q.T)
    return tuple(
        d.step(f"in coordinates, {name} times its noise", Symbol(letter), coefficients[product] * entry)
        for letter, (name, (product, entry)) in zip(("u_j", "v_j", "d_j"), where.items(), strict=True)
    )


def _total(d: Derivation, known: Mapping[str, Any], term: Expr) -> Expr:
    term = d.step("one coordinate", Symbol("K_j(s)"), _tidy(term))
    return d.step("the mean, and the coordinates added", Symbol("K(s)"), s * w.AB + known[ADDITIVE.name](term))


def _tidy(term: Expr) -> Expr:
    """Logarithm and rest apart, each over one denominator."""
    logarithm, rest = term.as_independent(log, as_Add=True)[::-1]
    return logarithm.replace(log, lambda inside: log(simplify(inside).expand())) + factor(simplify(rest))


def _prove_gaussian(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    coefficients = _coordinates(d, known)
    u, v, c = symbols("u_j v_j d_j", positive=True)
    form = Matrix([[1, -s * c], [-s * c, 1]])
    d.step("(xi, eta)A(xi, eta)'/2 is the density's exponent less s d_j xi eta", Symbol("A"), form)
    d.step("its determinant", Symbol("det"), form.det())
    d.step("its inverse", Symbol("A^-1"), form.inv())
    general = d.step("the Gaussian integral", Symbol("K_j(s)"), coordinate_cgf(u, v, c, known[DETERMINANT.name]))
    total = _total(d, known, general.subs(dict(zip((u, v, c), coefficients, strict=True)), simultaneous=True))
    side = known[EVENT.name]
    transform = integrate(exp(-t * x), (x, 0, oo)).subs(t, side * s)
    d.step("the event's indicator at x, transformed by exp(-sx)", Symbol("L(s)"), transform)
    integral = Integral(exp(total) * transform, (s, OFFSET - I * oo, OFFSET + I * oo)) / (2 * pi * I)
    d.step("transformed back along Re s = s_0, and averaged over X", Symbol("P"), integral)
    return d


def _prove_chernoff(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    coefficients = _coordinates(d, known)
    u, v, c = symbols("u_j v_j d_j", positive=True)
    half = known[PROXY.name]
    g = Symbol("g", real=True)
    d.step("over the test noise, U given", Symbol("log E_eta"), half * s**2 * (v + c * x) ** 2)
    # exp(h^2/2) = E exp(h g) makes the exponent linear in xi, so that the proxy applies once more.
    slope = d.step("made linear by a standard normal g", Symbol("h"), sqrt(2 * half) * s * (v + c * x))
    inner = d.step(
        "over the training noise", Symbol("log E_xi"), slope.subs(x, 0) * g + half * (s * u + diff(slope, x) * g) ** 2
    )
    square, line, rest = (inner.expand().coeff(g, power) for power in (2, 1, 0))
    spread = d.step("over g: exp(q g^2/2) leaves", Symbol("q"), cancel(1 - 2 * square))
    term = -log(spread) / 2 + line**2 / (2 * spread) + rest
    total = _total(d, known, term.subs(dict(zip((u, v, c), coefficients, strict=True)), simultaneous=True))
    side = known[EVENT.name]
    d.step(
        "exp(sX) is 1 at X = 0 and at least 1 on the event if its slope points there",
        Symbol("slope"),
        diff(exp(s * x), x),
    )
    end = side * sqrt(M * K) / LARGEST
    low, high = (end, 0) if side < 0 else (0, end)
    d.step("the best s of the sign that the event asks for", Symbol("B"), Infimum(exp(total), s, low, high))
    return d


def _prove_bernstein(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    E, V, D, u, v, c = symbols("E V D u v d", positive=True)
    own = coordinate_cgf(u, v, c).subs(s, -t)
    d.step("one coordinate at s = -t", Symbol("K_j(-t)"), own)
    gap = x**2 / (1 - x) + log(1 - x**2)
    d.step("-log(1-x^2) <= x^2/(1-x) on 0 <= x < 1: the gap starts at", Symbol("G(0)"), gap.subs(x, 0))
    d.step("and grows", Symbol("G'(x)"), factor(diff(gap, x)))
    quadratic = (1 + x) * (u**2 + v**2) - (u**2 + v**2 - 2 * x * u * v)
    d.step("u^2+v^2-2xuv <= (1+x)(u^2+v^2): the gap is", Symbol("H(x)"), factor(quadratic))
    bound = known[COORDINATE_BOUND.name]
    d.step("both, at x = td", Symbol("K_j(-t) at most"), bound(u**2 + v**2 + c**2, c))
    total = d.step("summed, with D the largest d_j", Symbol("K(-t) at most"), -t * E + bound(V, D))
    best = d.step("near the least, and below 1/D", t, E / (V + D * E))
    exponent = d.step("inserted", Symbol("log B"), simplify(total.subs(t, best)))
    inside = {E: w.AB, V: known[VARIANCE.name], D: known[LARGEST_COORDINATE.name]}
    d.step("in words", Symbol("B"), exp(exponent.subs(inside)))
    return d


def _cgf() -> Expr:
    spread = M * K - s**2 * SIGMA[j] ** 2
    shift = K * BETA[j] ** 2 + M * ALPHA[j] ** 2 + 2 * s * ALPHA[j] * BETA[j] * SIGMA[j]
    return s * w.AB + Sum(-log(spread / (M * K)) / 2 + s**2 * shift / (2 * spread), (j, 1, RANK))


def _gaussian() -> Expr:
    return Integral(-exp(_cgf()) / s, (s, OFFSET - I * oo, OFFSET + I * oo)) / (2 * pi * I)


def _chernoff() -> Expr:
    return Infimum(exp(_cgf()), s, -sqrt(M * K) / LARGEST, 0)


def _bernstein() -> Expr:
    V = variance_of(w.ATA, w.BSB, w.TR_ST, 1 / M, 1 / K)
    return exp(-(w.AB**2) / (2 * (V + w.AB * LARGEST / sqrt(M * K))))


_COORDINATES = (
    "per sample: P diag(sigma) Q' = S^(1/2) T^(1/2), beta = P'S^(1/2) b, alpha = Q'T^(1/2) a; r is their dimension"
)
_BOUND = "; the bound is 1 where a'b <= 0; Sigma may be a variance proxy, of any sub-Gaussian law"

GAUSSIAN = Formula(
    id="alignment.gaussian",
    title="misalignment probability of Gaussian gradients",
    symbol="Pr(X<=0)",
    parameters=w.PAIR,
    assumptions=(w.INDEPENDENT, w.GAUSSIAN),
    conventions="X <= 0, an atom at 0 counts; any s_0 with -sqrt(MK)/max sigma < s_0 < 0 gives the same; "
    + _COORDINATES,
    source=DERIVED_HERE,
    state=_gaussian,
    prove=_prove_gaussian,
    axioms=(SIZES, PRODUCTS, DETERMINANT, ADDITIVE, EVENT),
    example=w.EXAMPLE,
)
CHERNOFF = Formula(
    id="alignment.chernoff",
    title="Chernoff bound on the misalignment probability, sub-Gaussian gradients",
    symbol="B_subG",
    parameters=w.PAIR,
    assumptions=(w.INDEPENDENT, w.SUB_GAUSSIAN, w.ALIGNED),
    conventions=_COORDINATES + _BOUND,
    source=DERIVED_HERE,
    state=_chernoff,
    prove=_prove_chernoff,
    axioms=(SIZES, PRODUCTS, PROXY, ADDITIVE, EVENT),
    example=w.EXAMPLE,
)
BERNSTEIN = Formula(
    id="alignment.bernstein",
    title="Bernstein bound on the misalignment probability, sub-Gaussian gradients",
    symbol="B_bern",
    parameters=w.PAIR,
    assumptions=(w.INDEPENDENT, w.SUB_GAUSSIAN, w.ALIGNED),
    conventions="per sample; the norm of S^(1/2) T^(1/2) is the largest singular value, not the Frobenius norm"
    + _BOUND,
    source=DERIVED_HERE,
    state=_bernstein,
    prove=_prove_bernstein,
    axioms=(COORDINATE_BOUND, VARIANCE, LARGEST_COORDINATE),
    example=w.EXAMPLE,
)
