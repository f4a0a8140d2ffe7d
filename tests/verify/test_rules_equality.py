"""Two-stage equality: its thresholds, its size on normal and on Student data, its power where draws were planned."""

import json
import math
from importlib import import_module

import numpy as np
import pytest
from bands import band

from empirics.measurement import Measurement
from theory import InputError
from verify.outcome import plain
from verify.rules import Verdict, draws_for, equality, shortfall, standard_score

RUNS = 20_000
DRAWS = 100


def at(z, **more):
    """A measurement z standard errors above 0."""
    return Measurement(z, 1.0, **{"count": DRAWS, "settings": {"degrees_of_freedom": math.inf}, **more})


def by_stage(*stages):
    return lambda draws, stage: stages[stage - 1]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_thresholds_of_both_stages(sign):
    assert equality(by_stage(at(sign * 3.289)), 0.0, 0.0, DRAWS).verdict is Verdict.confirmed
    for second, verdict in ((4.149, Verdict.confirmed), (4.151, Verdict.refuted), (-4.151, Verdict.refuted)):
        decision = equality(by_stage(at(sign * 3.291), at(second)), 0.0, 0.0, DRAWS)
        assert decision.verdict is verdict
        assert decision.statistic == second
        assert "3.29" in decision.note


def test_the_second_stage_makes_four_times_the_draws_and_both_are_counted():
    asked = []

    def measure(draws, stage):
        asked.append((draws, stage))
        return at(5.0)

    decision = equality(measure, 0.0, 0.0, DRAWS)
    assert asked == [(100, 1), (400, 2)]
    assert decision.draws == 500
    assert [stage["z"] for stage in decision.details["stages"]] == [5.0, 5.0]
    json.dumps(plain(decision.details), allow_nan=False)
    assert equality(lambda draws, stage: at(1.0), 0.0, 0.0, DRAWS).draws == 100


def _alarms(rng, units, scale=1.0, degrees=None):
    """Runs of a true equality that went to the second stage; the claimed standard error is `scale` times the right one."""
    samples = rng.standard_normal((RUNS, units))
    means, errors = samples.mean(axis=1), scale * samples.std(axis=1, ddof=1) / math.sqrt(units)
    measurements = (Measurement(m, e, count=units) for m, e in zip(means.tolist(), errors.tolist(), strict=True))
    decisions = (
        equality(by_stage(each, at(0.0)), 0.0, 0.0, units, degrees_of_freedom=degrees) for each in measurements
    )
    return sum(len(decision.details["stages"]) == 2 for decision in decisions)


@pytest.mark.parametrize("units", [4, 16, 200])
def test_the_first_stage_alarms_once_in_a_thousand(units):
    """With 4 units and with many; a standard error off by a factor 2 either way fails the same test."""
    allowed = band(2 * 5.0094e-4, RUNS)
    assert _alarms(np.random.default_rng(units), units) in allowed
    assert _alarms(np.random.default_rng(units), units, scale=0.5) not in allowed
    assert _alarms(np.random.default_rng(units), units, scale=2.0) not in allowed


def test_normal_tails_on_few_units_would_alarm_too_often():
    assert _alarms(np.random.default_rng(4), 4, degrees=math.inf) not in band(1e-3, RUNS)


@pytest.mark.parametrize(("independent", "fits"), [(True, True), (False, False)])
def test_the_stages_multiply(monkeypatch, independent, fits):
    """At thresholds low enough to be seen: 2 Phi(-1) 2 Phi(-1.5). A second stage on the first one's data fails."""
    module = import_module("verify.rules.equality")
    monkeypatch.setattr(module, "CONFIRM_Z", 1.0)
    monkeypatch.setattr(module, "REFUTE_Z", 1.5)
    noise = np.random.default_rng(3).standard_normal((RUNS, 2))
    if not independent:
        noise[:, 1] = noise[:, 0]
    verdicts = [equality(by_stage(at(a), at(b)), 0.0, 0.0, DRAWS).verdict for a, b in noise.tolist()]
    rate = math.erfc(1 / math.sqrt(2)) * math.erfc(1.5 / math.sqrt(2))
    assert (verdicts.count(Verdict.refuted) in band(rate, RUNS)) == fits


@pytest.mark.parametrize(("sigma", "powerful"), [(8.0, True), (4.0, False)])
def test_a_rival_at_eight_standard_errors_is_always_refuted(sigma, powerful):
    """Power 1 - 1.2e-6 where draws were planned at 8; half as far, one in four rivals passes the first stage."""
    rng = np.random.default_rng(8)
    draws = draws_for(3.0, 1.0, [1.5], sigma=sigma)

    def measure(count, stage):
        error = 3.0 / math.sqrt(count)
        return Measurement(1.0 + error * rng.standard_normal(), error, count=count)

    refuted = sum(equality(measure, 1.5, 0.0, draws).verdict is Verdict.refuted for _ in range(4000))
    assert (refuted in band(1 - 1.24e-6, 4000)) == powerful


def test_the_radius_is_added_in_quadrature():
    seen = Measurement(10.0, 3.0, count=10**9)
    assert standard_score(seen, 0.0, 4.0) == pytest.approx(2.0, rel=1e-7)
    assert equality(by_stage(seen), 0.0, 4.0, DRAWS).verdict is Verdict.confirmed
    assert equality(by_stage(seen, seen), 0.0, 0.0, DRAWS).statistic == pytest.approx(10 / 3, rel=1e-7)


def test_degrees_of_freedom_come_from_the_argument_the_settings_or_the_count():
    few = Measurement(4.0, 1.0, count=4)
    batched = Measurement(4.0, 1.0, count=16, settings={"degrees_of_freedom": 3})
    assert standard_score(few, 0.0) == standard_score(batched, 0.0) == pytest.approx(2.19717, abs=1e-5)
    assert standard_score(batched, 0.0, degrees_of_freedom=15) == pytest.approx(3.24870, abs=1e-5)
    assert equality(by_stage(batched, batched), 0.0, 0.0, 1, degrees_of_freedom=math.inf).statistic == 4.0


@pytest.mark.parametrize(
    ("unit", "count", "needed"), [("batch", 3, 134), ("network", 15, 107), ("network", 4, 400), ("image", 0, 400)]
)
def test_too_few_units_allow_no_verdict_and_say_what_would(unit, count, needed):
    decision = equality(by_stage(at(9.0, unit=unit, count=count)), 0.0, 0.0, DRAWS)
    assert decision.verdict is Verdict.undecided
    assert decision.statistic is None
    assert f"make {needed} draws instead of 100" in decision.note


def test_enough_units_do():
    assert shortfall(at(0.0, unit="batch", count=4), DRAWS) == ""
    assert shortfall(at(0.0, unit="network", count=16), DRAWS) == ""


def test_what_was_not_detected_is_undecided_at_either_stage():
    missing = Measurement.not_detected("image", 100, "||mu||^2 is below 2 standard errors", estimate=0.0)
    for stages, draws in (((missing,), 100), ((at(9.0), missing), 500)):
        decision = equality(by_stage(*stages), 0.0, 0.0, DRAWS)
        assert (decision.verdict, decision.draws) == (Verdict.undecided, draws)
        assert "||mu||^2 is below 2 standard errors" in decision.note


@pytest.mark.parametrize(("estimate", "error"), [(math.nan, 1.0), (0.0, math.nan), (0.0, math.inf), (math.inf, 1.0)])
def test_a_measurement_without_numbers_is_an_error_not_an_agreement(estimate, error):
    with pytest.raises(ArithmeticError, match="not_detected"):
        equality(by_stage(Measurement(estimate, error, count=9)), 0.0, 0.0, DRAWS)


def test_without_spread_only_the_value_itself_agrees():
    exact = Measurement(0.0, 0.0, count=9)
    assert equality(by_stage(exact), 0.0, 0.0, DRAWS).verdict is Verdict.confirmed
    assert equality(by_stage(exact, exact), 1e-300, 0.0, DRAWS).verdict is Verdict.refuted


@pytest.mark.parametrize(
    ("value", "radius", "draws"), [(math.nan, 0, 1), (math.inf, 0, 1), (0, -1, 1), (0, math.nan, 1), (0, 0, 0)]
)
def test_refusals(value, radius, draws):
    with pytest.raises(InputError, match="equality needs"):
        equality(by_stage(at(0.0), at(0.0)), value, radius, draws)
