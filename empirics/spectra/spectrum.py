"""The spectrum of one weight matrix against the law of noise: outliers, bulk, verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from numerics.mp import MarchenkoPastur
from numerics.spiked import overlaps_of
from numerics.tracy_widom import centre_and_scale
from theory import InputError

from ..measurement import Measurement
from .bulk import Bulk, MedianError, fit_bulk, fit_top, ks_distance, tail_quantile
from .eigenvalues import MEMORY_LIMIT, eigenvalues, forecast, squared_norm, top_eigenvalues
from .matrix import Weight, as_weight, flattened
from .null import DRAWS, simulated_null
from .verdict import NOTHING, Evidence, judge

__all__ = ["Change", "Outlier", "WeightSpectrum", "weight_spectrum"]

LEVEL = 1e-3


@dataclass(frozen=True)
class Outlier:
    """One singular value that noise does not explain, and the spike that would: W = noise + strength u v'.

    `singular_value` and `strength` are in the units of W. `overlap_rows` is |<u, u^>|^2 for the left vector, as long as
    W has rows, `overlap_columns` |<v, v^>|^2 for the right one: how much of the measured vectors is the spike. Exact for
    spikes independent of the noise, which trained ones need not be.
    """

    singular_value: float
    strength: float
    overlap_rows: float
    overlap_columns: float


@dataclass(frozen=True)
class Change:
    """W against W(0): ||W - W(0)||/||W(0)||, bulk variance over the initial one, and the difference by itself.

    Its stable rank, and how many of its singular values are above the threshold ratio^(1/4) sqrt(n variance) from which
    a spike leaves the bulk. `relative` and `shift` are None where W(0) is zero.
    """

    relative: float | None
    shift: float | None
    stable_rank: float
    above_threshold: int


@dataclass(frozen=True)
class WeightSpectrum:
    """What `weight_spectrum` found.

    verdict: "few", "restructured", "mixed" or "nothing to judge", and `reason`;
    outliers: largest first; energy: their share of the squared Frobenius norm;
    variance: of an entry of the noise that explains the bulk; ratio: p/n, shorter over longer side;
    edge: variance (1 + sqrt(ratio))^2, the upper edge of the eigenvalues of W'W/n, so that c W has c^2 edge;
    threshold: what the next eigenvalue of W'W/n would have had to exceed; level: the chance of a false outlier;
    ks: distance of the p - k others to their law, ks_limit its 95 % quantile on noise, p_value from the same simulation
    (all three None where only the top eigenvalues were computed);
    soft_rank: edge over the largest eigenvalue, its interval the one that holds 1 on noise in 95 % of matrices;
    singular_values: of W, descending (the computed ones).
    """

    verdict: str
    reason: str
    outliers: tuple[Outlier, ...]
    variance: float
    ratio: float
    edge: float
    threshold: float
    ks: float | None
    ks_limit: float | None
    p_value: float | None
    energy: float
    level: float
    rows: int
    columns: int
    soft_rank: Measurement
    change: Change | None
    route: str
    notes: tuple[str, ...]
    bulk: Bulk = field(repr=False)
    singular_values: np.ndarray = field(repr=False, compare=False)

    @property
    def law(self) -> MarchenkoPastur:
        """The law of the p - k eigenvalues of W'W/n that are no outliers, for a histogram."""
        share = (self.bulk.n - self.bulk.outliers) / self.bulk.n
        return MarchenkoPastur(self.bulk.ratio, self.bulk.scale * share)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, without the singular values."""
        plain = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("bulk", "singular_values")
        }
        return plain | {
            "outliers": [vars(each) for each in self.outliers],
            "soft_rank": self.soft_rank.to_dict(),
            "change": None if self.change is None else vars(self.change),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.rows} x {self.columns}: {self.verdict} ({self.reason})"]
        lines.append(
            f"variance {self.variance:.4g}, edge {self.edge:.4g}, threshold {self.threshold:.4g} at level {self.level:g}"
        )
        if self.ks is not None:
            lines.append(f"KS {self.ks:.4f} (95 % of noise: below {self.ks_limit:.4f}), p = {self.p_value:.3g}")
        for each in self.outliers[:5]:
            lines.append(
                f"singular value {each.singular_value:.4g}: strength {each.strength:.4g}, "
                f"overlaps {each.overlap_rows:.2f} (rows), {each.overlap_columns:.2f} (columns)"
            )
        return "\n".join([*lines, *self.notes])


def weight_spectrum(
    matrix: Any,
    *,
    initial: Any = None,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = 0,
    cache: Path | None = None,
    memory_limit: int = MEMORY_LIMIT,
    name: str = "matrix",
) -> WeightSpectrum:
    """Which singular values of a weight matrix noise does not explain, and whether the others are noise.

    `matrix`: a tensor or array (rows, columns); convolution kernels (out, in, ...) are flattened to (out, in * ...). Its
    orientation does not matter, except to name the overlaps; nor does its scale. `initial`, the same weight at
    initialisation, adds what changed. `level` is the chance that noise has any outlier, from 1e-20 to .1; variance and outliers
    are found together (`fit_bulk`). The p-value is the share of `draws` noise matrices of the same shape, variance refitted
    in each, that lie farther from their law; they are simulated once and kept under `cache` (see `cache_folder`).

    A matrix whose Gram matrix exceeds `memory_limit` bytes is judged by its top eigenvalues alone, without p-value.
    Assumes that noise would have independent entries of one variance: columns of unequal scale are reported as a bulk
    that is not noise (small p-value), not as outliers.

    Raises InputError for vectors, matrices of fewer than 16 rows or columns, of rank below half, NaN or complex entries.

    >>> rng = np.random.default_rng(0)
    >>> W = rng.normal(size=(300, 200)) / 300**0.5
    >>> W += 2.0 * np.outer(np.ones(300), np.ones(200)) / (300 * 200) ** 0.5
    >>> found = weight_spectrum(W)
    >>> len(found.outliers), round(found.outliers[0].strength, 1), found.verdict
    (1, 2.1, 'few')
    """
    if not 1e-20 <= level <= 0.1:
        raise InputError(f"level is the chance of a false outlier, between 1e-20 and .1; got {level}")
    if draws < 20:
        raise InputError(f"at least 20 draws of noise are needed for a 95 % quantile; got {draws}")
    weight = as_weight(matrix, name)
    n, p = weight.long, weight.short
    route = forecast(weight.rows, weight.columns, memory_limit).route
    if route == "lanczos":
        return _from_the_top(weight, level)
    spectrum = eigenvalues(weight)
    null = simulated_null(n, p, level, draws=draws, seed=seed, cache=cache)
    bulk = fit_bulk(spectrum, n, level, null.error)
    ks, limit, rest = ks_distance(spectrum, bulk), null.quantile(0.95), p - bulk.outliers
    energy = float(spectrum[: bulk.outliers].sum() / spectrum.sum())
    change = None if initial is None else _change(matrix, initial, bulk, null.error, level, name)
    shift, moved = (None, None) if change is None else (change.shift, change.relative)
    verdict, reason = judge(Evidence(p, bulk.outliers, energy, ks * rest / limit, shift, moved))
    return WeightSpectrum(
        verdict=verdict,
        reason=reason,
        ks=ks,
        ks_limit=limit / rest,
        p_value=null.p_value(ks * rest),
        energy=energy,
        change=change,
        route=route,
        notes=(*weight.notes, *_no_bulk(bulk)),
        **_common(weight, bulk, spectrum, level, null.error.deviation),
    )


def _from_the_top(weight: Weight, level: float) -> WeightSpectrum:
    top, total = top_eigenvalues(weight), squared_norm(weight)
    bulk = fit_top(top, total, weight.long, weight.short, level)
    count = len(top)
    notes = [
        f"only the largest {count} eigenvalues were computed: variance from the mean of the others, bulk not tested"
    ]
    if bulk.outliers == count:
        notes.append(f"all of them stand out: there are at least {count} outliers")
    return WeightSpectrum(
        verdict=NOTHING,
        reason=f"{bulk.outliers} eigenvalues stand out; the bulk was not computed",
        ks=None,
        ks_limit=None,
        p_value=None,
        energy=float(top[: bulk.outliers].sum() / total),
        change=None,
        route="lanczos",
        notes=(*weight.notes, *notes),
        **_common(weight, bulk, top, level, (2 / (weight.long * weight.short)) ** 0.5),
    )


def _no_bulk(bulk: Bulk) -> tuple[str, ...]:
    note = f"{bulk.outliers} eigenvalues stand out of as many others: there is no bulk of noise, and the count is a lower bound"
    return (note,) if bulk.outliers >= bulk.p // 2 else ()


def _common(weight: Weight, bulk: Bulk, spectrum: np.ndarray, level: float, deviation: float) -> dict[str, Any]:
    edge = MarchenkoPastur(bulk.p / bulk.n, bulk.variance).edges[1]
    return {
        "outliers": _outliers(weight, bulk, spectrum),
        "variance": bulk.variance,
        "ratio": bulk.p / bulk.n,
        "edge": edge,
        "threshold": bulk.threshold / bulk.n,
        "level": level,
        "rows": weight.rows,
        "columns": weight.columns,
        "soft_rank": _soft_rank(bulk, edge, float(spectrum[0]), deviation),
        "bulk": bulk,
        "singular_values": np.sqrt(spectrum),
    }


def _outliers(weight: Weight, bulk: Bulk, spectrum: np.ndarray) -> tuple[Outlier, ...]:
    thetas = bulk.strengths(spectrum)
    long, short = overlaps_of(thetas, bulk.ratio)
    rows, columns = (long, short) if weight.rows >= weight.columns else (short, long)
    strengths = thetas * sqrt(bulk.scale * (bulk.n - bulk.outliers))
    return tuple(Outlier(*map(float, each)) for each in zip(np.sqrt(spectrum), strengths, rows, columns, strict=False))


def _soft_rank(bulk: Bulk, edge: float, largest: float, deviation: float) -> Measurement:
    mu, sigma = centre_and_scale(bulk.n, bulk.p)
    spread = round(mu / sigma * deviation, 2)
    low, high = (bulk.variance * (mu + sigma * tail_quantile(q, spread)) / largest for q in (0.975, 0.025))
    estimate = edge * bulk.n / largest
    return Measurement(estimate, (high - low) / 4, (low, high), unit="matrix", count=1, note="holds 1 on 95 % of noise")


def _change(matrix: Any, initial: Any, bulk: Bulk, error: MedianError, level: float, name: str) -> Change:
    now, before = flattened(matrix, name), flattened(initial, f"initial value of {name}")
    if now.shape != before.shape:
        raise InputError(
            f"{name} is {now.shape[0]} x {now.shape[1]}, its initial value {before.shape[0]} x {before.shape[1]}"
        )
    norm = float(np.linalg.norm(before))
    difference = eigenvalues(Weight(np.asarray(now, dtype=np.float64) - before, now.shape, ()))
    relative = sqrt(difference.sum()) / norm if norm > 0 else None
    stable_rank = float(difference.sum() / difference[0]) if difference[0] > 0 else 0.0
    visible = int((difference > bulk.variance * bulk.n * (bulk.p / bulk.n) ** 0.5).sum())
    try:
        start = as_weight(initial, name)
        shift = bulk.variance / fit_bulk(eigenvalues(start), start.long, level, error).variance
    except InputError:  # initialised at zero, or of low rank: there was no bulk that could have shifted
        shift = None
    return Change(relative, shift, stable_rank, visible)
