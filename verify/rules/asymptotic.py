"""Asymptotic: a limit is tested on finite sizes by fitting away the bias whose exponent theory gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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

    `estimate` (y_inf) and `standard_error`, both in the units of y; `slope` (b); `chi2` and its `degrees_of_freedom`
    (sizes - 2); `weights`: estimate = sum of weights * y, in the order of the sizes (they sum to 1).
    """

    estimate: float
    standard_error: float
    slope: float
    chi2: float
    degrees_of_freedom: int
    weights: tuple[float, ...]


def fit_intercept(
    sizes: Sequence[float], estimates: Sequence[float], standard_errors: Sequence[float], exponent: float
) -> Intercept:
    """The intercept of y_N against N^-exponent, weights 1/standard_error^2; the standard errors are taken as known.

    With the spreads of single draws in place of standard errors, `.standard_error` is the spread that `draws_for` wants
    for draws per size. Raises InputError for fewer than two distinct sizes, an exponent that is not positive, or standard
    errors that are not positive and finite. Derived here (weighted normal equations, centred).

    >>> fit = fit_intercept([10, 20, 40], [1.2, 1.1, 1.05], [0.1, 0.1, 0.1], exponent=1)
    >>> round(fit.estimate, 12), round(fit.slope, 12), round(fit.standard_error, 6)
    (1.0, 2.0, 0.124722)
    """
    import numpy as np

    N, y, error = (np.asarray(each, dtype=float) for each in (sizes, estimates, standard_errors))
    if not (N.ndim == 1 and N.shape == y.shape == error.shape):
        raise InputError(f"sizes, estimates and standard errors differ in shape: {N.shape}, {y.shape}, {error.shape}")
    if len(set(N.tolist())) < 2 or not np.all(N > 0):
        raise InputError(f"an intercept needs at least two distinct positive sizes, got {N.tolist()}")
    if not 0 < exponent < math.inf:
        raise InputError(f"the bias must vanish as N^-p with p > 0, got p = {exponent}")
    if not (np.all(error > 0) and np.all(np.isfinite(error)) and np.all(np.isfinite(y))):
        raise InputError(f"a weighted fit needs finite estimates and positive standard errors, got {y} +/- {error}")
    x = N**-exponent
    w = (error / error.min()) ** -2.0  # relative weights: 1/error^2 overflows for a standard error of 1e-160
    total = w.sum()
    centre = w @ x / total
    moment = w @ (x - centre) ** 2
    weights = w / total - centre * w * (x - centre) / moment
    slope = float(w @ ((x - centre) * y) / moment)
    estimate = float(weights @ y)
    residual = (y - estimate - slope * x) / error
    return Intercept(
        estimate,
        float(np.sqrt(np.sum((weights * error) ** 2))),
        slope,
        float(residual @ residual),
        len(N) - 2,
        tuple(weights.tolist()),
    )


def asymptotic(
    measure: Callable[[int, int], Mapping[int, Measurement]], value: float, radius: float, draws: int, exponent: float
) -> Decision:
    """Equality on the intercept of y_N = y_inf + b N^-exponent, in two stages as `equality` has them.

    `measure(draws, stage)` returns a Measurement for each size, `draws` at each; the decision's `draws` are per size.
    Student's degrees of freedom of the intercept are Welch's, from those of the sizes. Undecided, with the reason, for
    fewer than three sizes, for a size that allows no verdict, and where the sizes do not lie on the fitted law:
    chi^2/(sizes - 2) against Fisher's law with the fewest degrees of freedom of any size, equivalent z at least 3.29.
    Raises as `equality` and `fit_intercept` do. Details hold the fits of both stages.

    >>> seen = lambda draws, stage: {N: Measurement(1 + 2 / N, 0.01, count=draws) for N in (10, 20, 40)}
    >>> print(asymptotic(seen, 1.0, 0.0, 1000, exponent=1).verdict, asymptotic(seen, 1.1, 0.0, 1000, exponent=1).verdict)
    confirmed refuted
    """
    fits: list[dict[str, Any]] = []

    def intercept(count: int, stage: int) -> Measurement:
        return _intercept(measure(count, stage), count, exponent, fits)

    decision = equality(intercept, value, radius, draws)
    return replace(decision, details={**decision.details, "exponent": exponent, "fits": fits})


def _intercept(
    seen: Mapping[int, Measurement], draws: int, exponent: float, fits: list[dict[str, Any]]
) -> Measurement:
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
    fit = fit_intercept(sizes, [seen[size].estimate for size in sizes], errors, exponent)
    each = [float(seen[size].settings.get("degrees_of_freedom", seen[size].count - 1)) for size in sizes]
    shares = [(weight * error / fit.standard_error) ** 2 for weight, error in zip(fit.weights, errors, strict=True)]
    welch = 1 / sum(share**2 / degrees for share, degrees in zip(shares, each, strict=True))
    lack = fisher_z(fit.chi2 / fit.degrees_of_freedom, fit.degrees_of_freedom, min(each))
    fits.append(
        {
            "sizes": sizes,
            "estimates": [seen[size].estimate for size in sizes],
            "standard_errors": errors,
            "intercept": fit.estimate,
            "standard_error": fit.standard_error,
            "slope": fit.slope,
            "chi2": fit.chi2,
            "lack_of_fit_z": lack,
        }
    )
    if lack >= CONFIRM_Z:
        note = (
            f"the sizes do not lie on y + b N^-{exponent:g}: chi^2 = {fit.chi2:.4g} on {fit.degrees_of_freedom} degrees "
            f"of freedom (z = {lack:.3g}); leave out the smallest sizes or add larger ones"
        )
        return Measurement.not_detected(least.unit, least.count, note, fit.estimate)
    settings = {"degrees_of_freedom": welch}
    return Measurement(fit.estimate, fit.standard_error, unit=least.unit, count=least.count, settings=settings)
