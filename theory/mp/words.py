"""What every Marchenko-Pastur formula is made of: parameters, assumptions, and the axioms they start from.

X has n rows and p columns of independent entries; the law is that of the p eigenvalues of X'X/n, so its mean is the variance
of an entry, and ratio = p/n is columns over rows. Of the transpose one would ask with 1/ratio and ratio times the variance.
"""

from __future__ import annotations

from sympy import Symbol, pi

from ..formula import Assumption, Axiom, Domain, Parameter, Source

__all__ = ["ASSUMPTIONS", "BRANCH", "CAVITY", "CONVENTIONS", "INVERSION", "LAW", "PAPER", "RATIO", "VARIANCE"]

PAPER = Source("Distribution of eigenvalues for some sets of random matrices", place="Marchenko and Pastur 1967")

RATIO = Parameter("ratio", "columns over rows", Domain("real", low=0, open_low=True), typical=(0.1, 4), latex="y")
VARIANCE = Parameter(
    "variance",
    "variance of one entry",
    Domain("real", low=0, open_low=True),
    typical=(0.25, 4),
    default=1,
    latex=r"\sigma^2",
)
LAW = (RATIO, VARIANCE)
"""The parameters of the law itself."""

y, v = RATIO.symbol, VARIANCE.symbol
z = Symbol("z")
"""The spectral parameter, complex: a parameter's own symbol would be real."""

CONVENTIONS = (
    "eigenvalues of X'X/n, X of n rows and p columns, ratio = p/n; the law of all p of them, so for ratio > 1 it has mass "
    "1 - 1/ratio at 0"
)
ASSUMPTIONS = (
    Assumption("independent_entries", "the entries of X are independent, of mean 0 and one finite variance"),
    Assumption("large_matrix", "rows and columns are many; corrections to smooth averages are of order 1/rows"),
)

CAVITY = Axiom(
    "leave one column out",
    "by Schur's complement m = 1/(e - z) with e = x'x/n - x'X(X'X/n - z)^-1 X'x/n^2, x the column left out; quadratic forms in x "
    "concentrate, and the trace is of S/(S - z), p(1 + z m): e = variance (1 - (p/n)(1 + z m)); the rival divides by columns",
    lambda m, z: v * (1 - y * (1 + z * m)),
    lambda m, z: v * (1 - (1 + z * m) / y),
)
BRANCH = Axiom(
    "mass one",
    "m(z) = int rho/(x-z) has z m -> -1 as z -> infinity; the rival takes the root that grows",
    -1,
    "-oo",
)
INVERSION = Axiom(
    "Stieltjes inversion",
    "the density is Im m(x + i0)/pi; the rival halves it",
    lambda imaginary: imaginary / pi,
    lambda m: m / (2 * pi),
)
