"""What the Tracy-Widom formulas are made of."""

from __future__ import annotations

from ..formula import Assumption, Domain, Parameter, Source
from ..mp.words import VARIANCE

__all__ = ["BETA", "COLUMNS", "EDGE", "LEVEL", "MATRIX", "PAPERS", "PROBABILITY", "ROWS", "S", "VARIANCE"]

PAPERS = {
    "determinant": Source(
        "A determinantal formula for the GOE Tracy-Widom distribution", place="Ferrari and Spohn 2005"
    ),
    "threshold": Source(
        "On the distribution of the largest eigenvalue in principal components analysis",
        place="Johnstone 2001; the halves are from Ma 2012, Bernoulli 18",
    ),
}

BETA = Parameter(
    "beta",
    "1 for real matrices, 2 for complex ones",
    Domain("integer", 1, 2),
    typical=(1, 2),
    default=1,
    latex=r"\beta",
)
S = Parameter("s", "largest eigenvalue, centred and scaled", Domain("real"), typical=(-5, 3))
PROBABILITY = Parameter(
    "probability",
    "chance of a smaller value",
    Domain("real", 0, 1, open_low=True, open_high=True),
    typical=(0.01, 0.99),
    latex="p",
)
ROWS = Parameter("rows", "rows of X", Domain("integer", low=2), typical=(20, 400), latex="n")
COLUMNS = Parameter("columns", "columns of X", Domain("integer", low=2), typical=(20, 400), latex="p")
LEVEL = Parameter(
    "level",
    "false-alarm rate",
    Domain("real", 0, 1, open_low=True, open_high=True),
    typical=(0.001, 0.2),
    latex=r"\varepsilon",
)

EDGE = (
    Assumption("square_root_edge", "the density vanishes as a square root at an isolated upper edge"),
    Assumption("large_matrix", "rows and columns are many: from about 50 on the law is right to a few thousandths"),
)
MATRIX = (
    Assumption(
        "gaussian_entries", "the entries are independent Gaussians (others of four matching moments in the limit)"
    ),
    Assumption("large_matrix", "rows and columns are many: the false-alarm rate is right to order rows^(-2/3)"),
)
