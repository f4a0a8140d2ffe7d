"""Path conditioning: rescalings of homogeneous networks that even out the path kernel's diagonal.

The formulas, in the order in which one would read them.
"""

from .coordinate import COORDINATE_UPDATE
from .criterion import CONDITION_BOUND, GAP
from .random_init import EXPECTED_DIAGONAL, MEAN_FIELD_GAP, MEAN_FIELD_RESCALING, SMALL_VARIANCE_GAP

__all__ = ["FORMULAS"]

FORMULAS = (
    GAP,
    CONDITION_BOUND,
    COORDINATE_UPDATE,
    EXPECTED_DIAGONAL,
    MEAN_FIELD_RESCALING,
    MEAN_FIELD_GAP,
    SMALL_VARIANCE_GAP,
)
