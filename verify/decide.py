"""The rules that a claim carries: each plans its draws, runs the experiment, decides, and tries every control.

The statistics are in `verify.rules`; here they meet formulas, cases and random streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from empirics.measurement import Measurement
from numerics import Value

from . import rules
from .claim import Case, Claim
from .outcome import ControlSeen, Outcome
from .randomness import generator
from .rules import Verdict

__all__ = ["Asymptotic", "Equality", "Trend", "UpperBound", "conclude"]


def conclude(verdict: Verdict, controls: Sequence[ControlSeen], note: str) -> tuple[Verdict, str]:
    """A confirmation in which a control survived shows nothing: it becomes vacuous, and says which."""
    survived = [each.name for each in controls if not each.refuted]
    if verdict == Verdict.confirmed and survived:
        return Verdict.vacuous, f"control survived: {', '.join(survived)}"
    return verdict, note


@dataclass(frozen=True)
class Equality:
    """The measured quantity equals the predicted one.

    `measure(case, rng, draws) -> Measurement`. The draws are planned so that every control lies beyond 8 standard errors,
    from `spread(case)`, the standard deviation of a single draw's contribution to the estimate; or they are given.
    `predicted(case)` stands in for the catalogue's value where the prediction needs more than the case's inputs.
    """

    spread: Callable[[Case], float] | None = None
    draws: int | None = None
    least: int = 1000
    most: int = 5_000_000
    predicted: Callable[[Case], float] | None = None
    kind: str = "equality"
    one_sided: bool = False

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """Two stages: the second, with 4 times the draws and a stream of its own, only where the first raises an alarm."""
        case = _case(claim)
        prediction = _predicted(case, self.predicted)
        value, radius = float(prediction), float(prediction.radius)
        rivals = [(control.name, control.value(case)) for control in claim.controls]
        draws = self.draws or 0
        if self.spread is not None:
            draws = max(self.least, rules.draws_for(self.spread(case), value, [rival for _, rival in rivals]))
        if draws > self.most:
            note = f"{draws} draws would bring every control beyond 8 standard errors; at most {self.most} are made"
            return Outcome(Verdict.undecided, None, "z", 0, note, prediction.to_dict())
        stages: list[Measurement] = []

        def measure(count: int, stage: int) -> Measurement:
            stages.append(claim.measure(case, generator(seed, claim.id, stage), count))
            return stages[-1]

        decision = rules.equality(measure, value, radius, draws)
        controls = tuple(_control_z(name, rival, stages[0]) for name, rival in rivals)
        verdict, note = conclude(decision.verdict, controls, decision.note)
        return Outcome(
            verdict,
            decision.statistic,
            "z",
            decision.draws,
            note,
            prediction.to_dict(),
            stages[-1].to_dict(),
            controls,
            {**decision.details, **_drawn(stages[-1])},
        )


def _case(claim: Claim) -> Case:
    if claim.case is None:
        raise ValueError(f"{claim.id}: this rule needs a formula to predict with")
    return claim.case


def _control_z(name: str, rival: float, seen: Measurement) -> ControlSeen:
    if not seen.detected:
        return ControlSeen(name, rival, None, False, note="nothing was detected to compare it with")
    z = abs(rules.standard_score(seen, rival))
    return ControlSeen(name, rival, z, z > rules.REFUTE_Z)


@dataclass(frozen=True)
class UpperBound:
    """The frequency of an event stays below the predicted bound.

    `measure(case, rng, draws)` returns booleans, True where the event happened, or a Measurement of its frequency.
    Controls tighten the bound, so only a law that attains it can kill them: `attained(case, rng, draws)` samples one at
    the inputs `attaining`, where the bound is the probability itself. Where no law attains the bound, `probability(case)`
    says what the event's probability is there, and only controls below it can be killed. `predicted(case)` as in
    `Equality`.
    """

    attaining: Mapping[str, Any]
    attained: Callable[[Case, np.random.Generator, int], np.ndarray]
    draws: int = 20_000
    batches: int = 20
    predicted: Callable[[Case], float] | None = None
    probability: Callable[[Case], float] | None = None
    kind: str = "upper bound"
    one_sided: bool = True

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """A betting e-process on the violations, its draws fixed beforehand; the controls on the attaining law."""
        case = _case(claim)
        prediction = _predicted(case, self.predicted)
        seen = claim.measure(case, generator(seed, claim.id), self.draws)
        measured, batches = _batches(seen, self.batches)
        decision = rules.upper_bound(*batches, float(prediction), alpha)
        tight = Case(case.formula.id, self.attaining)
        probability = tight.value() if self.probability is None else self.probability(tight)
        rivals = [(control.name, control.value(tight)) for control in claim.controls]
        planned = rules.bernoulli_draws_for(probability, [rival for _, rival in rivals])
        hits = int(np.count_nonzero(self.attained(tight, generator(seed, claim.id, 1), planned)))
        controls = tuple(_control_bound(name, rival, hits, planned, alpha) for name, rival in rivals)
        verdict, note = conclude(decision.verdict, controls, decision.note)
        attained = {"probability": probability, "frequency": hits / planned, "draws": planned}
        return Outcome(
            verdict,
            decision.statistic,
            "log e",
            decision.draws,
            note,
            prediction.to_dict(),
            measured.to_dict(),
            controls,
            {**decision.details, "attaining_law": attained, **_drawn(measured)},
        )


def _predicted(case: Case, predicted: Callable[[Case], float] | None) -> Value:
    return case.prediction().value if predicted is None else Value.estimate(predicted(case), 0.0)


def _drawn(measured: Measurement) -> dict[str, Any]:
    """What the experiment wants the report to draw."""
    return {"series": measured.settings["series"]} if "series" in measured.settings else {}


def _batches(seen: Any, count: int) -> tuple[Measurement, tuple[list[int], list[int]]]:
    """(frequency as a Measurement, (violations, draws) batch by batch); a Measurement is one batch."""
    if isinstance(seen, Measurement):
        return seen, ([round(seen.estimate * seen.count)], [seen.count])
    events = np.asarray(seen, dtype=bool)
    frequency = float(events.mean())
    error = math.sqrt(frequency * (1 - frequency) / len(events))
    parts = np.array_split(events, count)
    measured = Measurement(frequency, error, unit="draw", count=len(events))
    return measured, ([int(part.sum()) for part in parts], [len(part) for part in parts])


def _control_bound(name: str, rival: float, hits: int, draws: int, alpha: float) -> ControlSeen:
    frequency = hits / draws
    error = math.sqrt(frequency * (1 - frequency) / draws)
    refuted = rules.log_e_value(hits, draws, rival) > -math.log(alpha)
    return ControlSeen(name, rival, abs(frequency - rival) / error if error else math.inf, bool(refuted))


@dataclass(frozen=True)
class Asymptotic:
    """The limit of the measured quantity is the predicted value; the bias at finite size falls as size^-exponent.

    `measure(case, rng, draws, size) -> Measurement`, called for every size with a stream of its own. `draws` are made at
    each size. Controls are judged on the first stage's intercept.
    """

    sizes: tuple[int, ...]
    exponent: float
    draws: int
    predicted: Callable[[Case], float] | None = None
    kind: str = "asymptotic"
    one_sided: bool = False

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """Equality, in two stages, on the fitted intercept."""
        case = _case(claim)
        prediction = _predicted(case, self.predicted)
        value, radius = float(prediction), float(prediction.radius)

        def measure(count: int, stage: int) -> dict[int, Measurement]:
            streams = generator(seed, claim.id, stage).spawn(len(self.sizes))
            return {n: claim.measure(case, rng, count, n) for n, rng in zip(self.sizes, streams, strict=True)}

        decision = rules.asymptotic(measure, value, radius, self.draws, self.exponent)
        fits = decision.details["fits"]
        if not fits:
            return Outcome(decision.verdict, None, "z", decision.draws, decision.note, prediction.to_dict())
        first, last = (
            Measurement(
                fit["intercept"],
                fit["standard_error"],
                unit="intercept",
                count=self.draws,
                settings={"degrees_of_freedom": fit.get("degrees_of_freedom", self.draws - 1)},
            )
            for fit in (fits[0], fits[-1])
        )
        controls = tuple(_control_z(each.name, each.value(case), first) for each in claim.controls)
        verdict, note = conclude(decision.verdict, controls, decision.note)
        series = {
            "x": [n**-self.exponent for n in fits[-1]["sizes"]],
            "measured": fits[-1]["estimates"],
            "error": fits[-1]["standard_errors"],
            "predicted": [last.estimate + fits[-1]["slope"] * n**-self.exponent for n in fits[-1]["sizes"]],
            "label": "fit",
            "xlabel": f"size^-{self.exponent:g}",
            "ylabel": claim.formula.symbol if claim.formula else "",
        }
        details = {**decision.details, "series": series}
        return Outcome(
            verdict,
            decision.statistic,
            "z",
            decision.draws,
            note,
            prediction.to_dict(),
            last.to_dict(),
            controls,
            details,
        )


@dataclass(frozen=True)
class Trend:
    """The measured quantity grows as size^exponent, with the exponent that the formula predicts and not the rival's.

    `measure(case, rng, seeds) -> (seeds, sizes)` array of positive quantities, one row a seed, at `sizes`. Controls are
    rival exponents: the interval over seeds must exclude each of them.
    """

    sizes: tuple[int, ...]
    rival: float
    seeds: int = 16
    predicted: Callable[[Case], float] | None = None
    kind: str = "trend"
    one_sided: bool = True

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """Student's interval of the slopes over seeds."""
        case = _case(claim)
        prediction = _predicted(case, self.predicted)
        values = np.asarray(claim.measure(case, generator(seed, claim.id), self.seeds), dtype=float)
        slopes = rules.slopes_of_logs(self.sizes, values)
        decision = rules.trend(slopes, float(prediction), self.rival, alpha)
        error = float(slopes.std(ddof=1) / math.sqrt(len(slopes)))
        interval = decision.details.get("interval")
        measured = Measurement(
            float(slopes.mean()), error, tuple(interval) if interval else None, 1 - alpha, "seed", len(slopes)
        )
        controls = []
        for control in claim.controls:
            rival = control.value(case)
            refuted = interval is not None and not interval[0] <= rival <= interval[1]
            controls.append(ControlSeen(control.name, rival, abs(measured.z(rival)), refuted))
        verdict, note = conclude(decision.verdict, controls, decision.note)
        return Outcome(
            verdict,
            decision.statistic,
            "slope",
            decision.draws,
            note,
            prediction.to_dict(),
            measured.to_dict(),
            tuple(controls),
            decision.details,
        )
