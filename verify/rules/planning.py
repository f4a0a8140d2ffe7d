"""How many draws a claim needs, from the formula's own variance, before the first is made."""

from __future__ import annotations

import math
from collections.abc import Iterable

from theory import InputError

from .upper_bound import log_e_value

__all__ = ["bernoulli_draws_for", "draws_for"]

SMALLEST_ALPHA = 1e-6
"""The level of one claim among a thousand one-sided ones."""


def draws_for(spread: float, value: float, rivals: Iterable[float], sigma: float = 8.0) -> int:
    """The least n with |value - rival| > sigma * spread / sqrt(n) for every rival.

    `spread` is the standard deviation of one draw's contribution: the estimate's standard error is spread/sqrt(n). At 8
    standard errors an equality is refuted with probability 1 - 1.2e-6 (normal estimate: 8 - 3.29 on the first stage).
    A rival at infinity needs one draw. Raises InputError without rivals, for a rival equal to the value (no number of
    draws tells them apart: choose a case where they differ), and for a spread or value that is no number.

    >>> draws_for(1.0, 0.0, [0.5, -3.0])
    257
    >>> draws_for(1.0, 0.25, [0.25])
    Traceback (most recent call last):
        ...
    theory.formula.InputError: no number of draws tells the rival 0.25 from the value 0.25; choose a case in which
    they differ
    """
    rivals = [float(rival) for rival in rivals]
    if not (0 <= spread < math.inf and math.isfinite(value) and sigma > 0):
        raise InputError(f"cannot plan draws for spread {spread}, value {value} at {sigma} standard errors")
    if not rivals or any(math.isnan(rival) for rival in rivals):
        raise InputError(f"draws are planned against rival values; got {rivals}")
    nearest = min(rivals, key=lambda rival: abs(value - rival))
    gap = abs(value - nearest)
    ratio = sigma * spread / gap if gap > 0 else math.inf
    if ratio * ratio == math.inf:
        raise InputError(
            f"no number of draws tells the rival {nearest} from the value {value}; choose a case in which they differ"
        )
    return math.floor(ratio * ratio) + 1


def bernoulli_draws_for(p: float, bounds: Iterable[float], sigma: float = 8.0, alpha: float = SMALLEST_ALPHA) -> int:
    """Draws of an event of probability p after which every wrong bound B < p has been refuted.

    Two conditions: each B lies beyond `sigma` standard errors sqrt(p (1-p)/n), and the e-value against B exceeds
    1/alpha unless the count of events falls below its Phi(-sigma/2) quantile (3.2e-5 at 8). The second is the stronger:
    alpha = 1e-6 takes up to twice the draws of the first, and far more near p = 1, where the first counts on a normal
    law that is not there. Raises InputError for a bound that is not below p: the event does not violate it, so nothing
    can refute it.

    >>> bernoulli_draws_for(0.75, [2 / 3, 0.6])
    2890
    >>> bernoulli_draws_for(1.0, [0.5])
    22
    """
    bounds = [float(bound) for bound in bounds]
    for bound in bounds:
        if not 0 <= bound < p <= 1:
            raise InputError(
                f"an event of probability {p} cannot refute the bound {bound} on its frequency: a control must lie in "
                "[0, p), as a bound is only refuted by a law that exceeds it"
            )
    low = high = draws_for(math.sqrt(p * (1 - p)), p, bounds, sigma)

    def enough(n: int) -> bool:
        events = _least_count(n, p, sigma)
        return all(log_e_value(events, n, bound) > -math.log(alpha) for bound in bounds)

    while not enough(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def _least_count(n: int, p: float, sigma: float) -> int:
    """The least k with P(Binomial(n, p) <= k) above Phi(-sigma/2): the count is at least k but for that probability."""
    from scipy.special import betaincc, ndtr

    low, high = 0, n
    while low < high:
        k = (low + high) // 2
        low, high = (low, k) if betaincc(k + 1, n - k, p) > ndtr(-sigma / 2) else (k + 1, high)
    return high
