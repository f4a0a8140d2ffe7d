"""`assay compare alignment`: is a growth step at this boundary, found on M samples, safe on K others?

Three kinds of number are kept apart: what is guaranteed (Theorem C, under an assumption that is named), what is predicted
(exact if gradients were Gaussian), and what merely puts estimates into a bound, which guarantees nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from empirics import Measurement, Subject
from theory import InputError

from .subjects import require

__all__ = ["AlignmentComparison", "SiteScan", "compare_alignment", "digits_subject", "scan_sites"]

RESAMPLES = 4000


@dataclass(frozen=True)
class AlignmentComparison:
    """What was measured at one boundary, what theory says of it, and the decision at delta.

    `guarantee` is None where no assumption was made: then nothing is guaranteed, whatever the data.
    """

    boundary: str
    model: str
    M: int
    K: int
    delta: float
    statistics: Any
    measured: Measurement
    gaussian: float | None
    bound_exact: float | None
    bound: float | None
    guarantee: Any | None
    decision: str
    more: str
    curve: dict[str, Any]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as `--json` prints and the receipt stores them."""
        guarantee = None
        if self.guarantee is not None:
            guarantee = {name: getattr(self.guarantee, name) for name in ("bound", "delta", "assumption", "baseline")}
        return {
            "target": "alignment",
            "model": self.model,
            "boundary": self.boundary,
            "M": self.M,
            "K": self.K,
            "delta": self.delta,
            "statistics": self.statistics.to_dict(),
            "measured": self.measured.to_dict(),
            "prediction": {"gaussian": self.gaussian},
            "not_guaranteed": {"bound_exact": self.bound_exact, "bound": self.bound},
            "guarantee": guarantee,
            "decision": self.decision,
            "more": self.more,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from textwrap import wrap

        s = self.statistics
        lines = [
            f"alignment at {self.boundary} of {self.model}",
            f"  {s.n} samples ({s.mean_squared.unit}), d = {s.d}",
            "",
        ]
        for name in ("mean_squared", "d_parallel", "d_2", "d_align"):
            each = getattr(s, name)
            if not each.detected:
                lines += wrap(f"{name}: not detected, {each.note}", 78, initial_indent="  ", subsequent_indent="    ")
            else:
                low, high = each.interval
                lines.append(f"  {name:<14}{each.estimate:>12.4g}   [{low:.4g}, {high:.4g}]")
        if s.kurtosis is not None:
            warning = "; intervals are too short for such tails" if s.kurtosis > 3 else ""
            lines.append(f"  {'kurtosis':<14}{s.kurtosis:>12.3g}   excess, of |q|^2{warning}")
        lines += ["", f"misalignment with M = {self.M} training and K = {self.K} test samples"]
        low, high = self.measured.interval or (math.nan, math.nan)
        lines.append(f"  {'measured':<16}{self.measured.estimate:>10.4g}   [{low:.4g}, {high:.4g}] resampling the pool")
        lines.append(_row("prediction", self.gaussian, "exact if gradients were Gaussian"))
        lines.append(_row("not guaranteed", self.bound_exact, "bound_exact, estimates put in"))
        lines.append(_row("not guaranteed", self.bound, "bound by d_align, estimates put in"))
        if self.guarantee is None:
            lines.append(f"  {'guarantee':<16}{'none':>10}   name an assumption: --kurtosis or --norm")
        else:
            g = self.guarantee
            lines.append(_row("guarantee", g.bound, f"at confidence {1 - g.delta:g}; {g.assumption}"))
            lines.append(_row("baseline", g.baseline, "assumption-free, Clopper-Pearson"))
        for note in self.notes:
            lines += wrap(note, 78, initial_indent="  note: ", subsequent_indent="    ")
        lines += ["", *wrap(f"decision at delta = {self.delta:g}: {self.decision}{self.more}", 80)]
        return "\n".join(lines)


def _row(name: str, value: float | None, text: str) -> str:
    number = "none" if value is None else f"{value:.4g}"
    return f"  {name:<16}{number:>10}   {text}"


def digits_subject(width: int = 64, seed: int = 0) -> Subject:
    """The built-in subject: a residual perceptron on handwritten digits, held-out data, cut in the middle."""
    from empirics.networks.digits import cross_entropy_sum, trained_on_digits

    trained = trained_on_digits(width, seed, steps=12)
    return Subject(trained.network, cross_entropy_sum, trained.held_out, trained.boundary, trained.held_out[0][:1])


def compare_alignment(
    subject: Subject,
    *,
    boundary: str | None = None,
    M: int = 64,
    K: int = 64,
    delta: float = 0.05,
    kurtosis: float | None = None,
    norm: float | None = None,
    seed: int = 0,
) -> AlignmentComparison:
    """Measure the alignment at one boundary of a network and set it beside every prediction and bound.

    `kurtosis` (of mu_M . r given mu_M) or `norm` (of every gradient) is the assumption that buys a guarantee at
    confidence 1 - delta. Raises InputError for a subject without model, loss, data or boundary, for M, K or delta out of
    range, and for fewer samples than M plus a pilot.
    """
    import torch

    from empirics import alignment_statistics
    from empirics.alignment import capture, resampled_misalignment

    parts = require(subject, "alignment", "model", "loss", "data")
    cut = boundary or subject.boundary
    if cut is None:
        raise InputError("compare alignment needs a boundary: name a module by --boundary, or all for a scan")
    if not 0 < delta < 1:
        raise InputError(f"--delta must lie strictly between 0 and 1; got {delta}")
    captured = capture(parts["model"], cut, parts["data"], parts["loss"])
    q = captured.gradients.to(torch.float64)
    if len(q) < M + max(K, 16):
        raise InputError(
            f"M = {M} training samples and a pilot of {max(K, 16)} need {M + max(K, 16)} samples; got {len(q)}"
        )
    statistics = alignment_statistics(q)
    measured = resampled_misalignment(q, M, K, RESAMPLES, seed)
    ratio = statistics.variance_ratio(M, K)
    exact = ratio.estimate / (1 + ratio.estimate) if ratio.detected else None
    simple = None
    if statistics.detected:
        simple = 1 / (1 + M * K / (M + K + 1) * statistics.d_align.estimate)
    guarantee = None
    if kurtosis is not None or norm is not None:
        from empirics import certify

        order = torch.randperm(len(q), generator=torch.Generator().manual_seed(seed))
        mean, pilot = q[order[:M]].mean(0), q[order[M:]]
        guarantee = certify(mean, pilot, K, delta, kurtosis=kurtosis, norm=norm)
    decision, more = _decide(statistics, guarantee, delta)
    return AlignmentComparison(
        boundary=cut,
        model=type(parts["model"]).__name__,
        M=M,
        K=K,
        delta=delta,
        statistics=statistics,
        measured=measured,
        gaussian=_gaussian(q, statistics, M, K),
        bound_exact=exact,
        bound=simple,
        guarantee=guarantee,
        decision=decision,
        more=more,
        curve=_curve(q, statistics, seed),
        notes=(*captured.notes, *statistics.notes),
    )


def _decide(statistics: Any, guarantee: Any | None, delta: float) -> tuple[str, str]:
    """(certified or not, and what would do)."""
    if guarantee is not None and guarantee.bound <= delta:
        return "certified", f", under the assumption: {guarantee.assumption}"
    why = "no assumption was made" if guarantee is None else f"the guarantee is {guarantee.bound:.3g}"
    if not statistics.detected:
        return "not certified", f": {why}, and no signal was detected; more samples are needed to say how many"
    from numerics import predict

    needed = predict("alignment.samples_needed", {"d_align": statistics.d_align.estimate, "delta": delta})
    return "not certified", f": {why}. At the estimated d_align, M = K = {needed.value} would bring the bound to delta."


def _gaussian(q: Any, statistics: Any, M: int, K: int) -> float | None:
    """The exact Gaussian probability with the sample covariance and the sample mean shrunk to the unbiased ||mu||^2."""
    import numpy as np

    from numerics import predict

    if statistics.mean_squared.estimate <= 0:
        return None
    array = q.numpy()
    mean = array.mean(axis=0)
    scale = np.abs(mean).max()
    if not scale:
        return None
    shrunk = mean / scale * math.sqrt(statistics.mean_squared.estimate / float(mean @ mean))
    covariance = np.atleast_2d(np.cov(array.T)) / scale**2
    return float(
        predict("alignment.gaussian", {"mu": shrunk, "Sigma": (covariance + covariance.T) / 2, "M": M, "K": K})
    )


def _curve(q: Any, statistics: Any, seed: int) -> dict[str, Any]:
    """Measured misalignment over the budgets that the pool allows, beside prediction and bounds, for the picture."""
    from empirics.alignment import resampled_misalignment

    budgets = [count for count in (1, 4, 16, 64, 256, 1024) if 2 * count <= len(q)]
    seen = [resampled_misalignment(q, count, count, RESAMPLES // 4, seed) for count in budgets]
    ratios = [statistics.variance_ratio(count, count) for count in budgets]
    curves = {}
    if all(each.detected for each in ratios):
        curves["bound_exact, estimates put in"] = [each.estimate / (1 + each.estimate) for each in ratios]
    return {
        "x": budgets,
        "measured": [each.estimate for each in seen],
        "error": [each.standard_error for each in seen],
        **(
            {"predicted": p, "label": "exact Gaussian"}
            if None not in (p := [_gaussian(q, statistics, c, c) for c in budgets])
            else {}
        ),
        "curves": curves,
        "xlabel": "M = K, training and test samples",
        "ylabel": "misalignment probability",
        "log": "x",
    }


@dataclass(frozen=True)
class SiteScan:
    """Every valid cut of a network, ranked by certificate, and whether measured insertions bear the ranking out."""

    model: str
    M: int
    K: int
    scan: Any
    curve: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as `--json` prints and the receipt stores them."""
        rank = self.scan.rank_correlation
        return {
            "target": "alignment",
            "model": self.model,
            "boundary": "all",
            "M": self.M,
            "K": self.K,
            "sites": [
                {
                    "boundary": site.boundary,
                    "module": site.module,
                    "d": site.d,
                    "statistics": site.statistics.to_dict(),
                    "bound": site.bound.to_dict(),
                    "guarantee": None if site.guarantee is None else site.guarantee.to_dict(),
                    "change": None if site.change is None else site.change.to_dict(),
                    "failures": site.failures,
                    "notes": list(site.notes),
                }
                for site in self.scan.sites
            ],
            "refused": dict(self.scan.refused),
            "rank_correlation": None if rank is None else rank.to_dict(),
        }

    def __str__(self) -> str:
        from textwrap import wrap

        lines = [
            f"cuts of {self.model}, best certificate first; M = {self.M}, K = {self.K}",
            f"  {'boundary':<24}{'d':>6} {'d_align':>10} {'bound':>7} {'change':>11} {'failures':>9}",
        ]
        for site in self.scan.sites:
            d_align, bound, change = (
                f"{each.estimate:.3g}" if each is not None and each.detected else "-"
                for each in (site.statistics.d_align, site.bound, site.change)
            )
            failures = "-" if site.failures is None else f"{site.failures:.2f}"
            lines.append(f"  {site.boundary[:23]:<24}{site.d:>6} {d_align:>10} {bound:>7} {change:>11} {failures:>9}")
        lines += ["", "  bound: bound_exact with estimates put in, not guaranteed; change: held-out loss"]
        rank = self.scan.rank_correlation
        if rank is not None and rank.interval is not None:
            low, high = rank.interval
            lines.append(f"  rank correlation of bound and change {rank.estimate:.2f} [{low:.2f}, {high:.2f}]")
        elif rank is not None:
            lines += wrap(f"rank correlation: {rank.note}", 78, initial_indent="  ", subsequent_indent="    ")
        for name, reason in list(self.scan.refused.items())[:8]:
            lines += wrap(
                f"not a cut: {name or 'the whole'}: {reason}", 78, initial_indent="  ", subsequent_indent="    "
            )
        if len(self.scan.refused) > 8:
            lines.append(f"  and {len(self.scan.refused) - 8} more that are no cuts")
        return "\n".join(lines)


def scan_sites(
    subject: Subject, *, M: int = 64, K: int = 64, kurtosis: float | None = None, delta: float = 0.05, seed: int = 0
) -> SiteScan:
    """Rank every valid cut by its certificate, and check the ranking by the change that small insertions make.

    As many pairs of M + K samples are set aside for the check as half of the data allows, at most 20. Raises InputError
    for a subject without model, loss or data, and for too few samples to rank by.
    """
    import torch

    from empirics.alignment import scan_boundaries

    parts = require(subject, "alignment", "model", "loss", "data")
    data = parts["data"]
    size = len(data[0]) if isinstance(data, tuple) and isinstance(data[0], torch.Tensor) else 0
    pairs = min(20, size // 2 // (M + K))
    scan = scan_boundaries(
        parts["model"], data, parts["loss"], M=M, K=K, pairs=pairs, seed=seed, kurtosis=kurtosis, delta=delta
    )
    shown = [site for site in scan.sites if site.change is not None and site.bound.detected]
    curve = {
        "x": [site.bound.estimate for site in shown],
        "measured": [site.change.estimate for site in shown],
        "error": [site.change.standard_error for site in shown],
        "xlabel": "bound_exact, estimates put in",
        "ylabel": "held-out change of the loss",
    }
    return SiteScan(type(parts["model"]).__name__, M, K, scan, curve)
