"""Equality: the measured quantity is the predicted one. Two independent stages: an alarm is checked, not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from empirics.measurement import Measurement
from theory import InputError

from .decision import CONFIRM_Z, REFUTE_Z, Decision, Verdict
from .equivalent_z import student_z

__all__ = ["LEAST_NETWORKS", "LEAST_UNITS", "Measure", "equality", "shortfall", "standard_score"]

Measure = Callable[[int, int], Measurement]
"""`measure(draws, stage)`: the experiment with that many draws; stages 1 and 2 must use independent random streams."""

LEAST_UNITS = 4
LEAST_NETWORKS = 16


def equality(
    measure: Measure, value: float, radius: float, draws: int, *, degrees_of_freedom: float | None = None
) -> Decision:
    """Whether measured and predicted agree: z = (estimate - value)/hypot(standard error, radius).

    Stage 1 makes `draws` draws: confirmed if |z| < 3.29. Else stage 2 makes 4 * draws with an independent seed: refuted
    if its own |z| > 4.15, else confirmed (noise shrinks, bias stays). A true equality is refuted with probability
    3.3e-8, a value 8 standard errors off with 1 - 1.2e-6.

    z is the equivalent z of Student's law (see `standard_score`). Undecided where a stage was not detected or has too
    few units (`shortfall`). Raises InputError for a value or radius that is no finite number or draws < 1,
    ArithmeticError for a measurement that is NaN. The statistic is the last stage's z; details hold both stages.

    >>> decision = equality(lambda draws, stage: Measurement(1.0, 0.1, count=draws), 1.1, 0.0, 1000)
    >>> print(decision.verdict, round(decision.statistic, 4), decision.draws)
    confirmed -0.9995 1000
    >>> print(equality(lambda draws, stage: Measurement(1.0, 0.1, count=draws), 2.0, 0.0, 1000).verdict)
    refuted
    """
    if not (math.isfinite(value) and 0 <= radius < math.inf):
        raise InputError(f"equality needs a finite value and radius, got {value} +/- {radius}")
    if draws < 1:
        raise InputError(f"equality needs at least 1 draw, got {draws}")
    stages: list[dict[str, Any]] = []
    details = {"value": value, "radius": radius, "stages": stages}
    made, z = 0, math.nan
    for stage, count in ((1, draws), (2, 4 * draws)):
        seen = measure(count, stage)
        made += count
        if missing := shortfall(seen, count):
            return Decision(Verdict.undecided, None, made, f"stage {stage}: {missing}", details)
        z = standard_score(seen, value, radius, degrees_of_freedom)
        stages.append({"stage": stage, "draws": count, "z": z, **_shown(seen)})
        if stage == 1 and abs(z) < CONFIRM_Z:
            return Decision(Verdict.confirmed, z, made, "", details)
    first = stages[0]["z"]
    if abs(z) > REFUTE_Z:
        note = f"z = {first:.3g}, and {z:.3g} on four times the draws (refuted beyond {REFUTE_Z})"
        return Decision(Verdict.refuted, z, made, note, details)
    note = f"z = {first:.3g} raised an alarm that four times the draws did not bear out (z = {z:.3g})"
    return Decision(Verdict.confirmed, z, made, note, details)


def standard_score(
    seen: Measurement, value: float, radius: float = 0.0, degrees_of_freedom: float | None = None
) -> float:
    """The equivalent z of a measurement against a value: Student's p-value turned into a normal deviate.

    Degrees of freedom: the argument, else `seen.settings["degrees_of_freedom"]`, else count - 1 (above a thousand units
    that is the normal law within 1 % up to |z| = 6); pass inf for a standard error that is known, not estimated. With a
    radius the same degrees are kept, fewer than Welch's, so the alarm is if anything too rare. Raises ArithmeticError
    for a measurement whose estimate or standard error is not finite: its z would be 0 or NaN and pass for agreement.

    >>> round(standard_score(Measurement(5.0, 1.0, unit="batch", count=4), 1.0), 3)
    2.197
    """
    if not (math.isfinite(seen.estimate) and 0 <= seen.standard_error < math.inf):
        raise ArithmeticError(
            f"the experiment returned {seen.estimate} +/- {seen.standard_error} as detected: no z can be formed; "
            "return Measurement.not_detected where there is no estimate"
        )
    degrees = degrees_of_freedom
    if degrees is None:
        degrees = seen.settings.get("degrees_of_freedom", seen.count - 1)
    return student_z(seen.z(value, radius), degrees)


def shortfall(seen: Measurement, draws: int) -> str:
    """Why a measurement allows no verdict, and how many draws would; empty where it does.

    Fewer than 4 units of any kind, fewer than 16 networks, or not detected.

    >>> shortfall(Measurement(1.0, 0.1, unit="network", count=5), 5)
    '5 networks allow no verdict; at least 16 do: make 16 draws instead of 5'
    """
    if not seen.detected:
        return f"not detected with {draws} draws: {seen.note}"
    least = LEAST_NETWORKS if seen.unit == "network" else LEAST_UNITS
    if seen.count >= least:
        return ""
    needed = math.ceil(draws * least / max(1, seen.count))
    units = f"{seen.count} {seen.unit}{'' if seen.count == 1 else 's'}"
    return f"{units} allow no verdict; at least {least} do: make {needed} draws instead of {draws}"


def _shown(seen: Measurement) -> dict[str, Any]:
    shown = {"estimate": seen.estimate, "standard_error": seen.standard_error, "unit": seen.unit, "count": seen.count}
    extra = seen.settings.get("degrees_of_freedom")
    return shown if extra is None else shown | {"degrees_of_freedom": extra}
