"""A rank-one spike added to a noise matrix: where its singular value lands, from when on, and how much of it is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer, Matrix, Piecewise, Rational, Symbol, cancel, diff, eye, factor, simplify, solve, sqrt

from ..formula import Axiom, Derivation, Formula
from ..mp.moments import moment_function, u
from ..mp.words import CAVITY, RATIO, v, y
from . import words as w

__all__ = ["LOCATION", "OVERLAP_COLUMNS", "OVERLAP_ROWS", "THRESHOLD", "noise"]

theta = w.THETA.symbol
phi_u, phi_v = Symbol("phi_u"), Symbol("phi_v")

COMPANION = Axiom(
    "companion",
    "XX' has the nonzero eigenvalues of X'X: g_rows = ratio g + (1 - ratio)/z; the rival forgets the zeros",
    lambda g, z: y * g + (1 - y) / z,
    lambda g, z: y * g,
)
RANK_ONE = Axiom(
    "rank one",
    "the spike couples (u, 0) and (0, v) in the Hermitisation by theta; the rival by theta^2",
    Matrix([[0, theta], [theta, 0]]),
    Matrix([[0, theta**2], [theta**2, 0]]),
)
SIDES = Axiom(
    "sides",
    "u has the length of a column (rows many), v that of a row; the rival exchanges them",
    lambda rows, columns: (rows, columns),
    lambda rows, columns: (columns, rows),
)
HALVES = Axiom(
    "halves",
    "an eigenvector of the Hermitisation is (u, v)/sqrt(2), its weight on u is half of the overlap; the rival forgets that",
    2,
    1,
)


def noise(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr, Expr]:
    """(z, g, u at the upper edge) of the noise alone, in the parameter u = z g - 1, g = int rho/(z-x), variance 1."""
    at = d.step("z = 1/t, variance 1", Symbol("z"), factor(1 / moment_function(d, known).subs(v, 1)))
    g = d.step("u = z g - 1", Symbol("g"), cancel((1 + u) / at))
    turning = d.step(
        "z turns at the edge", u, max(solve(diff(at, u), u), key=lambda root: root.subs(y, Rational(1, 3)))
    )
    return at, g, turning


def _coupled(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, tuple[Expr, Expr], Expr, Expr, Expr]:
    """(z, the transforms seen by u and by v, determinant, its root, u at the edge), in the parameter u of `noise`."""
    at, g, turning = noise(d, known)
    sides = known.get(SIDES.name, SIDES.value)(cancel(known.get(COMPANION.name, COMPANION.value)(g, at)), g)
    d.step("independent unit vectors see normalised traces", Symbol("(g_u, g_v)"), sides)
    # The Hermitisation [[0, A], [A', 0]] has the resolvent diag(phi_u, phi_v) between (u, 0) and (0, v), phi = sqrt(z) g.
    coupling = known.get(RANK_ONE.name, RANK_ONE.value)
    determinant = (eye(2) - coupling * Matrix([[phi_u, 0], [0, phi_v]])).det()
    d.step("det(1 - T G) of the spike T and the noise's resolvent G, phi = sqrt(z) g", Symbol("det"), determinant)
    transform = d.step("phi_u phi_v, the D-transform", Symbol("D"), cancel(at * sides[0] * sides[1]))
    determinant = determinant.subs(phi_u, transform / phi_v)
    root = d.step("the spike's singular value is where it vanishes", u, solve(determinant, u)[0])
    return at, sides, determinant, root, turning


def _detached(root: Expr, turning: Expr) -> Any:
    """Off the bulk z falls from infinity to the edge while u rises from 0 to its value there."""
    return root < turning


def _prove_location(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    at, _, _, root, turning = _coupled(d, known)
    outlier = d.step("its square", Symbol("s^2"), factor(at.subs(u, root)))
    edge = d.step("the edge", Symbol("b"), simplify(at.subs(u, turning)))
    d.step("while it is off the bulk", Symbol("s^2"), Piecewise((outlier, _detached(root, turning)), (edge, True)))
    return d


def _prove_threshold(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    _, _, determinant, _, turning = _coupled(d, known)
    roots = solve(determinant.subs(u, turning), theta)
    d.step("the singular value reaches the edge", theta, max(roots, key=lambda root: root.subs(y, Rational(1, 3))))
    return d


def _prove_overlap(side: int) -> Callable[[Mapping[str, Any]], Derivation]:
    def prove(known: Mapping[str, Any]) -> Derivation:
        d = Derivation()
        at, sides, determinant, root, turning = _coupled(d, known)
        # Its resolvent between u and u is phi_u/det, of residue phi_u/(d det/d sqrt(z)); d sqrt(z) = dz/(2 sqrt(z)).
        residue = sides[side] * diff(at, u) / (2 * diff(determinant, u))
        d.step("residue of phi/det at the root", Symbol("r"), cancel(residue))
        seen = factor(known[HALVES.name] * residue.subs(u, root))
        name = Symbol("|<u,u^>|^2" if side == 0 else "|<v,v^>|^2")
        d.step("an eigenvector is (u, v)/sqrt(2)", name, Piecewise((seen, _detached(root, turning)), (0, True)))
        return d

    return prove


def _above(outlier: Expr, below: Expr) -> Expr:
    return Piecewise((outlier, theta**4 > y), (below, True))


_EXAMPLE = {"theta": "1.2", "ratio": "0.5"}
_CONVENTIONS = (
    "A + theta u v', A of n rows and p columns with entries of variance 1/n, u and v unit vectors, ratio = p/n; for entries of "
    "variance sigma^2 theta is in units of sigma sqrt(n)"
)

THRESHOLD = Formula(
    id="spiked.threshold",
    title="least strength at which a spike leaves the bulk (rectangular)",
    symbol="theta_c",
    parameters=(replace(w.THETA, optional=True, meaning="strength to be compared with the threshold"), RATIO),
    assumptions=w.RECTANGULAR_ASSUMPTIONS,
    conventions=_CONVENTIONS + "; theta, if given, only decides whether above_threshold holds",
    source=w.PAPERS["rectangular"],
    state=lambda: y ** Rational(1, 4),
    prove=_prove_threshold,
    axioms=(CAVITY, COMPANION, RANK_ONE),
    example={"ratio": "0.5"},
)
LOCATION = Formula(
    id="spiked.location",
    title="squared singular value of a spike (rectangular)",
    symbol="s^2",
    parameters=w.RECTANGULAR,
    assumptions=w.RECTANGULAR_ASSUMPTIONS,
    conventions=_CONVENTIONS + "; the square; the upper edge (1 + sqrt(ratio))^2 where the spike is too weak",
    source=w.PAPERS["rectangular"],
    state=lambda: _above((1 + theta**2) * (y + theta**2) / theta**2, (1 + sqrt(y)) ** 2),
    prove=_prove_location,
    axioms=(CAVITY, COMPANION, RANK_ONE),
    example=_EXAMPLE,
)
OVERLAP_ROWS = Formula(
    id="spiked.overlap_rows",
    title="squared overlap of the left singular vector with the spike's",
    symbol="|<u,u^>|^2",
    parameters=w.RECTANGULAR,
    assumptions=w.RECTANGULAR_ASSUMPTIONS,
    conventions=_CONVENTIONS + "; squared; u, the left vector, has as many entries as there are rows",
    source=w.PAPERS["rectangular"],
    state=lambda: _above(1 - (y + theta**2) / (theta**2 * (theta**2 + 1)), Integer(0)),
    prove=_prove_overlap(0),
    axioms=(CAVITY, COMPANION, RANK_ONE, SIDES, HALVES),
    example=_EXAMPLE,
)
OVERLAP_COLUMNS = Formula(
    id="spiked.overlap_columns",
    title="squared overlap of the right singular vector with the spike's",
    symbol="|<v,v^>|^2",
    parameters=w.RECTANGULAR,
    assumptions=w.RECTANGULAR_ASSUMPTIONS,
    conventions=_CONVENTIONS + "; squared; v, the right vector, has as many entries as there are columns",
    source=w.PAPERS["rectangular"],
    state=lambda: _above(1 - y * (1 + theta**2) / (theta**2 * (theta**2 + y)), Integer(0)),
    prove=_prove_overlap(1),
    axioms=(CAVITY, COMPANION, RANK_ONE, SIDES, HALVES),
    example=_EXAMPLE,
)
