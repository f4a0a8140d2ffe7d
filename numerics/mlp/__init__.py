"""Numbers for wide multilayer perceptrons: importing this package registers the evaluators of every `mlp.*` id."""

from . import evaluators
from .activation import ACTIVATIONS, Activation
from .outliers import Spectrum, location, spectrum
from .problem import Problem
from .solution import Health, Solution, solve
from .training import Matrices, Training, train

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Health",
    "Matrices",
    "Problem",
    "Solution",
    "Spectrum",
    "Training",
    "evaluators",
    "location",
    "solve",
    "spectrum",
    "train",
]
