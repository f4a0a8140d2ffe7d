"""Where in a network to insert: every valid cut, ranked by its certificate, the ranking held against what insertions do.

Ranking and measurement use different samples. Everything runs on one float64 copy of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from theory import InputError

from ..measurement import Measurement
from .certificate import Certificate, certify_unconditional
from .cut import Cut, call, tensors, untouched
from .interventions import STEPS, Site, in_float64, pooled
from .statistics import AlignmentStatistics, alignment_statistics

__all__ = ["Scan", "ScannedSite", "scan_boundaries"]

LEAST_RANKED = 16
LEAST_SITES = 3
RESAMPLES = 2000


@dataclass(frozen=True)
class ScannedSite:
    """One boundary: its module's class, d, the statistics there, and what follows from them at the scan's M and K.

    `bound` is Cantelli's R/(1 + R) with the unbiased estimate of R = Var/E^2: a prediction with an interval, not a
    guarantee; "not detected" where there is no signal. `guarantee` is Theorem U's certificate, where a kurtosis was
    assumed. `change` is the mean held-out change of the loss over the pairs, in its unit a sample (negative: it fell),
    and `failures` the share of pairs in which it did not fall; None where nothing was inserted. `notes`: what `capture`
    has to say about the boundary, a path that goes round it above all.
    """

    boundary: str
    module: str
    d: int
    statistics: AlignmentStatistics
    bound: Measurement
    guarantee: Certificate | None
    change: Measurement | None
    failures: float | None
    notes: tuple[str, ...]

    @property
    def rank_by(self) -> float:
        """The estimate of the bound; 1 where no signal was detected."""
        return self.bound.estimate if self.bound.detected else 1.0


@dataclass(frozen=True)
class Scan:
    """`sites` with the smallest bound first, and `refused`: the other modules, each with the reason.

    `rank_correlation`: Spearman's, of bound against mean change, over sites; near 1 if sites with the better certificate
    also gain more. Its interval (95 %, bootstrap over pairs, the same ones at every site) takes the sites and their bounds
    as given; noise of the changes draws it towards 0. None without pairs.
    """

    sites: tuple[ScannedSite, ...]
    refused: Mapping[str, str]
    rank_correlation: Measurement | None


@torch.inference_mode(False)
def scan_boundaries(
    model: nn.Module,
    data: Iterable[tuple[Any, Any]] | tuple[Any, Any],
    loss: Callable[[Any, Any], Tensor],
    *,
    M: int,
    K: int,
    boundaries: Sequence[str] | None = None,
    reduce: Literal["sum", "flatten"] | tuple[int, ...] = "sum",
    pairs: int = 0,
    step: float = STEPS[0],
    seed: int = 0,
    kurtosis: float | None = None,
    delta: float = 0.05,
    unit: str = "sample",
) -> Scan:
    """Try all modules (or `boundaries`) as cuts; rank them by the certificate for M train and K test samples.

    `data` are samples that the network was not fitted to; they, `loss` and `reduce` are as in `capture`. With `pairs`, that
    many disjoint sets of M + K samples, drawn by `seed`, are set aside: at each site the mean gradient of M is inserted,
    as large as `step` times rms|z|, and the loss of the K is measured. The others rank. `kurtosis` is that of
    `certify_unconditional`; its guarantees hold for all sites at once with probability 1 - delta, each at delta over
    their number.

    A module that is not called once with one tensor, whose samples lie elsewhere, or that hands on another module's
    output as it is, is listed as refused; so is every one if samples interact. A site costs one capture with its probes
    and a forward pass of all samples; a pair there one forward and three nested backward passes of K samples.

    Raises InputError where fewer than 16 samples are left to rank by, or a name in `boundaries` does not exist.

    >>> import torch
    >>> from empirics.networks import cross_entropy_sum, trained_on_digits
    >>> t = trained_on_digits(16, seed=0, steps=24)
    >>> scan = scan_boundaries(t.network, t.held_out, cross_entropy_sum, M=64, K=64)
    >>> [site.boundary for site in scan.sites][:2], scan.refused["blocks"]
    (['blocks.3.U', 'blocks.3.norm'], "hands on the output of 'blocks.3'")
    """
    copy = in_float64(model)
    x, y = pooled(data, copy)
    for name in boundaries or ():
        Cut(copy, name, loss)
    ranking, drawn = _split(len(tensors(x)[0]), M, K, pairs, seed)
    same = _handed_on(copy, x) if boundaries is None else {}
    refused = {name: f"hands on the output of {other!r}" for name, other in same.items()}
    names = (
        [name for name, _ in copy.named_modules() if name and name not in same] if boundaries is None else boundaries
    )
    share, sites, changes = delta / max(len(names), 1), [], []
    for name in names:
        try:
            site = Site.of(copy, name, (x, y), loss, reduce=reduce, copy=copy)
            seen = [_change(site, each[:M], each[M:], step) for each in drawn]
            sites.append(_scanned(site, ranking, M, K, unit, seen, seed, kurtosis, share))
            changes.append(seen)
        except InputError as fault:
            refused[name] = str(fault)
    order = sorted(range(len(sites)), key=lambda i: sites[i].rank_by)
    sites, changes = [sites[i] for i in order], np.array([changes[i] for i in order])
    return Scan(tuple(sites), refused, _rank_correlation(sites, changes, seed) if pairs else None)


def _split(n: int, M: int, K: int, pairs: int, seed: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Samples that rank, in their order, and disjoint sets of M + K others."""
    if min(M, K) < 1 or pairs < 0 or pairs == 1 or n - pairs * (M + K) < LEAST_RANKED:
        raise InputError(
            f"{pairs} pairs of M={M} and K={K} samples leave {n - pairs * (M + K)} of {n} to rank by; needs at least "
            f"{LEAST_RANKED}, M, K >= 1, and no pairs or at least 2"
        )
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    measured = order[: pairs * (M + K)].split(M + K) if pairs else ()
    return order[pairs * (M + K) :].sort().values, measured


def _handed_on(model: nn.Module, x: Any) -> dict[str, str]:
    """Modules whose output is, as it stands, that of a module that ended before: containers, or the identity."""
    ended: list[tuple[str, Any, int]] = []
    same: dict[str, str] = {}

    def watch(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                # The version tells an in-place module from one that changes nothing; the list keeps identities unique.
                first = next((other for other, t, v in ended if t is output and v == output._version), None)
                if first is None:
                    ended.append((name, output, output._version))
                else:
                    same[name] = first

        return hook

    with ExitStack() as hooks, torch.inference_mode(False), torch.no_grad(), untouched(model):
        for name, module in model.named_modules():
            if name:
                hooks.callback(module.register_forward_hook(watch(name)).remove)
        call(model, x)
    return same


def _change(site: Site, train: Tensor, test: Tensor, step: float) -> float:
    response = site.response(train, test)
    return response.change(step * response.unit_step)


def _scanned(
    site: Site,
    ranking: Tensor,
    M: int,
    K: int,
    unit: str,
    changes: Sequence[float],
    seed: int,
    kurtosis: Any,
    delta: float,
) -> ScannedSite:
    q = (site.q.sum(site.positions) if site.positions else site.q).flatten(1)[ranking]
    statistics = alignment_statistics(q, unit=unit)
    module = type(site.cut.model.get_submodule(site.cut.boundary)).__name__
    guarantee = None if kurtosis is None else certify_unconditional(q, M, K, delta, kurtosis)
    change = failures = None
    if changes:
        seen, count = np.array(changes), len(changes)
        change = Measurement(
            float(seen.mean()), float(seen.std(ddof=1)) / sqrt(count), unit="pair", count=count, seed=seed
        )
        failures = float((seen >= 0).mean())
    bound = _bound(statistics.variance_ratio(M, K))
    return ScannedSite(
        site.cut.boundary, module, q.shape[1], statistics, bound, guarantee, change, failures, site.notes
    )


def _bound(ratio: Measurement) -> Measurement:
    """R/(1 + R) of a measured R."""
    if ratio.interval is None:
        return replace(ratio, estimate=1.0)
    R, ends = ratio.estimate, tuple(end / (1 + end) for end in ratio.interval)
    return replace(ratio, estimate=R / (1 + R), standard_error=ratio.standard_error / (1 + R) ** 2, interval=ends)


def _rank_correlation(sites: Sequence[ScannedSite], changes: np.ndarray, seed: int) -> Measurement:
    from scipy.stats import rankdata

    pairs = changes.shape[-1]
    if len({site.rank_by for site in sites}) < 2 or len(sites) < LEAST_SITES:
        return Measurement.not_detected(
            "pair", pairs, f"a rank correlation takes {LEAST_SITES} sites that are not tied"
        )
    drawn = np.random.default_rng(seed).integers(pairs, size=(RESAMPLES, pairs))
    means = np.vstack([changes.mean(1), changes[:, drawn].mean(2).T])
    a, b = rankdata([site.rank_by for site in sites]), rankdata(means, axis=1)
    a, b = a - a.mean(), b - b.mean(1, keepdims=True)
    found = b @ a / np.sqrt((a @ a) * (b * b).sum(1))
    ends = tuple(float(end) for end in np.quantile(found[1:], [0.025, 0.975]))
    return Measurement(
        float(found[0]), float(found[1:].std()), ends, unit="pair", count=pairs, seed=seed, note="of these sites"
    )
