"""What judging a claim yields: the verdict with everything that was seen on the way to it, in plain types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .rules import Verdict

__all__ = ["ControlSeen", "Outcome", "plain"]


@dataclass(frozen=True)
class ControlSeen:
    """One control after judgement. `distance` is in standard errors where the rule has them, else in `unit`."""

    name: str
    value: float | None
    distance: float | None
    refuted: bool
    unit: str = "standard errors"
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain types for the receipt."""
        return {
            "name": self.name,
            "value": plain(self.value),
            "distance": plain(self.distance),
            "refuted": bool(self.refuted),
            "unit": self.unit,
            "note": self.note,
        }


@dataclass(frozen=True)
class Outcome:
    """A verdict, the numbers behind it and the controls.

    `predicted` and `measured` are plain objects (a Value's and a Measurement's), `statistic` is what the rule decided on,
    `series` what the report draws.
    """

    verdict: Verdict
    statistic: float | None
    statistic_name: str
    draws: int
    note: str = ""
    predicted: Mapping[str, Any] | None = None
    measured: Mapping[str, Any] | None = None
    controls: tuple[ControlSeen, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for the receipt."""
        return {
            "verdict": self.verdict.value,
            "statistic": plain(self.statistic),
            "statistic_name": self.statistic_name,
            "draws": self.draws,
            "note": self.note,
            "predicted": plain(self.predicted),
            "measured": plain(self.measured),
            "controls": [each.to_dict() for each in self.controls],
            "details": plain(self.details),
        }


def plain(value: Any) -> Any:
    """Numbers, strings, lists and objects that JSON can hold; infinities as strings, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (str, bool)) or value is None:
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, int):
        return value
    number = float(value)
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")
