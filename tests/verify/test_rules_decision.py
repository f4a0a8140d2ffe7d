"""Verdicts and the accounting of false alarms."""

import pickle
import subprocess
import sys

import mpmath
import pytest

from theory import InputError
from verify.rules import ALPHA, Verdict, alpha_each, false_alarm_budget


def test_verdicts_are_their_words_with_a_sentence_each():
    assert [str(each) for each in Verdict] == ["confirmed", "refuted", "undecided", "vacuous", "error"]
    assert all(each.meaning.endswith(".") and each.meaning.count(".") == 1 for each in Verdict)
    assert len({each.meaning for each in Verdict}) == 5
    assert Verdict("refuted") is Verdict.refuted
    assert Verdict.refuted == "refuted"


def test_a_verdict_survives_the_way_back_from_a_worker():
    assert pickle.loads(pickle.dumps(Verdict.vacuous)) is Verdict.vacuous


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_one_sided_claims_spend_a_thousandth_together(count):
    assert alpha_each(count) * count == pytest.approx(1e-3, rel=1e-14)
    assert false_alarm_budget(0, count) == 1e-3 == ALPHA


def test_an_equality_costs_both_tails_of_both_stages():
    """Kills a one-sided tail (factor 2 or 4), swapped thresholds being one product, and a single stage."""
    two = mpmath.erfc(mpmath.mpf("3.29") / mpmath.sqrt(2)) * mpmath.erfc(mpmath.mpf("4.15") / mpmath.sqrt(2))
    assert false_alarm_budget(1, 0) == pytest.approx(float(two), rel=1e-12)
    assert false_alarm_budget(250, 3) == pytest.approx(1e-3 + 250 * float(two), rel=1e-12)
    assert false_alarm_budget(0, 0) == 0
    assert false_alarm_budget(10**9, 1) == 1


def test_impossible_counts_are_refused():
    with pytest.raises(InputError, match="at least one claim, got 0"):
        alpha_each(0)
    with pytest.raises(InputError, match="negative"):
        false_alarm_budget(-1, 0)


def test_scipy_waits_until_a_rule_is_used():
    code = "import verify.rules, sys; print([m for m in ('scipy', 'sympy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
