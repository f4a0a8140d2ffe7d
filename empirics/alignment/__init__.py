"""Activation gradients of networks, their alignment statistics, and the misalignment that is seen on them."""

from .activation_gradients import (
    Capture,
    CaptureWarning,
    capture,
    capture_activation_gradients,
    sum_over_groups,
)
from .certificate import Certificate, certify, certify_unconditional
from .interventions import Interventions, Preservation, hadamard_gram, intervene, preservation
from .moments import Moments
from .pair_estimates import CrossSums, GramSums
from .resampling import resampled_misalignment
from .sites import Scan, ScannedSite, scan_boundaries
from .statistics import AlignmentStatistics, Forecast, alignment_statistics, forecast

__all__ = [
    "AlignmentStatistics",
    "Capture",
    "CaptureWarning",
    "Certificate",
    "CrossSums",
    "Forecast",
    "GramSums",
    "Interventions",
    "Moments",
    "Preservation",
    "Scan",
    "ScannedSite",
    "alignment_statistics",
    "capture",
    "capture_activation_gradients",
    "certify",
    "certify_unconditional",
    "forecast",
    "hadamard_gram",
    "intervene",
    "preservation",
    "resampled_misalignment",
    "scan_boundaries",
    "sum_over_groups",
]
