"""The third noun. A `Measurement` is what was seen on data: an estimate, its uncertainty, the unit that was sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Measurement"]


@dataclass(frozen=True)
class Measurement:
    """An estimate with its standard error and interval, or "not detected".

    `unit` names what was drawn independently (image, sequence, network, replicate) and `count` how many of them; without
    a unit an uncertainty means nothing. `level` is the nominal coverage of `interval`. A measurement that was not
    detected keeps its estimate where there is one (it may be negative), carries no interval, and says why in `note`.

    >>> m = Measurement(1.5, 0.25, unit="image", count=100)
    >>> print(m)
    1.5 +/- 0.25 (100 images)
    >>> m.z(1.0)
    2.0
    >>> print(Measurement.not_detected("image", 100, "||mu||^2 is below 2 standard errors"))
    not detected (100 images): ||mu||^2 is below 2 standard errors
    """

    estimate: float
    standard_error: float
    interval: tuple[float, float] | None = None
    level: float = 0.95
    unit: str = "replicate"
    count: int = 0
    detected: bool = True
    seed: int | None = None
    note: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def not_detected(cls, unit: str, count: int, note: str, estimate: float = math.nan, **settings: Any) -> Measurement:
        """No value can be stated, for the reason in `note`."""
        return cls(estimate, math.inf, None, unit=unit, count=count, detected=False, note=note, settings=settings)

    def z(self, value: float, radius: float = 0.0) -> float:
        """(estimate - value) in standard errors, the value's own radius added in quadrature; +-inf where both are 0."""
        scale = math.hypot(self.standard_error, radius)
        gap = self.estimate - value
        return gap / scale if scale > 0 else 0.0 if gap == 0 else math.copysign(math.inf, gap)

    def __float__(self) -> float:
        if not self.detected:
            raise ValueError(f"{self}: there is no number to read")
        return float(self.estimate)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON; an estimate that does not exist is null."""

        def finite(number: float) -> float | None:
            return float(number) if math.isfinite(number) else None

        return {
            "estimate": finite(self.estimate),
            "standard_error": finite(self.standard_error),
            "interval": None if self.interval is None else [float(end) for end in self.interval],
            "level": self.level,
            "sample": self.sample,
            "unit": self.unit,
            "count": self.count,
            "detected": self.detected,
            "seed": self.seed,
            "note": self.note,
            "settings": dict(self.settings),
        }

    @property
    def sample(self) -> str:
        """What was sampled, counted: 1 image, 32 batches."""
        ending = "" if self.count == 1 else "es" if self.unit.endswith(("ch", "s", "x")) else "s"
        return f"{self.count} {self.unit}{ending}"

    def __str__(self) -> str:
        if not self.detected:
            return f"not detected ({self.sample}): {self.note}"
        ends = f" [{self.interval[0]:.4g}, {self.interval[1]:.4g}]" if self.interval else ""
        return f"{self.estimate:.6g} +/- {self.standard_error:.2g}{ends} ({self.sample})"
