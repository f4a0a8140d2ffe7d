"""Finite-sample alignment: how likely a growth step found on training data is to hurt on test data.

The formulas, in the order in which one would read them.
"""

from .cantelli import BOUND, BOUND_EXACT
from .dimension import BOUND_FROM_DIMENSION, D_2, D_ALIGN, D_PARALLEL, N_EFF
from .moments import FOURTH_CUMULANT, MEAN, THIRD_CUMULANT, VARIANCE
from .sample_size import DIMENSION_NEEDED, SAMPLES_NEEDED, TEST_SAMPLES_NEEDED

__all__ = ["FORMULAS"]

FORMULAS = (
    MEAN,
    VARIANCE,
    N_EFF,
    D_PARALLEL,
    D_2,
    D_ALIGN,
    BOUND_EXACT,
    BOUND,
    BOUND_FROM_DIMENSION,
    SAMPLES_NEEDED,
    TEST_SAMPLES_NEEDED,
    DIMENSION_NEEDED,
    THIRD_CUMULANT,
    FOURTH_CUMULANT,
)
