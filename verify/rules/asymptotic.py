"""Asymptotic: a limit is tested on finite sizes by fitting away the bias whose exponent theory gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from empirics.measurement import Measurement
from theory import InputError

from .decision import CONFIRM_Z, Decision
from .equality import equality, shortfall
from .equivalent_z import fisher_z

__all__ = ["Intercept", "asymptotic", "fit_intercept"]

LEAST_SIZES = 3
"""Two parameters are fitted; the third size is what can object."""


@dataclass(frozen=True)
class Intercept:
    """y_N = y_inf + b N^-p fitted by weighted least squares.

    `estimate` is y_inf with its `standard_error` and Welch's `degrees_of_freedom` (inf for known errors), `slope` is b,
    `chi2` the squared residuals in standard errors, `lack_of_fit` the equivalent z >= 0 of chi2.
    """

    estimate: float
    standard_error: float
    degrees_of_freedom: float
    slope: float
    chi2: float
    lack_of_fit: float


def fit_intercept(
    sizes: Sequence[float],
    estimates: Sequence[float],
    standard_errors: Sequence[float],
    exponent: float,
    degrees_of_freedom: Sequence[float] | None = None,
) -> Intercept:
    """The intercept of y_N against N^-exponent, each size weighted by 1/standard_error^2.

    Without `degrees_of_freedom` (one a size) the standard errors are known. Estimated ones make the weights random, and
    the usual standard error too small: its square is sum_i (c_i s_i)^2 (1 + 4 (1 - h_i)/nu_i), where estimate =
    sum_i c_i y_i and h_i is the leverage (Kenward and Roger's correction, Meier's for a weighted mean; derived here by
    perturbing the weights, good from about 16 units a size). Lack of fit refers chi2/(sizes - 2) to Fisher's law with
    the fewest degrees of any size, so it alarms too rarely rather than too often.

    With the spreads of single draws as standard errors, `.standard_error` is the spread that `draws_for` wants for draws
    per size. Raises InputError for fewer than three distinct sizes, an exponent that is not positive, estimates that are
    not finite, or standard errors that are not positive and finite.

    >>> fit = fit_intercept([10, 20, 40], [1.2, 1.1, 1.05], [0.1, 0.1, 0.1], exponent=1)
    >>> round(fit.estimate, 12), round(fit.slope, 12), round(fit.standard_error, 6)
    (1.0, 2.0, 0.122474)
    """
    import numpy as np

    N, y, error = (np.asarray(each, dtype=float) for each in (sizes, estimates, standard_errors))
    nu = np.full(N.shape, math.inf) if degrees_of_freedom is None else np.asarray(degrees_of_freedom, dtype=float)
    if not (N.ndim == 1 and N.shape == y.shape == error.shape == nu.shape):
        raise InputError(f"one estimate, error and degrees a size: got {N.shape}, {y.shape}, {error.shape}, {nu.shape}")
    if len(set(N.tolist())) < LEAST_SIZES or not (np.all(N > 0) and np.all(np.isfinite(N))):
        raise InputError(f"an intercept needs at least {LEAST_SIZES} distinct positive sizes, got {N.tolist()}")
    if not 0 < exponent < math.inf:
        raise InputError(f"the bias must vanish as N^-p with p > 0, got p = {exponent}")
    if not (np.all(error > 0) and np.all(np.isfinite(error)) and np.all(np.isfinite(y)) and np.all(nu > 0)):
        raise InputError(f"a weighted fit needs finite estimates with positive standard errors, got {y} +/- {error}")
    x = (N / N.min()) ** -exponent
    relative = error / error.min()  # only ratios weigh, and squares of tiny errors underflow
    w = relative**-2.0
    centre = w @ x / w.sum()
    moment = w @ (x - centre) ** 2
    slope = w @ ((x - centre) * y) / moment
    c = w / w.sum() - centre * w * (x - centre) / moment
    leverage = w / w.sum() + w * (x - centre) ** 2 / moment
    estimate = c @ y
    shares = (c * relative) ** 2 * (1 + 4 * (1 - leverage) / nu)
    residual = (y - estimate - slope * x) / error
    chi2, free = float(residual @ residual), len(N) - 2
    spent = float(np.sum((shares / shares.sum()) ** 2 / nu))
    return Intercept(
        float(estimate),
        float(error.min() * np.sqrt(shares.sum())),
        1 / spent if spent else math.inf,
        float(slope * N.min() ** exponent),
        chi2,
        fisher_z(chi2 / free, free, float(nu.min())),
    )


def asymptotic(
    measure: Callable[[int, int], Mapping[int, Measurement]], value: float, radius: float, draws: int, exponent: float
) -> Decision:
    """Equality on the intercept of y_N = y_inf + b N^-exponent, in two stages as `equality` has them.

    `measure(draws, stage)` returns a Measurement for each size, `draws` at each; the decision's `draws` are per size.
    Degrees of freedom of a size as in `standard_score`. Undecided, with the reason, for fewer than three sizes, for a
    size that allows no verdict, and where the sizes do not lie on the fitted law (lack of fit beyond z = 3.29). Raises
    as `equality` and `fit_intercept` do. Details hold the fits of both stages.

    >>> seen = lambda draws, stage: {N: Measurement(1 + 2 / N, 0.01, count=draws) for N in (10, 20, 40)}
    >>> for value in (1.0, 1.1):
    ...     print(asymptotic(seen, value, 0.0, 1000, exponent=1).verdict)
    confirmed
    refuted
    """
    fits: list[dict[str, Any]] = []

    def intercept(count: int, stage: int) -> Measurement:
        return _intercept(measure(count, stage), count, exponent, fits)

    decision = equality(intercept, value, radius, draws)
    return replace(decision, details={**decision.details, "exponent": exponent, "fits": fits})


def _intercept(seen: Mapping[int, Measurement], draws: int, exponent: float, fits: list[dict[str, Any]]) -> Measurement:
    """The intercept as a Measurement, not detected where the sizes do not support one."""
    sizes = sorted(seen)
    least = min(seen.values(), key=lambda each: each.count, default=Measurement.not_detected("draw", 0, "no sizes"))
    if len(sizes) < LEAST_SIZES:
        note = f"{len(sizes)} sizes cannot test a law of two parameters; at least {LEAST_SIZES} do"
        return Measurement.not_detected(least.unit, least.count, note)
    for size in sizes:
        if missing := shortfall(seen[size], draws):
            return Measurement.not_detected(least.unit, least.count, f"size {size}: {missing}")
    errors = [seen[size].standard_error for size in sizes]
    estimates = [seen[size].estimate for size in sizes]
    degrees = [seen[size].settings.get("degrees_of_freedom", seen[size].count - 1) for size in sizes]
    fit = fit_intercept(sizes, estimates, errors, exponent, degrees)
    shown = asdict(fit)
    intercept = shown.pop("estimate")
    fits.append({"sizes": sizes, "estimates": estimates, "standard_errors": errors, "intercept": intercept, **shown})
    if fit.lack_of_fit >= CONFIRM_Z:
        note = (
            f"the sizes do not lie on y + b N^-{exponent:g}: chi^2 = {fit.chi2:.4g} on {len(sizes) - 2} degrees of "
            f"freedom (z = {fit.lack_of_fit:.3g}); leave out the smallest sizes or add larger ones"
        )
        return Measurement.not_detected(least.unit, least.count, note, fit.estimate)
    settings = {"degrees_of_freedom": fit.degrees_of_freedom}
    return Measurement(fit.estimate, fit.standard_error, unit=least.unit, count=least.count, settings=settings)
