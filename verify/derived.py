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
POINTS = 12
TOLERANCE = 10.0 ** -(PRECISIONS[-1] - 10)
"""Ten digits are left for the cancellation within a statement."""
APART = 1e-6
"""A gap that is no rounding: one point is enough."""
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
            apart, _ = distance(claim.formula, rival, statement, rng, points=5 * POINTS)
            controls.append(ControlSeen(name, None, apart, apart > APART, "relative gap"))
        verdict = Verdict.confirmed if gap <= TOLERANCE else Verdict.refuted
        verdict, note = conclude(verdict, controls, how)
        return Outcome(verdict, gap, "relative gap", POINTS if "points" in how else 0, note, controls=tuple(controls))


def distance(formula: Formula, one: Any, other: Any, rng: Any, points: int = POINTS) -> tuple[float, str]:
    """(largest relative gap, how it was found), over random admissible points and, where nothing parts there, by SymPy.

    The first point at which they part ends the search: a rival gets more points than the claim, since a ceiling may hide
    it at many. Tuples are compared part by part. A gap that is there at 15 digits and gone at 50 is rounding, and does not count.
    `simplify` is asked only of small differences: it may take minutes where numbers take none.
    """
    from sympy import Tuple, simplify

    if isinstance(other, (tuple, Tuple)):
        parts = [distance(formula, left, right, rng, points) for left, right in zip(one, other, strict=True)]
        return max(parts, key=lambda each: each[0])
    if one == other:
        return 0.0, "the same expression"
    one, other = _grounded(one), _grounded(other)
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    worst = 0.0
    for _ in range(points):
        point = {symbol: _point(formula, symbol, rng) for symbol in symbols}
        gaps = [_gap(one.subs(point).evalf(p), other.subs(point).evalf(p)) for p in PRECISIONS]
        worst = max(worst, gaps[-1])
        if worst > APART:
            return worst, "it parts"
    if worst <= TOLERANCE and (one - other).count_ops() < SMALL and simplify(one - other) == 0:
        return 0.0, "difference 0 in SymPy"
    return worst, f"zero at {points} random points to {PRECISIONS[-1]} digits"


def _grounded(expression: Any) -> Any:
    """The expression with what has no number at a point replaced by what has one, alike for both sides.

    A sum or product up to a symbol runs to 3; an indexed symbol becomes a plain one; an integral, an infimum and the like
    become a fixed combination of body, variable and limits. Equal results then mean the same integrand over the same
    range, which is more than the equality of two integrals, and all that a derivation can be asked for.
    """
    from sympy import Basic, Indexed, Integral, Product, Rational, Sum, Symbol, Tuple, oo, sympify

    def is_open(node: Any) -> bool:
        return isinstance(node, Integral) or (type(node).__module__.startswith("theory.") and not node.is_Symbol)

    def combination(*parts: Any) -> Any:
        flat = [each for part in parts for each in (part if isinstance(part, Tuple) else (part,))]
        return sum(Rational(2 * k + 3, k + 2) * _grounded(part) for k, part in enumerate(flat))

    expression = sympify(expression)
    if not isinstance(expression, Basic):
        return expression
    for node in expression.atoms(Sum, Product):
        ends = {limits[2]: 3 for limits in node.limits if limits[2].is_Symbol}
        expression = expression.subs(node, node.subs(ends).doit())
    expression = expression.replace(lambda node: isinstance(node, Indexed), lambda node: Symbol(str(node)))
    expression = expression.replace(is_open, lambda node: combination(*node.args))
    return expression.subs({oo: 97, -oo: -97})


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
