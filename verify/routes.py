"""The identity rule for numbers: two routes to one formula agree at random admissible inputs, at two precisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from numerics import Value, predict
from theory import Formula

from .cases import random_inputs
from .claim import Case, Claim
from .decide import conclude
from .outcome import ControlSeen, Outcome
from .randomness import generator
from .rules import Verdict

__all__ = ["Routes"]


@dataclass(frozen=True)
class Routes:
    """Two routes to a formula agree at random admissible inputs, at two precisions where both can.

    `measure(case, digits) -> number` is the second route; the first is the catalogue's. `tolerance` is relative, added to
    both radii; it has to be derived where it is used. A control must leave the agreement at some input.
    """

    points: int = 30
    digits: tuple[int, ...] = (15, 30)
    tolerance: Callable[[int], float] = lambda digits: 10.0 ** (2 - digits)
    inputs: Callable[[Formula, Any], dict[str, Any]] = random_inputs
    kind: str = "identity"
    one_sided: bool = False

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """The worst input is named in the note, agreed or not."""
        assert claim.formula is not None
        rng = generator(seed, claim.id)
        worst, where, failed = 0.0, {}, []
        rival_gaps = dict.fromkeys((control.name for control in claim.controls), 0.0)
        for _ in range(self.points):
            drawn = self.inputs(claim.formula, rng)
            case = Case(claim.formula.id, drawn)
            for digits in self.digits:
                one = predict(claim.formula.id, drawn, digits=digits)
                other = claim.measure(case, digits)
                gap, allowed = _gap_allowed(one.value, other, self.tolerance(digits))
                if gap > allowed:
                    failed.append(f"{drawn}: {one.value} and {other}")
                if digits == self.digits[0]:
                    if gap >= worst:
                        worst, where = gap, drawn
                    for control in claim.controls:
                        apart = _rival_gap(control.value(case), one.value)
                        rival_gaps[control.name] = max(rival_gaps[control.name], apart)
        controls = [
            ControlSeen(name, None, gap, gap > 1e-6, "largest relative gap") for name, gap in rival_gaps.items()
        ]
        verdict = Verdict.refuted if failed else Verdict.confirmed
        note = failed[0] if failed else f"worst of {self.points}: relative gap {worst:.1e} at {where}"
        verdict, note = conclude(verdict, controls, note)
        return Outcome(verdict, worst, "worst gap", self.points, note, controls=tuple(controls))


def _gap_allowed(one: Value, other: Any, tolerance: float) -> tuple[float, float]:
    """(relative gap, what radius and tolerance allow): the worst of all components; a vector is measured by its largest."""
    left, right = _components(one.midpoint), _components(other)
    radii = _components(one.radius)
    if len(left) != len(right):
        return math.inf, tolerance
    finite = [abs(Fraction(each)) for each in (*left, *right) if each.is_finite()]
    scale = max(finite, default=Fraction(0)) or Fraction(1)
    gaps = [_apart(a, b) for a, b in zip(left, right, strict=True)]
    return max(float(gap / scale) for gap in gaps), tolerance + max(float(r) for r in radii) / float(scale)


def _apart(a: Decimal, b: Decimal) -> Any:
    if a == b:
        return 0
    return abs(Fraction(a) - Fraction(b)) if a.is_finite() and b.is_finite() else math.inf


def _components(number: Any) -> list[Decimal]:
    """A number, complex number, list or object as a list of decimals, so that 30 digits can differ in the last."""
    if isinstance(number, Mapping):
        return [part for each in number.values() for part in _components(each)]
    if isinstance(number, (tuple, list)) or type(number).__name__ == "Tuple":
        return [part for each in number for part in _components(each)]
    if isinstance(number, (int, float, Decimal)):
        return [Decimal(number)]
    from mpmath import isfinite
    from mpmath.libmp import to_rational

    if hasattr(number, "_mpf_"):  # exactly: its text would be cut to mpmath's precision of the moment
        return (
            [_decimal(Fraction(*(int(part) for part in to_rational(number._mpf_))))]
            if isfinite(number)
            else [Decimal(float(number))]
        )
    if isinstance(number, Fraction):
        return [_decimal(number)]
    if hasattr(number, "as_real_imag") and not number.is_extended_real:
        return [part for each in number.as_real_imag() for part in _components(each)]
    if hasattr(number, "imag") and hasattr(number, "real") and number.imag:
        return [*_components(number.real), *_components(number.imag)]
    text = str(number)
    return [Decimal({"oo": "Infinity", "+inf": "Infinity", "inf": "Infinity", "zoo": "NaN"}.get(text, text))]


def _decimal(number: Fraction) -> Decimal:
    return Context(prec=80).divide(Decimal(number.numerator), Decimal(number.denominator))


def _rival_gap(rival: Any, right: Value) -> float:
    """The largest relative gap of a control's value, in floating point."""
    wrong, truth = (
        np.asarray([float(each) for each in _components(value)]) for value in (_plain(rival), right.midpoint)
    )
    if np.array_equal(wrong, truth):
        return 0.0
    if wrong.shape != truth.shape or not (np.isfinite(wrong).all() and np.isfinite(truth).all()):
        return math.inf
    scale = max(np.abs(wrong).max(), np.abs(truth).max())
    return float(np.abs(wrong - truth).max() / scale)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [value.real, value.imag] if isinstance(value, complex) else value
