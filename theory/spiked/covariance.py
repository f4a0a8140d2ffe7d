"""One population eigenvalue that differs from the others: where it lands in the sample, from when on, and its overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Abs, Expr, Piecewise, Symbol, cancel, diff, factor, simplify, solve, sqrt

from ..formula import Axiom, Derivation, Formula
from ..mp.moments import u
from ..mp.words import CAVITY, RATIO, y
from . import words as w
from .rectangular import noise

__all__ = ["COVARIANCE_LOCATION", "COVARIANCE_OVERLAP", "COVARIANCE_THRESHOLD"]

ell = w.ELL.symbol

MULTIPLICATIVE = Axiom(
    "multiplicative spike",
    "S = P S0 P with P^2 = 1 + (ell - 1) v v', so z - S = P (z P^-2 - S0) P and z P^-2 = z - z (1 - 1/ell) v v'; "
    "the rival adds (ell - 1) v v' to S0",
    lambda z: z * (1 - 1 / ell),
    lambda z: ell - 1,
)
BACK = Axiom("back to v", "v'P^-1 ... P^-1 v carries 1/ell; the rival forgets it", 1 / ell, 1)


def _coupled(d: Derivation, known: Mapping[str, Any]) -> tuple[Expr, Expr, Expr, Expr, Expr]:
    """(z, g, determinant, its root, u at the upper edge), in the parameter u of `noise`."""
    at, g, turning = noise(d, known)
    determinant = cancel(1 - known[MULTIPLICATIVE.name](at) * g)
    d.step("an independent v sees g; det of the rank-one change", Symbol("det"), determinant)
    root = d.step("the spike's eigenvalue is where it vanishes", u, solve(determinant, u)[0])
    return at, g, determinant, root, turning


def _prove_location(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    at, _, _, root, turning = _coupled(d, known)
    outlier = d.step("the eigenvalue", Symbol("lambda"), factor(at.subs(u, root)))
    upper = d.step("the upper edge", Symbol("b"), simplify(at.subs(u, turning)))
    lower = d.step("the lower edge, where u has the other sign", Symbol("a"), simplify(at.subs(u, -turning)))
    beyond = Abs(root) < turning
    d.step("while it is off the bulk", Symbol("lambda"), Piecewise((outlier, beyond), (upper, root > 0), (lower, True)))
    return d


def _prove_threshold(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    _, _, determinant, _, turning = _coupled(d, known)
    d.step("the eigenvalue reaches the upper edge", ell, solve(determinant.subs(u, turning), ell)[0])
    return d


def _prove_overlap(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    at, g, determinant, root, turning = _coupled(d, known)
    residue = d.step("residue of g/det at the root", Symbol("r"), cancel(g * diff(at, u) / diff(determinant, u)))
    seen = factor(known[BACK.name] * residue.subs(u, root))
    d.step("of v'(z-S)^-1 v", Symbol("|<v,v^>|^2"), Piecewise((seen, Abs(root) < turning), (0, True)))
    return d


def _location() -> Expr:
    outlier = ell * (1 + y / (ell - 1))
    return Piecewise((outlier, Abs(ell - 1) > sqrt(y)), ((1 + sqrt(y)) ** 2, ell >= 1), ((1 - sqrt(y)) ** 2, True))


def _overlap() -> Expr:
    return Piecewise(((1 - y / (ell - 1) ** 2) / (1 + y / (ell - 1)), Abs(ell - 1) > sqrt(y)), (0, True))


_CONVENTIONS = (
    "eigenvalues of X'X/n, X of n rows of p entries with covariance 1 + (ell - 1) v v', ratio = p/n; a spike below 1 leaves the "
    "bulk downwards, for ratio < 1"
)

COVARIANCE_THRESHOLD = Formula(
    id="spiked.covariance_threshold",
    title="least population eigenvalue that leaves the bulk (sample covariance)",
    symbol="ell_c",
    parameters=(
        replace(w.ELL, optional=True, meaning="population eigenvalue to be compared with the threshold"),
        RATIO,
    ),
    assumptions=w.COVARIANCE_ASSUMPTIONS,
    conventions=_CONVENTIONS
    + ": then from 1 - sqrt(ratio) on; ell, if given, only decides whether above_threshold holds",
    source=w.PAPERS["covariance"],
    state=lambda: 1 + sqrt(y),
    prove=_prove_threshold,
    axioms=(CAVITY, MULTIPLICATIVE),
    example={"ratio": "0.5"},
)
COVARIANCE_LOCATION = Formula(
    id="spiked.covariance_location",
    title="sample eigenvalue of a population spike",
    symbol="lambda",
    parameters=w.COVARIANCE,
    assumptions=w.COVARIANCE_ASSUMPTIONS,
    conventions=_CONVENTIONS + "; the edge on the spike's side where it is too weak",
    source=w.PAPERS["covariance"],
    state=_location,
    prove=_prove_location,
    axioms=(CAVITY, MULTIPLICATIVE),
    example={"ell": "3", "ratio": "0.5"},
)
COVARIANCE_OVERLAP = Formula(
    id="spiked.covariance_overlap",
    title="squared overlap of a sample eigenvector with the population's",
    symbol="|<v,v^>|^2",
    parameters=w.COVARIANCE,
    assumptions=w.COVARIANCE_ASSUMPTIONS,
    conventions=_CONVENTIONS + "; squared",
    source=w.PAPERS["covariance"],
    state=_overlap,
    prove=_prove_overlap,
    axioms=(CAVITY, MULTIPLICATIVE, BACK),
    example={"ell": "3", "ratio": "0.5"},
)
