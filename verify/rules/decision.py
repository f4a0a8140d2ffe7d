"""What a rule answers, and how often a whole run may raise a false alarm."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theory import InputError

__all__ = ["ALPHA", "CONFIRM_Z", "REFUTE_Z", "Decision", "Verdict", "alpha_each", "false_alarm_budget"]

CONFIRM_Z = 3.29
"""An equality nearer than this is confirmed at once; two-sided probability 1.0e-3 under the claim."""

REFUTE_Z = 4.15
"""An equality farther than this on the second, independent stage is refuted; 3.3e-5 under the claim."""

ALPHA = 1e-3
"""What all one-sided and trend claims of a run may together spend on false refutations."""


class Verdict(enum.StrEnum):
    """What the evidence says of a claim. `meaning` is the sentence for a human.

    >>> print(Verdict.vacuous, "-", Verdict.vacuous.meaning)
    vacuous - Nothing was tested: the assumptions were never met, or a control that is known to be wrong passed as well.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Verdict:
        """A member is its word; the sentence rides along."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    confirmed = "confirmed", "The experiment could have refuted the claim and did not."
    refuted = "refuted", "The experiment contradicts the claim beyond the run's false-alarm budget."
    undecided = "undecided", "The experiment was too small to tell; the note says what would do."
    vacuous = (
        "vacuous",
        "Nothing was tested: the assumptions were never met, or a control that is known to be wrong passed as well.",
    )
    error = "error", "The experiment raised an error and gave no evidence either way."


@dataclass(frozen=True)
class Decision:
    """A verdict with the number it rests on.

    `statistic` is an equivalent z (equality, asymptotic), the log of an e-value (upper bound) or a slope (trend); None
    where there is none. `draws` counts all draws made, over both stages. `note` is one sentence, or empty. `details`
    holds numbers (which may be infinite), strings, lists and mappings only.
    """

    verdict: Verdict
    statistic: float | None
    draws: int
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def alpha_each(one_sided_claims: int) -> float:
    """The level of one one-sided or trend claim in a run that has `one_sided_claims` of them: 1e-3 over their number.

    By the union bound the chance that any of them is refuted falsely is at most 1e-3. Raises InputError below 1.

    >>> alpha_each(20)
    5e-05
    """
    if one_sided_claims < 1:
        raise InputError(f"alpha is shared among at least one claim, got {one_sided_claims}")
    return ALPHA / one_sided_claims


def false_alarm_budget(equalities: int, one_sided: int) -> float:
    """A bound on the chance that a run of true claims refutes any: 2 Phi(-3.29) 2 Phi(-4.15) an equality, plus 1e-3.

    The two stages of an equality are independent, so their probabilities multiply; claims are added (union bound). The
    1e-3 is spent only if there is a one-sided or trend claim. Raises InputError for a negative count. Derived here.

    >>> f"{false_alarm_budget(100, 7):.5g}"
    '0.0010033'
    >>> f"{false_alarm_budget(1, 0):.2e}"
    '3.33e-08'
    """
    if equalities < 0 or one_sided < 0:
        raise InputError(f"counts of claims cannot be negative, got {equalities} equalities and {one_sided} one-sided")
    each = math.erfc(CONFIRM_Z / math.sqrt(2)) * math.erfc(REFUTE_Z / math.sqrt(2))
    return min(1.0, equalities * each + (ALPHA if one_sided else 0.0))
