"""Few outliers, restructured, mixed, or nothing to judge: the rule, with the figure that decided it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FEW", "MIXED", "NOTHING", "RESTRUCTURED", "Evidence", "judge"]

FEW, RESTRUCTURED, MIXED, NOTHING = "few", "restructured", "mixed", "nothing to judge"

SIZE = 128
"""Below it "few" and "mixed" cannot be told apart."""
FEW_SHARE, MANY_SHARE, MANY_ENERGY = 0.05, 0.09, 0.4
BULK_SLACK, SHIFT_SLACK, MOVED = 1.5, 0.07, 0.1


@dataclass(frozen=True)
class Evidence:
    """What the rule looks at: p, k, share of the squared norm in the k outliers, KS over its 95 % null quantile.

    `shift`, variance over that at initialisation, and `change`, ||W - W(0)||/||W(0)||, where the initial matrix is known.
    """

    size: int
    outliers: int
    energy: float
    ks_over_null: float
    shift: float | None = None
    change: float | None = None


def judge(seen: Evidence) -> tuple[str, str]:
    """(verdict, reason). The rule, in this order:

    1. change known and at most .1: "nothing to judge", the matrix has hardly moved;
    2. no outlier, KS at most 1.5 null 95 % quantiles: "nothing to judge", it looks like noise;
    3. k >= .09 max(p, 128) and energy >= .4: "restructured";
    4. p < 128: "nothing to judge", a few outliers are then a large share, and a deformed bulk is not resolved;
    5. k/p <= .05, KS at most 1.5 quantiles and, where known, |shift - 1| <= .07: "few";
    6. else "mixed".

    Thresholds: `real-networks` 1.6, set on small networks. Power: at p = 128 a bulk deformed by less than KS .04 passes for
    intact, at 512 by less than .013. It misjudges widths below 10 times the number of outputs (few outliers are then a
    large share: "mixed"), long training under cross-entropy (the count grows past the number of classes) and Adam on
    labels that cannot be learned (outliers without learning).

    >>> judge(Evidence(512, 10, 0.16, 1.03))[0], judge(Evidence(64, 24, 0.6, 3.0))[0], judge(Evidence(64, 8, 0.6, 3.0))[0]
    ('few', 'restructured', 'nothing to judge')
    """
    share = seen.outliers / seen.size
    told = f"{seen.outliers} of {seen.size} eigenvalues stand out, with {seen.energy:.0%} of the squared norm; "
    told += f"KS is {seen.ks_over_null:.2g} null 95 % quantiles"
    if seen.change is not None and seen.change <= MOVED:
        return NOTHING, f"the matrix has moved by {seen.change:.2g} of its initial norm, and {MOVED} are needed"
    if not seen.outliers and seen.ks_over_null <= BULK_SLACK:
        return NOTHING, f"no eigenvalue stands out and the bulk is that of noise: {told}"
    if seen.outliers >= MANY_SHARE * max(seen.size, SIZE) and seen.energy >= MANY_ENERGY:
        return RESTRUCTURED, told
    if seen.size < SIZE:
        return NOTHING, f"{told}; with fewer than {SIZE} that is neither few nor many"
    still = seen.shift is None or abs(seen.shift - 1) <= SHIFT_SLACK
    moved = "" if still else f"; the bulk variance is {seen.shift:.2f} of the initial one"
    few = share <= FEW_SHARE and seen.ks_over_null <= BULK_SLACK and still
    return (FEW if few else MIXED), told + moved
