"""The identity rule, in two forms: a derivation equals its statement, and two routes give one number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from numerics import Prediction, predict
from theory import Formula
from theory import topic as formulas_of

from .cases import random_inputs
from .claim import Case, Claim, Control
from .decide import conclude
from .outcome import ControlSeen, Outcome
from .randomness import generator
from .rules import Verdict

__all__ = ["Derived", "Mutant", "Routes", "derivations", "distance"]

PRECISIONS = (15, 50)
POINTS = 24


class Mutant(Control):
    """A wrong statement, made from the right one: `Mutant("halved", lambda e: e / 2)`."""

    @property
    def expression(self) -> Callable[[Any], Any]:
        """The map from right to wrong."""
        return self.value


@dataclass(frozen=True)
class Derived:
    """What `derive()` arrives at is the statement: the difference is 0 in SymPy, or at random points at two precisions.

    Every axiom is a control of its own: replaced by its rival, the derivation must arrive elsewhere. Controls that are a
    `Mutant` are wrong statements. `measure(formula)` returns the pair to compare: (derivation's result, statement).
    """

    kind: str = "identity"
    one_sided: bool = False

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """Symbolic first, numeric where SymPy cannot decide."""
        assert claim.formula is not None
        result, statement = claim.measure(claim.formula)
        rng = generator(seed, claim.id)
        gap, how = distance(claim.formula, result, statement, rng)
        rivals = {
            f"axiom broken: {each.name}": claim.formula.derive(breaking=each.name).result
            for each in claim.formula.axioms
        }
        rivals |= {
            control.name: control.expression(result) for control in claim.controls if isinstance(control, Mutant)
        }
        controls = []
        for name, rival in rivals.items():
            apart, _ = distance(claim.formula, rival, statement, rng)
            controls.append(ControlSeen(name, None, apart, apart > 1e-6, "largest relative gap"))
        verdict = Verdict.confirmed if gap <= 10.0 ** -(PRECISIONS[-1] - 10) else Verdict.refuted
        verdict, note = conclude(verdict, controls, how)
        return Outcome(verdict, gap, "relative gap", POINTS if "points" in how else 0, note, controls=tuple(controls))


def distance(formula: Formula, one: Any, other: Any, rng: Any) -> tuple[float, str]:
    """(largest relative gap, how it was found): 0 where SymPy proves equality, else over random admissible points.

    A gap that is there at 15 digits and gone at 50 is rounding, and does not count.
    """
    from sympy import simplify

    if simplify(one - other) == 0:
        return 0.0, "difference 0 in SymPy"
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    worst = 0.0
    for _ in range(POINTS):
        point = {symbol: _point(formula, symbol, rng) for symbol in symbols}
        gaps = []
        for precision in PRECISIONS:
            left, right = one.subs(point).evalf(precision), other.subs(point).evalf(precision)
            scale = max(abs(left), abs(right))
            gaps.append(0.0 if left == right else float(abs(left - right) / scale) if scale.is_finite else math.inf)
        worst = max(worst, gaps[-1])
    return worst, f"zero at {POINTS} random points to {PRECISIONS[-1]} digits"


def _point(formula: Formula, symbol: Any, rng: Any) -> Any:
    """A parameter within its typical range, a word anywhere positive; multiples of 1/64, so that delta stays below 1."""
    from sympy import Rational

    known = {each.name: each for each in formula.parameters}
    low, high = known[symbol.name].typical or (0, 4) if symbol.name in known else (0, 4)
    if symbol.name in known and known[symbol.name].domain.kind == "integer":
        return int(rng.integers(max(1, int(low)), int(high) + 1))
    if low > 0 and high > 10 * low:  # several decades: every one of them gets its share
        return Rational(round(64 * math.exp(rng.uniform(math.log(low), math.log(high)))) + 1, 64)
    return Rational(int(rng.integers(math.floor(64 * low) + 1, math.ceil(64 * high))), 64)


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
                gap, allowed = _gap(one, other), self._allowed(one, digits)
                if gap > allowed:
                    failed.append(f"{drawn}: {one.value} and {other}")
                if digits == self.digits[0]:
                    if gap >= worst:
                        worst, where = gap, drawn
                    for control in claim.controls:
                        rival_gaps[control.name] = max(
                            rival_gaps[control.name], _rival_gap(control.value(case), float(other))
                        )
        controls = [
            ControlSeen(name, None, gap, gap > 1e-6, "largest relative gap") for name, gap in rival_gaps.items()
        ]
        verdict = Verdict.refuted if failed else Verdict.confirmed
        note = failed[0] if failed else f"worst of {self.points}: relative gap {worst:.1e} at {where}"
        verdict, note = conclude(verdict, controls, note)
        return Outcome(verdict, worst, "worst gap", self.points, note, controls=tuple(controls))

    def _allowed(self, one: Prediction, digits: int) -> float:
        scale = abs(float(one)) or 1.0
        radius = float(one.radius)
        return self.tolerance(digits) + (radius / scale if math.isfinite(scale) else 0.0)


def _gap(one: Prediction, other: Any) -> float:
    """Relative gap, computed in decimals so that 30 digits can differ in the last."""
    left, right = one.value.midpoint, _decimal(other)
    if left == right:
        return 0.0
    if not (left.is_finite() and right.is_finite()):
        return math.inf
    scale = max(abs(Fraction(left)), abs(Fraction(right)))
    return float(abs(Fraction(left) - Fraction(right)) / scale)


def _decimal(number: Any) -> Decimal:
    if isinstance(number, (int, float, Decimal)):
        return Decimal(number)
    if isinstance(number, Fraction):
        return Decimal(number.numerator) / Decimal(number.denominator)
    text = str(number)
    return Decimal({"oo": "Infinity", "+inf": "Infinity", "inf": "Infinity", "zoo": "NaN"}.get(text, text))


def _rival_gap(rival: float, right: float) -> float:
    if rival == right:
        return 0.0
    if not (math.isfinite(rival) and math.isfinite(right)):
        return math.inf
    return abs(rival - right) / max(abs(rival), abs(right))


def derivations(topic: str) -> list[Claim]:
    """A `Derived` claim for every formula of a topic."""
    return [
        Claim(
            id=f"{topic}.derivation/{each.name}",
            statement=f"Deriving {each.id} from its axioms arrives at the closed form that the catalogue states.",
            rule=Derived(),
            measure=lambda formula: (formula.derive().result, formula.statement),
            controls=(Mutant("statement doubled", lambda e: 2 * e), Mutant("statement inverted", lambda e: 1 / e)),
            formula=each,
        )
        for each in formulas_of(topic)
    ]
