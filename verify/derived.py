"""The identity rule for derivations: what follows from the axioms is what the catalogue states, and nothing else does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from theory import Formula
from theory import topic as formulas_of

from .claim import Claim, Control
from .decide import conclude
from .outcome import ControlSeen, Outcome
from .randomness import generator
from .rules import Verdict

__all__ = ["Derived", "Mutant", "derivations", "distance"]

PRECISIONS = (15, 50)
POINTS = 24
TOLERANCE = 10.0 ** -(PRECISIONS[-1] - 10)
"""Ten digits are left for the cancellation within a statement."""
SMALL = 100


class Mutant(Control):
    """A wrong statement, made from the right one: `Mutant("halved", lambda e: e / 2)`."""

    def of(self, right: Any) -> Any:
        """The wrong statement; of a tuple, part by part."""
        from sympy import Tuple

        change: Callable[[Any], Any] = self.value
        return Tuple(*map(change, right)) if isinstance(right, (tuple, Tuple)) else change(right)


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
        rivals |= {control.name: control.of(result) for control in claim.controls if isinstance(control, Mutant)}
        controls = []
        for name, rival in rivals.items():
            apart, _ = distance(claim.formula, rival, statement, rng)
            controls.append(ControlSeen(name, None, apart, apart > 1e-6, "largest relative gap"))
        verdict = Verdict.confirmed if gap <= TOLERANCE else Verdict.refuted
        verdict, note = conclude(verdict, controls, how)
        return Outcome(verdict, gap, "relative gap", POINTS if "points" in how else 0, note, controls=tuple(controls))


def distance(formula: Formula, one: Any, other: Any, rng: Any) -> tuple[float, str]:
    """(largest relative gap, how it was found), over random admissible points and, where nothing parts there, by SymPy.

    Tuples are compared part by part. A gap that is there at 15 digits and gone at 50 is rounding, and does not count.
    `simplify` is asked only of small differences: it may take minutes where numbers take none.
    """
    from sympy import Tuple, simplify

    if isinstance(other, (tuple, Tuple)):
        parts = [distance(formula, left, right, rng) for left, right in zip(one, other, strict=True)]
        return max(parts, key=lambda each: each[0])
    if one == other:
        return 0.0, "the same expression"
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    worst = 0.0
    for _ in range(POINTS):
        point = {symbol: _point(formula, symbol, rng) for symbol in symbols}
        gaps = [_gap(one.subs(point).evalf(precision), other.subs(point).evalf(precision)) for precision in PRECISIONS]
        worst = max(worst, gaps[-1])
    if worst <= TOLERANCE and (one - other).count_ops() < SMALL and simplify(one - other) == 0:
        return 0.0, "difference 0 in SymPy"
    return worst, f"zero at {POINTS} random points to {PRECISIONS[-1]} digits" if worst <= TOLERANCE else "it parts"


def _gap(left: Any, right: Any) -> float:
    if left == right:
        return 0.0
    scale = max(abs(left), abs(right))
    return float(abs(left - right) / scale) if scale.is_finite else math.inf


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
