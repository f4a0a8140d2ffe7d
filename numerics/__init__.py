"""Numbers: formulas evaluated to high precision with a stated error. NumPy, SciPy, mpmath, python-flint; never torch."""

from .evaluate import Evaluator, Prediction, evaluates, evaluator, predict
from .inputs import admit
from .number import parse
from .value import Value

__all__ = ["Evaluator", "Prediction", "Value", "admit", "evaluates", "evaluator", "parse", "predict"]
