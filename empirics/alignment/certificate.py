"""A guarantee on the misalignment of an insertion, from gradients at hand: finite samples, no plug-in, no "for large n".

An assumption on the tail is the price (without one no bound follows from a sample): a bound on the kurtosis of the
alignments, or on the norm of the gradients, which clipping enforces. The assumption-free count of signs stands beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from numerics.alignment.certificate import cantelli_weight, clopper_pearson_upper, theorem_c, theorem_u
from theory import InputError

from .moments import gram_rows
from .statistics import normalised

__all__ = ["Certificate", "certify", "certify_unconditional"]

SIZES = 64
"""How many group sizes are tried, evenly on a logarithmic scale."""


@dataclass(frozen=True)
class Certificate:
    """`bound`, a statistic with Pr(bound < B) <= delta, where B >= Pr(X <= 0) is Cantelli's bound for the true law.

    Hence Pr(X <= 0 and bound <= b) <= max(b, delta) for every b fixed beforehand. This does not bound the share of
    failures *among* certified insertions. A bound of 1 certifies nothing.

    `baseline`: the upper Clopper-Pearson limit of level 1 - delta on Pr(X <= 0), from the signs of X in `groups` disjoint
    groups of the same sample; no assumption, but it takes groups of the full size, and is 1 where none fits. Quoting
    the smaller of bound and baseline costs 2 delta. `assumption` says what the bound rests on. `k` (size of the groups in
    W = (1 - lam X)^2) and `lam` were chosen on the first quarter of the sample; `w` is the upper limit of E W from the
    `n` other ones. `kurtosis_seen` is the sample's own (None where it has none): no proof of the assumption, but an
    argument against it where it lies far above.
    """

    bound: float
    delta: float
    assumption: str
    baseline: float
    groups: int
    k: int
    lam: float
    w: float
    n: int
    kurtosis_seen: float | None

    @property
    def certified(self) -> bool:
        """Whether the bound says anything."""
        return self.bound < 1

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; a `w` that is infinite, for too few samples, is null."""
        return asdict(self) | {"certified": self.certified, "w": self.w if np.isfinite(self.w) else None}


def certify(
    train_mean: Tensor,
    pilot: Tensor,
    K: int,
    delta: float,
    kurtosis: float | None = None,
    norm: float | None = None,
) -> Certificate:
    """Theorem C: a bound on Pr(mu_M . g_K <= 0) for this train mean mu_M (d,) and K fresh test samples.

    `pilot` (n, d): gradients of the test law, one independent sample a row, independent of the train mean and of the test
    samples to come, in an order that does not depend on their values. The train law may be another one. Assumed is at
    least one of `kurtosis`, E(y - E y)^4/Var(y)^2 <= kurtosis for the scalar y = mu_M . r given mu_M (3 for Gaussian r),
    and `norm`, |r| <= norm for every sample of the law. Given both, the better bound counts, at the same delta.
    B = R/(1 + R), R = mu_M'T mu_M/(K (mu_M.b)^2), with mean b and covariance T of the test law; B = 1 where mu_M.b <= 0.

    Raises InputError where no assumption is given (Bahadur and Savage), for a pilot gradient longer than `norm`, fewer than
    8 of them, values that are not finite, delta outside (0, 1), K < 1. Source: notes on alignment, section 9.

    >>> import torch
    >>> draws = torch.Generator().manual_seed(0)
    >>> mean = torch.tensor([1.0, 0.0], dtype=torch.float64)
    >>> pilot = mean + torch.randn(4000, 2, generator=draws, dtype=torch.float64)
    >>> seen = certify(mean, pilot, K=16, delta=0.05, kurtosis=3)      # B = 1/17 = .0588
    >>> round(seen.bound, 4), seen.assumption
    (0.0757, 'kurtosis of mu_M . r at most 3')
    """
    (mean, _), (pilot, eps) = _finite(train_mean, 1, "train_mean", 1), _finite(pilot, 2, "pilot", 8)
    if pilot.shape[1] != len(mean):
        raise InputError(f"train_mean has {len(mean)} entries, a pilot gradient {pilot.shape[1]}: not of one boundary")
    assumption, norm = _assumed("mu_M . r", "r", pilot, eps, kurtosis, norm, delta=delta, K=K)
    (mean, unit), (pilot, pilot_unit) = normalised(mean, pilot.device), normalised(pilot, pilot.device)
    y = (pilot @ mean).cpu().numpy()
    fit, rest = np.split(y, [len(y) // 4])
    sizes = _sizes(len(rest))
    lam = cantelli_weight(fit.mean(), fit.var(ddof=1) / sizes)
    w_max = None if norm is None else (1 + lam * float(mean.norm()) * (norm / pilot_unit)) ** 2

    def bounds(part: np.ndarray) -> Any:
        return theorem_c(part.mean(), part.var(ddof=1), len(rest), sizes, K, lam, delta, kurtosis, w_max)

    best, found = int(np.argmin(bounds(fit).bound)), bounds(rest)
    groups = y[: len(y) // K * K].reshape(-1, K).sum(1)
    return Certificate(
        float(found.bound[best]),
        delta,
        assumption,
        *_baseline(groups, delta),
        int(sizes[best]),
        float(lam[best] / unit / pilot_unit),
        float(found.w[best]),
        len(rest),
        _kurtosis(y),
    )


def certify_unconditional(
    q: Tensor,
    M: int,
    K: int,
    delta: float,
    kurtosis: float | None = None,
    norm: float | None = None,
) -> Certificate:
    """Theorem U: a bound on Pr(mu_M . g_K <= 0) for M train and K test samples to come, all of the law of q (n, d).

    As `certify`, but without a train mean: from the U-statistics of q, and with B = Var X/(Var X + (E X)^2). It takes
    about ten times the samples, so prefer `certify` wherever the train mean is known. `kurtosis` bounds that of the
    alignment of m with m samples, for every m (9 for Gaussian q); `norm` bounds |q|. `k` is the chosen m.

    Raises InputError as `certify` does, for fewer than 16 samples. Source: notes on alignment, section 9.

    >>> import torch
    >>> draws = torch.Generator().manual_seed(0)
    >>> q = torch.tensor([1.0, 0.0]) + torch.randn(8000, 2, generator=draws, dtype=torch.float64)
    >>> seen = certify_unconditional(q, M=16, K=16, delta=0.05, kurtosis=9)    # B = .1172
    >>> round(seen.bound, 4), seen.k
    (0.2827, 5)
    """
    q, eps = _finite(q, 2, "q", 16)
    assumption, norm = _assumed("mu_m . g_m", "q", q, eps, kurtosis, norm, delta=delta, M=M, K=K)
    quarter = len(q) // 4
    q, unit = normalised(q, q.device)
    route = "gram" if len(q) < q.shape[1] else "moments"
    fit, rest = (gram_rows(part, route).sums() for part in (q[:quarter], q[quarter:]))
    sizes = _sizes(rest.n // 2)
    v, t2, square = max(fit.quadratic, 0.0), max(fit.trace_squared, 0.0), fit.mean_squared**2
    lam = cantelli_weight(fit.mean_squared, 2 * v / sizes + t2 / sizes**2)
    w_max = None if norm is None else (1 + lam * (norm / unit) ** 2) ** 2

    def bounds(U1: float, v: float, t2: float, fourth: float) -> Any:
        moments = t2 + 2 * v + fourth, v + fourth, fourth
        return theorem_u(U1, *moments, rest.n, sizes, M, K, lam, delta, kurtosis, w_max)

    # The choice must not see U1^2 - C: that is the fit's own error, and large m would seem to have no noise at all.
    best = int(np.argmin(bounds(fit.mean_squared, v, t2, square).bound))
    found = bounds(rest.mean_squared, rest.quadratic, rest.trace_squared, rest.mean_fourth)
    m = int(sizes[best])
    return Certificate(
        float(found.bound[best]),
        delta,
        assumption,
        *_baseline(_alignments(q, M, K), delta),
        m,
        float(lam[best] / unit / unit),
        float(found.w[best]),
        rest.n,
        _kurtosis(_alignments(q, m, m)),
    )


def _finite(given: Any, axes: int, name: str, least: int) -> tuple[Tensor, float]:
    """The values in float64, and the eps of the dtype they came in."""
    given = torch.as_tensor(given).detach()
    if given.dim() != axes or not given.is_floating_point():
        shape = "(d,)" if axes == 1 else "(n, d)"
        raise InputError(f"{name} must be floating-point, of shape {shape}; got {tuple(given.shape)}, {given.dtype}")
    if len(given) < least:
        raise InputError(f"{name} must hold at least {least} independent samples; got {len(given)}")
    if not torch.isfinite(given).all():
        raise InputError(f"{name} holds values that are not finite")
    return given.to(torch.float64), torch.finfo(given.dtype).eps


def _assumed(
    scalar: str, vector: str, sample: Tensor, eps: float, kurtosis: Any, norm: Any, *, delta: float, **sizes: int
) -> tuple[str, float | None]:
    """The assumption in words and the norm to use; InputError if there is none or the sample contradicts it."""
    if not 0 < delta < 1 or any(size < 1 for size in sizes.values()):
        raise InputError(f"needs 0 < delta < 1 and sizes of at least 1; got delta={delta}, {sizes}")
    if kurtosis is None and norm is None:
        raise InputError(
            "no bound follows from a sample without an assumption on the tail: give kurtosis= (3 for a Gaussian scalar, 9 "
            "for Student's t of 5 degrees) or norm= (what the gradients are clipped to)"
        )
    if kurtosis is not None and not kurtosis >= 1:
        raise InputError(f"kurtosis must be at least 1, and 3 for a Gaussian (not the excess); got {kurtosis}")
    text = [] if kurtosis is None else [f"kurtosis of {scalar} at most {kurtosis:g}"]
    if norm is not None:
        text.append(f"|{vector}| at most {norm:g}")
        norm *= 1 + 8 * eps  # gradients clipped to a length have it up to rounding
        longest = float(sample.norm(dim=1).max())
        if not longest <= norm:
            raise InputError(
                f"a gradient of the sample is {longest:.6g} long, above norm={norm:.6g}: the assumption is false. It must hold "
                "for the law (by clipping); a largest length read off the sample bounds nothing"
            )
    return " and ".join(text), norm


def _sizes(most: int) -> np.ndarray:
    return np.unique(np.geomspace(1, most, SIZES).round().astype(int))


def _alignments(q: Tensor, M: int, K: int) -> np.ndarray:
    """M K mu_M . g_K for disjoint groups of M + K successive rows; sums, so that atoms at 0 stay where they are."""
    groups = q[: len(q) // (M + K) * (M + K)].reshape(-1, M + K, q.shape[1])
    return (groups[:, :M].sum(1) * groups[:, M:].sum(1)).sum(1).cpu().numpy()


def _baseline(alignments: np.ndarray, delta: float) -> tuple[float, int]:
    """(upper limit, number of groups)."""
    groups = len(alignments)
    return (clopper_pearson_upper(int((alignments <= 0).sum()), groups, delta) if groups else 1.0), groups


def _kurtosis(x: np.ndarray) -> float | None:
    """E(x - E x)^4/Var^2 of the sample, None for a constant."""
    deviations = x - x.mean() if len(x) else x
    largest = float(np.abs(deviations).max(initial=0.0))
    # Below this the spread is rounding.
    if largest <= 1e-12 * float(np.abs(x).max(initial=0.0)):
        return None
    squares = (deviations / largest) ** 2
    return float((squares**2).mean() / squares.mean() ** 2)
