"""Numbers for path conditioning: importing this package registers the evaluators of every `path.*` id."""

from . import coordinate, gap, random_init
from .chain import Chain
from .criterion import Criterion
from .solver import Solution, certificate, solve
from .words import words

__all__ = ["Chain", "Criterion", "Solution", "certificate", "coordinate", "gap", "random_init", "solve", "words"]
