"""Finite-sample alignment: how likely a growth step found on training data is to hurt on test data.

The formulas, in the order in which one would read them.
"""

from .cantelli import BOUND, BOUND_EXACT
from .certificate import CERTIFICATE, CERTIFICATE_UNCONDITIONAL
from .dimension import BOUND_FROM_DIMENSION, D_2, D_ALIGN, D_PARALLEL, N_EFF
from .edgeworth import EDGEWORTH
from .expansion import EXPANSION_DECREASE, INTERVENTION_RATIO
from .gaussian import BERNSTEIN, CHERNOFF, GAUSSIAN
from .moments import FOURTH_CUMULANT, MEAN, THIRD_CUMULANT, VARIANCE
from .sample_size import DIMENSION_NEEDED, SAMPLES_NEEDED, TEST_SAMPLES_NEEDED
from .width import WIDTH_EXPONENT

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
    GAUSSIAN,
    CHERNOFF,
    BERNSTEIN,
    EDGEWORTH,
    THIRD_CUMULANT,
    FOURTH_CUMULANT,
    WIDTH_EXPONENT,
    EXPANSION_DECREASE,
    INTERVENTION_RATIO,
    CERTIFICATE,
    CERTIFICATE_UNCONDITIONAL,
)
