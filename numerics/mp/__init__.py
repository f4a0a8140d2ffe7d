"""Numbers for the Marchenko-Pastur law: importing this package registers the evaluators of every `mp.*` id."""

from . import distribution, moments, potential, resolvent
from .law import MarchenkoPastur

__all__ = ["MarchenkoPastur", "distribution", "moments", "potential", "resolvent"]
