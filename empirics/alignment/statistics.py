"""The effective alignment dimensions of measured gradients: unbiased estimates, jackknife intervals, or "not detected".

Numerator and denominator of d = ||mu||^4/noise are estimated apart, each without bias, and divided once. Putting the
sample mean and covariance into the formulas instead makes d_align 2 to 8 times too large at realistic sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from math import frexp
from typing import Any

import torch
from torch import Tensor

from theory import InputError

from ..measurement import Measurement
from .moments import block_means, cross_rows, gram_rows, tile_rows
from .resampling import Jackknife

__all__ = ["AlignmentStatistics", "Forecast", "alignment_statistics", "forecast"]

MEMORY_LIMIT = 2**33
COLUMNS = 256


@dataclass(frozen=True)
class Forecast:
    """The route that `alignment_statistics` takes, the bytes it holds at its peak, and its multiplications."""

    route: str
    bytes: int
    multiplications: int


def forecast(n: int, d: int, n_test: int = 0, *, route: str | None = None, block: int | None = None) -> Forecast:
    """What the statistics of n gradients of d entries (and n_test) will cost, said before the work starts.

    Routes: "gram", tiles of the n x n pairs, n^2 d multiplications; "moments", d x d sums, 2 n d^2, taken where that is
    less; "blocks", n b d in blocks of b. The bytes include a copy of the gradients in float64; measured peaks lay between
    0.73 and 1.01 of the forecast. The whole Gram matrix is never held.

    >>> forecast(1000, 50).route, forecast(256, 512).route
    ('moments', 'gram')
    >>> forecast(50_000, 100, route="gram").bytes < 50_000**2 * 4 / 10         # a tenth of 9.31 GiB
    True
    """
    size, columns = n + n_test, n_test or n
    work = {"gram": n * columns * d, "moments": 2 * size * d * d, "blocks": n * (block or 0) * d}
    taken = "blocks" if block else route or min(("gram", "moments"), key=work.__getitem__)
    tile = min(n, tile_rows(columns)) * columns
    numbers = {"gram": 2 * tile, "moments": 2 * (n * d + d * d), "blocks": 2 * min(n * (block or 0), tile_rows(1))}
    return Forecast(taken, 8 * (2 * size * d + max(numbers[taken], 2 * n * min(d, COLUMNS)) + 12 * size), work[taken])


@dataclass(frozen=True)
class AlignmentStatistics:
    """Estimates of what the alignment certificate depends on; each a Measurement that counts samples in their unit.

    `mean_squared` ||mu||^2, `quadratic` mu' Sigma mu and `trace_squared` tr(Sigma^2) are unbiased, their intervals may
    reach below 0. d_parallel = ||mu||^4/mu' Sigma mu, d_2 = ||mu||^4/tr(Sigma^2) and d_align, the smaller one, are
    consistent; their intervals are formed on log(1/d), or they say "not detected". `trace` is tr Sigma, `noise_scale`
    tr Sigma/||mu||^2.

    In the cross-sample form (train a, S; test b, T): `mean_squared` a.b, `quadratic` b'Sb, `quadratic_test` a'Ta
    (None in the other form), `trace_squared` tr(ST), d_parallel = (a.b)^2/max(b'Sb, a'Ta), d_2 = (a.b)^2/tr(ST); there
    is no trace and no noise scale.

    `kurtosis` is the excess kurtosis of |q|^2 (of the heavier side; None where |q| is constant): far above 3 the
    intervals are too short, and no estimator mends that. `distinct_units` counts the columns of q that are neither
    silent nor copies of another: the rank of Sigma is at most that.
    """

    n: int
    d: int
    n_test: int | None
    mean_squared: Measurement
    quadratic: Measurement
    quadratic_test: Measurement | None
    trace_squared: Measurement
    d_parallel: Measurement
    d_2: Measurement
    d_align: Measurement
    trace: Measurement | None
    noise_scale: Measurement | None
    kurtosis: float | None
    distinct_units: int
    forecast: Forecast
    notes: tuple[str, ...]
    jackknife: Jackknife = field(repr=False, compare=False)

    @property
    def detected(self) -> bool:
        """Whether there is a signal: d_align can be stated."""
        return self.d_align.detected

    def variance_ratio(self, M: float, K: float) -> Measurement:
        """Var(mu_M . g_K)/(E mu_M . g_K)^2, the R of B_exact = R/(1 + R), for M train and K test samples.

        Its interval is formed on the logarithm. Where a bound is wanted, quote the upper end, not the estimate.
        """
        if not (M >= 1 and K >= 1):
            raise InputError(f"M and K must be at least 1; got M={M}, K={K}")
        return self.jackknife.ratio(lambda s: s.variance(M, K), lambda s: s.mean_fourth, "Var/E^2")

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        shown = {name: each.to_dict() if isinstance(each, Measurement) else each for name, each in self._shown()}
        return shown | {"detected": self.detected, "forecast": vars(self.forecast), "notes": list(self.notes)}

    def _shown(self) -> Iterator[tuple[str, Any]]:
        return ((each.name, getattr(self, each.name)) for each in fields(self) if each.name != "jackknife")

    def __str__(self) -> str:
        lines = [f"{name:15} {each}" for name, each in self._shown() if isinstance(each, Measurement)]
        lines.append(f"{'kurtosis':15} {'undefined' if self.kurtosis is None else format(self.kurtosis, '.3g')}")
        return "\n".join([*lines, *self.notes])


def alignment_statistics(
    q: Tensor,
    q_test: Tensor | None = None,
    *,
    unit: str = "sample",
    level: float = 0.95,
    route: str | None = None,
    block: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> AlignmentStatistics:
    """Effective alignment dimensions from gradients (n, d), one independent sample a row; `unit` names what a row is.

    With `q_test` (m, d), independent of q, train and test gradients may have different laws (they do as soon as q comes
    from data that the network was fitted to). `level` is the two-sided coverage that the intervals aim at, by Student's
    t: met for light tails, missed for heavy ones (see `kurtosis`). `route` overrules `forecast`. `block` averages the
    U-statistics of blocks of that many samples (at least 4) instead and takes intervals from the blocks' spread: less
    work, less precise, and one value a block where merging is wanted.

    A ratio is "not detected" if ||mu||^2 is not above 2 of its standard deviations, if its interval meets 0, or if
    numerator or denominator is not positive once a sample is left out.

    Raises InputError for fewer than 4 samples (intervals take 5, and 3 on each side in the cross-sample form), shapes
    that do not match, NaN or inf, or work above `memory_limit` bytes (8 GiB). Source: notes on alignment, section 4.

    >>> import torch
    >>> draws = torch.Generator().manual_seed(0)
    >>> q = torch.tensor([1.0, 0.0]) + torch.randn(4000, 2, generator=draws, dtype=torch.float64)
    >>> print(alignment_statistics(q).d_align)                         # in truth d_parallel = 1, d_2 = 1/2
    0.524255 +/- 0.037 [0.4571, 0.603] (4000 samples)
    """
    pools = [_gradients(q, "q"), *([] if q_test is None else [_gradients(q_test, "q_test")])]
    n, d = pools[0].shape
    n_test = None if q_test is None else len(pools[1])
    if n_test is not None and pools[1].shape[1] != d:
        raise InputError(f"q has {d} entries a sample and q_test {pools[1].shape[1]}: they are not of one boundary")
    if not 0 < level < 1 or route not in (None, "gram", "moments"):
        raise InputError(f"level must lie in (0, 1), route be gram or moments; got level={level}, route={route!r}")
    if block is not None and (n_test is not None or block < 4 or n < 2 * block):
        raise InputError(f"blocks take at least 4 samples of one pool, and two blocks; got block={block}, n={n}")
    plan = forecast(n, d, n_test or 0, route=route, block=block)
    if plan.bytes > memory_limit:
        raise InputError(f"{n} gradients of {d} entries need {plan.bytes} bytes, above memory_limit={memory_limit}")
    eps = max(torch.finfo(pool.dtype).eps for pool in pools)
    pools, scales = zip(*(normalised(pool, pools[0].device) for pool in pools), strict=True)
    if block is not None:
        sums, *deleted = block_means(pools[0], block)
        jackknife = Jackknife(sums, tuple(deleted), 2, f"block of {block} {unit}s", level)
    else:
        rows = gram_rows(*pools, plan.route) if n_test is None else cross_rows(*pools, plan.route)
        jackknife = Jackknife(rows.sums(), rows.deleted(), 5 if n_test is None else 3, unit, level)
    squared = scales[0] * scales[-1]
    kurtoses = [k for k in map(_excess_kurtosis, pools) if k is not None]
    distinct = min(_distinct_columns(pool, eps) for pool in pools)
    return AlignmentStatistics(
        n,
        d,
        n_test,
        jackknife.value(lambda s: s.mean_squared, squared),
        jackknife.value(lambda s: s.quadratic, squared**2),
        None if n_test is None else jackknife.value(lambda s: s.quadratic_test, squared**2),
        jackknife.value(lambda s: s.trace_squared, squared**2),
        jackknife.ratio(lambda s: s.mean_fourth, lambda s: s.parallel, "d_parallel"),
        jackknife.ratio(lambda s: s.mean_fourth, lambda s: s.trace_squared, "d_2"),
        jackknife.ratio(lambda s: s.mean_fourth, lambda s: s.align, "d_align"),
        jackknife.value(lambda s: s.trace, squared) if n_test is None else None,
        jackknife.ratio(lambda s: s.trace, lambda s: s.mean_squared, "noise_scale") if n_test is None else None,
        max(kurtoses, default=None),
        distinct,
        plan,
        tuple(_notes(float(jackknife.sums.mean_squared), pools, eps, d, distinct)),
        jackknife,
    )


def _gradients(q: Any, name: str) -> Tensor:
    q = torch.as_tensor(q).detach()
    if q.dim() != 2 or not q.shape[1] or not q.is_floating_point():
        raise InputError(f"{name} must be floating-point gradients of shape (n, d); got {tuple(q.shape)}, {q.dtype}")
    if len(q) < 4:
        few = " (a mean takes at least two independent gradients, its noise four)"
        raise InputError(f"{name} must hold at least 4 independent samples{few}; got {len(q)}")
    bad = int((~torch.isfinite(q)).any(1).sum())
    if bad:
        raise InputError(f"{bad} of the {len(q)} gradients in {name} are not finite")
    return q


def normalised(q: Tensor, device: torch.device) -> tuple[Tensor, float]:
    """q in float64 over the power of two above max|q|: exact, and fourth powers neither under- nor overflow."""
    q = q.to(device, torch.float64)
    largest = float(q.abs().max())
    scale = 2.0 ** frexp(largest)[1] if largest else 1.0
    return q / scale, scale


def _excess_kurtosis(q: Tensor) -> float | None:
    squares = (q * q).sum(1)
    deviations = squares - squares.mean()
    variance = float(deviations.square().mean())
    # Below this the spread of |q|^2 is rounding.
    if variance <= (1e-12 * float(squares.mean())) ** 2:
        return None
    return float(deviations.pow(4).mean()) / variance**2 - 3


def _distinct_columns(q: Tensor, eps: float) -> int:
    """Columns that are neither zero nor, within rounding of the capture's dtype, copies of a neighbour once sorted."""
    # Projected on one fixed direction, copies fall side by side.
    weights = torch.cos(torch.arange(len(q), dtype=q.dtype, device=q.device) ** 2)
    order = (weights @ q).argsort()
    order = order[(q * q).sum(0)[order] > 0]
    distinct = min(len(order), 1)
    for start in range(0, len(order) - 1, COLUMNS):
        columns = q[:, order[start : start + COLUMNS + 1]]
        apart = columns.diff(dim=1).norm(dim=0) > min(32 * eps, 0.01) * columns[:, 1:].norm(dim=0)
        distinct += int(apart.sum())
    return distinct


def _notes(mean_squared: float, pools: tuple[Tensor, ...], eps: float, d: int, distinct: int) -> Iterator[str]:
    size = float((pools[0] * pools[0]).sum(1).mean())
    if 0 < mean_squared < eps**2 * size:
        yield (
            f"||mu||^2/E|q|^2 = {mean_squared / size:.2g} lies below eps^2 = {eps**2:.2g} of the dtype in which q was "
            "captured: rounding that is common to all samples could make up the whole mean; capture in a wider dtype"
        )
    if distinct < d:
        yield f"{d - distinct} of {d} units are silent or copies of another: the rank of Sigma is at most {distinct}"
