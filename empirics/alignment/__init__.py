"""Activation gradients of networks, their alignment statistics, and the misalignment that is seen on them."""

from .activation_gradients import (
    Capture,
    CaptureWarning,
    capture,
    capture_activation_gradients,
    sum_over_groups,
)
from .moments import Moments
from .pair_estimates import CrossSums, GramSums
from .resampling import resampled_misalignment
from .statistics import AlignmentStatistics, Forecast, alignment_statistics, forecast

__all__ = [
    "AlignmentStatistics",
    "Capture",
    "CaptureWarning",
    "CrossSums",
    "Forecast",
    "GramSums",
    "Moments",
    "alignment_statistics",
    "capture",
    "capture_activation_gradients",
    "forecast",
    "resampled_misalignment",
    "sum_over_groups",
]
