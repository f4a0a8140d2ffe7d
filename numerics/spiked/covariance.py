"""Threshold, location and overlap of a population spike, exact for rational input and certified at any digits."""

from __future__ import annotations

from typing import Any

import flint

from ..certified import certified, sign
from ..evaluate import evaluates
from ..mp.balls import edges_of, in_balls
from ..value import Value

__all__ = ["covariance_location", "covariance_overlap", "covariance_threshold"]


def _detached(ell: Any, ratio: Any) -> bool:
    return certified(lambda e, y: sign((e - 1) * (e - 1) - y) > 0, ell, ratio).midpoint == 1


@evaluates("spiked.covariance_threshold")
def covariance_threshold(ratio: Any, ell: Any = None, *, digits: int = 15) -> Value:
    """1 + sqrt(ratio): a population eigenvalue between 1 and this is not seen. `ell` only decides `above_threshold`.

    >>> from numerics import predict
    >>> predict("spiked.covariance_threshold", {"ratio": "0.25"}).value
    Value(1.5, exact)
    """
    return in_balls(lambda y: 1 + y.sqrt(), ratio, digits=digits)


@evaluates("spiked.covariance_location")
def covariance_location(ell: Any, ratio: Any, *, digits: int = 15) -> Value:
    """ell (1 + ratio/(ell - 1)) where abs(ell - 1) > sqrt(ratio), else the edge on the spike's side. arXiv:math/0403022.

    >>> from numerics import predict
    >>> predict("spiked.covariance_location", {"ell": 3, "ratio": "0.5"}).value
    Value(3.75, exact)
    """
    if not _detached(ell, ratio):
        side = 1 if ell >= 1 else 0
        return in_balls(lambda y: edges_of(y, flint.arb(1))[side], ratio, digits=digits)
    return certified(lambda e, y: e * (1 + y / (e - 1)), ell, ratio, digits=digits)


@evaluates("spiked.covariance_overlap")
def covariance_overlap(ell: Any, ratio: Any, *, digits: int = 15) -> Value:
    """(1 - ratio/(ell-1)^2)/(1 + ratio/(ell-1)) where abs(ell - 1) > sqrt(ratio), else 0. arXiv:math/0403022.

    >>> from numerics import predict
    >>> predict("spiked.covariance_overlap", {"ell": 3, "ratio": "0.5"}).value
    Value(0.7, exact)
    """
    if not _detached(ell, ratio):
        return Value.exact(0, digits)
    return certified(lambda e, y: (1 - y / ((e - 1) * (e - 1))) / (1 + y / (e - 1)), ell, ratio, digits=digits)
