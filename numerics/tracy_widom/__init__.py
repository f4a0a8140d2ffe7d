"""Numbers for the Tracy-Widom laws: importing this package registers the evaluators of every `tracy_widom.*` id."""

from . import distribution, threshold
from .distribution import TracyWidom
from .threshold import centre_and_scale
from .words import determinants, words

__all__ = ["TracyWidom", "centre_and_scale", "determinants", "distribution", "threshold", "words"]
