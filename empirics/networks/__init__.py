"""Small networks that the theory is held against, built and trained from a seed."""

from .digits import TrainedOnDigits, cross_entropy_sum, digits, trained_on_digits
from .residual_mlp import ResidualMLP, mup_groups, residual_mlp

__all__ = [
    "ResidualMLP",
    "TrainedOnDigits",
    "cross_entropy_sum",
    "digits",
    "mup_groups",
    "residual_mlp",
    "trained_on_digits",
]
