"""Threshold, location and overlaps of a spike in a noise matrix, exact for rational input and certified at any digits."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np

from theory import InputError

from ..certified import certified, sign
from ..evaluate import evaluates
from ..mp.balls import edges_of, in_balls
from ..value import Value

__all__ = ["location", "overlap_columns", "overlap_rows", "overlaps_of", "strength_of", "threshold"]


def _detached(theta: Any, ratio: Any) -> bool:
    return certified(lambda t, y: sign(t**4 - y) > 0, theta, ratio).midpoint == 1


@evaluates("spiked.threshold")
def threshold(ratio: Any, theta: Any = None, *, digits: int = 15) -> Value:
    """ratio^(1/4): a weaker spike is not seen. `theta`, if given, only decides the assumption `above_threshold`.

    >>> from numerics import predict
    >>> predict("spiked.threshold", {"ratio": "0.5"}).value
    Value(0.840896415253715 +/- 4.59e-16, ball)
    """
    return in_balls(lambda y: y.sqrt().sqrt(), ratio, digits=digits)


@evaluates("spiked.location")
def location(theta: Any, ratio: Any, *, digits: int = 15) -> Value:
    """(1 + theta^2)(ratio + theta^2)/theta^2, the square of the singular value; the upper edge below the threshold.

    Source: arXiv:1103.2221. Reference 11:

    >>> from numerics import predict
    >>> predict("spiked.location", {"theta": "1.2", "ratio": "0.5"}, digits=17).value
    Value(3.2872222222222222 +/- 2.23e-17, ball)
    """
    if not _detached(theta, ratio):
        return in_balls(lambda y: edges_of(y, flint.arb(1))[1], ratio, digits=digits)
    return certified(lambda t, y: (1 + t * t) * (y + t * t) / (t * t), theta, ratio, digits=digits)


@evaluates("spiked.overlap_rows")
def overlap_rows(theta: Any, ratio: Any, *, digits: int = 15) -> Value:
    """1 - (ratio + theta^2)/(theta^2 (theta^2 + 1)): squared overlap of the left vectors, as long as there are rows. Else 0.

    >>> from numerics import predict
    >>> predict("spiked.overlap_rows", {"theta": "1.2", "ratio": "0.5"}, digits=20).value
    Value(0.44785974499089253188 +/- 3.87e-21, ball)
    """
    return _overlap(0, theta, ratio, digits)


@evaluates("spiked.overlap_columns")
def overlap_columns(theta: Any, ratio: Any, *, digits: int = 15) -> Value:
    """1 - ratio (1 + theta^2)/(theta^2 (theta^2 + ratio)): squared overlap of the right vectors, as long as columns. Else 0.

    >>> from numerics import predict
    >>> predict("spiked.overlap_columns", {"theta": "1.2", "ratio": "0.5"}, digits=20).value
    Value(0.56328751431844215349 +/- 3.70e-21, ball)
    """
    return _overlap(1, theta, ratio, digits)


def _overlap(side: int, theta: Any, ratio: Any, digits: int) -> Value:
    if not _detached(theta, ratio):
        return Value.exact(0, digits)
    return certified(lambda t, y: overlaps_of(t, y)[side], theta, ratio, digits=digits)


def overlaps_of(theta: Any, ratio: Any) -> tuple[Any, Any]:
    """Squared overlaps (rows, columns) of a spike above the threshold, over any field; arrays as well.

    >>> overlaps_of(2.0, 1.0)
    (0.75, 0.75)
    """
    t = theta * theta
    excess = t * t - ratio
    return excess / (t * (t + 1)), excess / (t * (t + ratio))


def strength_of(eigenvalue: Any, ratio: float) -> Any:
    """The theta whose `spiked.location` is that eigenvalue: theta^2 + ratio/theta^2 = eigenvalue - 1 - ratio, larger root.

    In double precision, for numbers or arrays above the upper edge (InputError otherwise), in units of the noise: divide by
    its variance first. Relative error a few 1e-16 over the distance to the edge in units of it.

    >>> round(float(strength_of(6.25, 1.0)), 12)
    2.0
    """
    x = np.asarray(eigenvalue, dtype=np.float64)
    half = (x - 1 - ratio) / 2
    if not np.all(half * half >= ratio) or not np.all(half > 0):
        raise InputError(f"no spike lies at or below the upper edge {(1 + ratio**0.5) ** 2:.6g}; got {x.min():.6g}")
    return np.sqrt(half + np.sqrt(half * half - ratio))[()]
