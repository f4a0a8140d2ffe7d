"""Exponent, trend: the slope of logs over seeds holds the claimed exponent and excludes its rival."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from theory import InputError

from .decision import Decision, Verdict
from .equality import LEAST_NETWORKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

__all__ = ["slopes_of_logs", "trend"]

ROUNDING = 1e-12
"""Slopes of logs carry rounding of about 1e-15 |log value| over the span of log size: an exact power law must pass."""


def slopes_of_logs(sizes: Sequence[float], values: ArrayLike) -> np.ndarray:
    """The least-squares slope of log(value) against log(size), one for each seed.

    `values` has shape (seeds, sizes): a row is one seed's quantity over all sizes. Returns shape (seeds,). Raises
    InputError for another shape, fewer than two distinct sizes, and sizes or values that are not positive and finite
    (of a signed quantity take the absolute value or root mean square before, on purpose).

    >>> slopes_of_logs([1, 4, 16], [[1, 2, 4], [3, 3, 3]]).round(12).tolist()
    [0.5, 0.0]
    """
    import numpy as np

    N, y = np.asarray(sizes, dtype=float), np.asarray(values, dtype=float)
    if N.ndim != 1 or y.ndim != 2 or y.shape[1] != len(N):
        raise InputError(f"values must be one row a seed, one column a size: got {y.shape} for {N.shape} sizes")
    if len(set(N.tolist())) < 2:
        raise InputError(f"a slope needs at least two distinct sizes, got {N.tolist()}")
    if not (np.all(N > 0) and np.all(y > 0) and np.all(np.isfinite(N)) and np.all(np.isfinite(y))):
        raise InputError("a slope of logs needs positive finite sizes and values")
    x = np.log(N) - np.log(N).mean()
    return np.log(y) @ x / (x @ x)


def trend(slopes: ArrayLike, claimed: float, rival: float, alpha: float, least: int = LEAST_NETWORKS) -> Decision:
    """Whether the mean slope is `claimed` rather than `rival`, by Student's interval over seeds at level 1 - alpha.

    The interval is mean +/- t_{n-1, 1-alpha/2} s/sqrt(n), s with n - 1. Confirmed if it holds the claimed exponent and
    excludes the rival; refuted if it excludes the claimed (probability alpha when true and slopes are normal);
    undecided if it holds both, or for fewer than `least` seeds (16 networks; never below 4). The note then says how many
    seeds would do at this spread: the interval is shorter than the exponents' distance, so it cannot hold both.

    `slopes` has shape (seeds,). The statistic is the mean slope. Raises InputError for slopes that are not finite,
    equal exponents or an alpha outside (0, 1).

    >>> decision = trend([-0.5, -0.52, -0.49, -0.51] * 4, claimed=-0.5, rival=0.0, alpha=0.001)
    >>> print(decision.verdict, [round(end, 4) for end in decision.details["interval"]])
    confirmed [-0.5168, -0.4932]
    >>> decision = trend([0.9, 0.2, 0.7, -0.1] * 4, claimed=0.5, rival=0.0, alpha=0.0001)
    >>> print(decision.verdict, decision.details["seeds_needed"])
    undecided 49
    """
    import numpy as np

    values = np.asarray(slopes, dtype=float)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise InputError(f"slopes must be one finite number a seed, got shape {values.shape}")
    if not (math.isfinite(claimed) and math.isfinite(rival) and claimed != rival):
        raise InputError(f"the claimed exponent {claimed} and its rival {rival} must be two different numbers")
    if not 0 < alpha < 1:
        raise InputError(f"alpha lies strictly between 0 and 1, got {alpha}")
    n, least = len(values), max(4, least)
    if n < least:
        note = f"{n} seeds allow no verdict; at least {least} do"
        return Decision(Verdict.undecided, None, n, note, {"seeds_needed": least})
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    half = _half_width(spread, n, alpha) + ROUNDING * (1 + abs(mean))
    low, high = mean - half, mean + half
    details = {
        "interval": [low, high],
        "level": 1 - alpha,
        "spread": spread,
        "seeds": n,
        "claimed": claimed,
        "rival": rival,
    }
    told = f"the interval [{low:.4g}, {high:.4g}] over {n} seeds"
    if not low <= claimed <= high:
        return Decision(Verdict.refuted, mean, n, f"{told} excludes the claimed exponent {claimed:g}", details)
    if not low <= rival <= high:
        return Decision(Verdict.confirmed, mean, n, f"{told} excludes {rival:g}", details)
    needed = _seeds_needed(spread, abs(claimed - rival), n, alpha)
    note = f"{told} holds both {claimed:g} and {rival:g}; {needed} seeds would tell them apart at this spread"
    return Decision(Verdict.undecided, mean, n, note, {**details, "seeds_needed": needed})


def _half_width(spread: float, n: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return -float(stdtrit(n - 1, alpha / 2)) * spread / math.sqrt(n)


def _seeds_needed(spread: float, gap: float, n: int, alpha: float) -> int:
    """The least count, at least n, whose interval is shorter than the gap."""
    low = high = n
    while 2 * _half_width(spread, high, alpha) >= gap:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if 2 * _half_width(spread, middle, alpha) >= gap else (low, middle)
    return high
