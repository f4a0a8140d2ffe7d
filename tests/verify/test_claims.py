"""Claims meet their rules: each rule confirms what is true, refutes what is not, and is vacuous where a control survives."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import strategies as st

from empirics import Measurement
from theory import InputError, catalogue
from verify import Case, claim
from verify.cases import random_inputs
from verify.controls import factor, inverse, replaced, restated, swapped, transposed, without_term, word_replaced
from verify.decide import Asymptotic, Equality, Trend, UpperBound
from verify.derived import Derived, Mutant, derivations
from verify.laws import LAWS, root
from verify.routes import Routes
from verify.rules import Verdict
from verify.search import Property

N_EFF = {"M": "6", "K": "3"}
TWO_LAWS = {"mu": "1,2", "mu_test": "2,1", "Sigma": "2,1;1,3", "Sigma_test": "1,-1/2;-1/2,2", "M": "3", "K": "7"}


def judged(measure, rule, controls=None, formula="alignment.n_eff", case=N_EFF):
    measure.__doc__ = measure.__doc__ or "A claim made for a test."
    (made,) = claim(formula, rule=rule, controls=controls or [factor(2), inverse()], case=case)(measure)
    return made.rule.judge(made, seed=0, alpha=1e-4)


def noisy(centre, spread=0.1):
    def measure(case, rng, draws):
        values = centre(case) + spread * rng.standard_normal(draws)
        return Measurement(float(values.mean()), float(values.std(ddof=1) / math.sqrt(draws)), count=draws)

    return measure


def test_equality_confirms_refutes_and_plans_its_draws():
    rule = Equality(spread=lambda case: 0.1, least=4)
    right = judged(noisy(lambda case: case.value()), rule, [factor(1.01), factor(2)])
    assert right.verdict == Verdict.confirmed
    # 1 % of 1.8 at 8 standard errors of 0.1: (0.8/0.018)^2 draws.
    assert right.draws == math.ceil((8 * 0.1 / (0.01 * 1.8)) ** 2)
    assert 5 < right.controls[0].distance < 11
    assert judged(noisy(lambda case: 1.02 * case.value()), rule, [factor(1.01), factor(2)]).verdict == Verdict.refuted


def test_a_control_that_survives_makes_the_claim_vacuous():
    seen = judged(noisy(lambda case: case.value(), 10.0), Equality(draws=50))
    assert seen.verdict == Verdict.vacuous
    assert "times 2" in seen.note


def test_too_many_draws_are_refused_before_the_first():
    def never(case, rng, draws):
        raise AssertionError("no draw should be made")

    seen = judged(never, Equality(spread=lambda case: 1e6, most=1000), [factor(1.001), factor(2)])
    assert (seen.verdict, seen.draws) == (Verdict.undecided, 0)
    assert "draws would bring" in seen.note


def test_an_upper_bound_is_refuted_by_a_law_that_exceeds_it():
    attaining = {"d_align": "1", "M": "1", "K": "1"}

    def event(chance):
        return lambda case, rng, draws: rng.random(draws) < chance(case)

    rule = UpperBound(attaining, event(lambda case: case.value()), draws=4000)
    controls = [restated("two thirds", lambda case: 2 / 3), restated("one half", lambda case: 0.5)]
    ask = {"formula": "alignment.bound_from_dimension", "case": {"d_align": "2", "M": "4", "K": "4"}}
    assert judged(event(lambda case: 0.9 * case.value()), rule, controls, **ask).verdict == Verdict.confirmed
    assert judged(event(lambda case: 1.2 * case.value()), rule, controls, **ask).verdict == Verdict.refuted
    loose = [restated("two thirds", lambda case: 2 / 3), restated("just below", lambda case: 0.7499)]
    with pytest.raises(InputError, match="cannot refute"):
        judged(event(lambda case: 0.1), rule, [loose[0], restated("above", lambda case: 0.8)], **ask)


def test_an_asymptotic_claim_fits_the_bias_away():
    def measure(bias, exponent):
        def run(case, rng, draws, size):
            values = case.value() + bias * size**-exponent + 0.1 * rng.standard_normal(draws)
            return Measurement(float(values.mean()), float(values.std(ddof=1) / math.sqrt(draws)), count=draws)

        return run

    rule = Asymptotic(sizes=(10, 20, 40, 80), exponent=1.0, draws=4000)
    right = judged(measure(3.0, 1.0), rule)
    assert right.verdict == Verdict.confirmed
    assert right.details["series"]["x"] == [0.1, 0.05, 0.025, 0.0125]
    assert (
        judged(lambda c, r, d, n: measure(0.0, 1.0)(c, r, d, n), rule, [factor(1.05), factor(2)]).verdict
        == Verdict.confirmed
    )
    off = judged(lambda c, r, d, n: dataclasses.replace(measure(3.0, 1.0)(c, r, d, n), estimate=2.0 + 3.0 / n), rule)
    assert off.verdict == Verdict.refuted
    bent = judged(measure(3.0, 0.3), rule)
    assert bent.verdict == Verdict.undecided
    assert "do not lie on" in bent.note


def test_a_trend_holds_its_exponent_and_excludes_the_rivals():
    def power(exponent):
        def run(case, rng, seeds):
            slopes = exponent + 0.02 * rng.standard_normal((seeds, 1))
            return 3.0 * np.array([8.0, 16.0, 32.0]) ** slopes

        return run

    rule = Trend(sizes=(8, 16, 32), rival=0.0, predicted=lambda case: 0.5)
    controls = [restated("linear", lambda case: 1.0), restated("none", lambda case: 0.0)]
    assert judged(power(0.5), rule, controls).verdict == Verdict.confirmed
    assert judged(power(0.7), rule, controls).verdict == Verdict.refuted
    assert judged(power(0.5), dataclasses.replace(rule, seeds=5), controls).verdict == Verdict.undecided


def whole_numbers():
    return {"M": st.integers(1, 1000), "K": st.integers(1, 1000)}


def test_a_property_is_refuted_by_a_shrunk_counterexample_that_is_tried_first_next_time(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tried = []

    def below_100(evaluate, M, K):
        tried.append((M, K))
        assert evaluate("alignment.n_eff", M=M, K=K) < 100, "too large"

    first = judged(below_100, Property(whole_numbers))
    assert first.verdict == Verdict.refuted
    found = first.details["counterexample"]
    n = found["M"] * found["K"] / (found["M"] + found["K"] + 1)
    assert 100 <= n < 102, "shrunk to the edge"
    tried.clear()
    again = judged(below_100, Property(whole_numbers))
    assert again.verdict == Verdict.refuted
    assert tried[0] == (found["M"], found["K"])


def test_a_property_without_inputs_is_vacuous(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    from hypothesis import assume

    def nothing(evaluate, M, K):
        assume(False)

    assert judged(nothing, Property(whole_numbers)).verdict == Verdict.vacuous


def test_a_control_that_no_input_breaks_makes_a_property_vacuous(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def positive(evaluate, M, K):
        assert evaluate("alignment.n_eff", M=M, K=K) > 0

    seen = judged(positive, Property(whole_numbers), [restated("minus", lambda case: -1.0), factor(2)])
    assert seen.verdict == Verdict.vacuous
    assert [each.refuted for each in seen.controls] == [True, False]


def test_a_derivation_that_misses_its_statement_is_refuted():
    (right,) = [each for each in derivations("alignment") if each.formula.name == "bound_exact"]
    assert right.rule.judge(right, 0, 1e-3).verdict == Verdict.confirmed
    wrong = dataclasses.replace(right, measure=lambda formula: (formula.derive().result * 2, formula.statement))
    assert wrong.rule.judge(wrong, 0, 1e-3).verdict == Verdict.refuted


def test_an_axiom_whose_rival_changes_nothing_makes_a_derivation_vacuous():
    (right,) = [each for each in derivations("alignment") if each.formula.name == "n_eff"]
    idle = tuple(dataclasses.replace(axiom, rival=axiom.value) for axiom in right.formula.axioms)
    seen = Derived().judge(dataclasses.replace(right, formula=dataclasses.replace(right.formula, axioms=idle)), 0, 1e-3)
    assert seen.verdict == Verdict.vacuous
    assert Mutant("halved", lambda e: e / 2).of(4) == 2


def test_two_routes_that_part_in_the_last_digits_are_refuted():
    def off_by(relative):
        def route(case, digits):
            from decimal import Decimal, localcontext

            with localcontext() as context:
                context.prec = digits + 10
                M, K = Decimal(case.M), Decimal(case.K)
                return M * K / (M + K + 1) * (1 + Decimal(relative))

        return route

    assert judged(off_by("0"), Routes()).verdict == Verdict.confirmed
    seen = judged(off_by("1e-12"), Routes())
    assert seen.verdict == Verdict.refuted
    assert judged(off_by("1e-25"), Routes()).verdict == Verdict.refuted
    assert judged(off_by("1e-25"), Routes(digits=(15,))).verdict == Verdict.confirmed


@pytest.mark.parametrize(
    ("control", "value"),
    [
        (factor(2), 38 / 3),
        (inverse(), 3 / 19),
        (swapped("M", "K"), 15 / 7 + 7 / 3 + 1 / 3),
        (replaced("K", "inf"), 5.0),
        (word_replaced("tr[ST]", 0), 6.0),
        (word_replaced("tr[ST]", lambda case: 15.0), 6 + 15 / 21),
        (without_term(2), 6.0),
        (transposed("Sigma"), 19 / 3),
        (restated("constant", lambda case: 7.0), 7.0),
    ],
)
def test_controls_compute_the_mistake_they_name(control, value):
    assert control.value(Case("alignment.variance", TWO_LAWS)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("law", list(LAWS))
def test_laws_have_the_mean_and_covariance_they_promise(law):
    mean, covariance = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.25]])
    draws = LAWS[law](mean, root(covariance), np.random.default_rng(5), (200_000,))
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((draws.mean(axis=0) - mean) / scale).max() * math.sqrt(200_000) < 4.5
    # Fourth moments are at most 9 times the squared variances (Student, 5 degrees): 4.5 s.e. of a covariance.
    assert np.abs((np.cov(draws.T) - covariance) / np.outer(scale, scale)).max() < 4.5 * math.sqrt(9 / 200_000)


# The inputs of mlp.* hang together (a target a sample, a Gram matrix of them): its own tests draw whole problems.
@pytest.mark.parametrize("id", [id for id in catalogue() if not id.startswith("mlp.")])
def test_random_inputs_are_admissible_and_not_symmetric_by_accident(id):
    from numerics import admit

    formula, rng = catalogue()[id], np.random.default_rng(1)
    seen = {str(random_inputs(formula, rng)) for _ in range(20)}
    assert len(seen) > 10
    for _ in range(20):
        admit(formula, random_inputs(formula, rng))


def test_the_report_is_one_page_that_needs_nothing_else(tmp_path):
    import re

    from verify.report import write_report
    from verify.runner import run

    done = run(["alignment.variance/gaussian", "alignment.derivation/bound"], jobs=1, out=tmp_path / "run")
    page = write_report(done.folder, done.settings, done.receipts).read_text()
    assert "<math" in page
    assert "<svg" in page
    for receipt in done.receipts:
        assert receipt.id in page
    outside = [url for url in re.findall(r'(?:src|href)="([^"]*)"', page) if not url.startswith("#")]
    assert outside == []
    assert "M and K swapped" in page
