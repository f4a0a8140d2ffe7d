"""Upper bound: an event's frequency stays below B. Tested by a bet against it, whose gains count at any time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from theory import InputError

from .decision import Decision, Verdict
from .incomplete_beta import log_betainc

__all__ = ["log_e_value", "upper_bound"]


def log_e_value(violations: int, draws: int, bound: float) -> float:
    """log e, e = int_B^1 (q/B)^k ((1-q)/(1-B))^(n-k) d pi(q), for k violations in n draws against H0: p <= B.

    pi is Beta(1/2, 1/2) restricted to (B, 1). Under every p <= B, e is a nonnegative supermartingale from e = 1: one
    draw multiplies the bet on q by p q/B + (1-p)(1-q)/(1-B) on average, which rises with p (as q > B) and is 1 at p = B;
    an average of supermartingales is one. So P(e ever exceeds 1/alpha) <= alpha (Ville's inequality).

    In closed form e = B(k+1/2, m+1/2) I_{1-B}(m+1/2, k+1/2) / (pi I_{1-B}(1/2, 1/2) B^k (1-B)^m) with m = n-k and pi =
    B(1/2, 1/2) the number, taken in logs; absolute error about 1e-15 of the largest logarithm. B = 0: one violation
    gives inf. B = 1 cannot be violated: 0. Raises InputError for impossible counts and a bound outside [0, 1]. Derived
    here (the mixture method is Robbins's).

    >>> round(log_e_value(5, 10, 0.1), 4), round(log_e_value(1, 10, 0.1), 4), log_e_value(1, 1000, 0.0)
    (3.9349, -1.7777, inf)
    """
    if not 0 <= violations <= draws:
        raise InputError(f"{violations} violations in {draws} draws are no counts")
    if not 0 <= bound <= 1:
        raise InputError(f"a bound on a frequency lies in [0, 1], got {bound}; a trivial one is 1")
    if bound == 1:
        return 0.0
    if bound == 0 and violations:
        return math.inf
    from scipy.special import betaln

    hits, misses = violations + 0.5, draws - violations + 0.5
    log_miss = math.log1p(-bound)
    if bound == 0:
        return float(betaln(hits, misses)) - math.log(math.pi)
    log_hit = math.log(bound)
    posterior = float(betaln(hits, misses)) + log_betainc(misses, hits, log_miss, log_hit)
    prior = math.log(math.pi) + log_betainc(0.5, 0.5, log_miss, log_hit)
    return posterior - prior - violations * log_hit - (draws - violations) * log_miss


def upper_bound(violations: Sequence[int], sizes: Sequence[int], bound: float, alpha: float) -> Decision:
    """Whether the violations, counted batch by batch, refute that each draw violates with probability at most `bound`.

    `violations[i]` events in `sizes[i]` draws; the sizes are fixed beforehand. Refuted if e > 1/alpha after any batch
    (a false refutation has probability <= alpha, however often one looks), else confirmed; vacuous without draws or at
    bound 1, which no data refute. That controls must be refuted too is the caller's business. The statistic is the
    largest log e seen; details hold its path. Raises InputError for impossible counts, bound or alpha.

    >>> decision = upper_bound([6, 4], [10, 10], 0.1, alpha=0.001)
    >>> print(decision.verdict, round(decision.statistic, 2), decision.note)
    refuted 8.71 10 of 20 draws violate a bound of 0.1: log e = 8.71 after 20 draws, beyond 6.91
    """
    if len(violations) != len(sizes):
        raise InputError(f"{len(violations)} counts of violations for {len(sizes)} batches")
    if not 0 < alpha < 1:
        raise InputError(f"alpha lies strictly between 0 and 1, got {alpha}")
    path: list[float] = []
    hits = total = 0
    for seen, size in zip(violations, sizes, strict=True):
        if not 0 <= seen <= size:
            raise InputError(f"{seen} violations in a batch of {size} are no counts")
        hits, total = hits + int(seen), total + int(size)
        path.append(log_e_value(hits, total, bound))
    needed = -math.log(alpha)
    details = {
        "bound": bound,
        "violations": hits,
        "log_e": path,
        "log_e_needed": needed,
        "sizes": [int(n) for n in sizes],
    }
    if total == 0 or bound == 1:
        why = "no draws were made" if total == 0 else "a frequency cannot exceed 1, so nothing was tested"
        return Decision(Verdict.vacuous, None, total, why, details)
    largest = max(path)
    share = f"{hits} of {total} draws violate a bound of {bound:.6g}"
    if largest <= needed:
        return Decision(Verdict.confirmed, largest, total, share, details)
    batch = next(i for i, each in enumerate(path) if each > needed)
    note = f"{share}: log e = {path[batch]:.3g} after {sum(sizes[: batch + 1])} draws, beyond {needed:.3g}"
    return Decision(Verdict.refuted, largest, total, note, details)
