"""The fourth noun. A `Claim` puts a formula to the test: an experiment, a decision rule, and controls that must fail it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from numerics import Prediction, admit, predict
from numerics.inputs import as_floats, is_full
from numerics.number import to_float
from theory import Formula, InputError
from theory import formula as formula_of

__all__ = ["OURS", "REPORTED", "Case", "Claim", "Control", "Level", "Owner", "Predict", "Rule", "claim", "collect"]

Predict = Callable[..., float]
"""`predict(**overrides)`: the formula's value at the case's inputs, some of them replaced."""


class Owner(enum.StrEnum):
    """Who makes the claim, and so whether it counts."""

    ours = "ours"
    reported = "reported"


OURS, REPORTED = Owner.ours, Owner.reported


class Level(enum.StrEnum):
    """How much time a claim may take: `quick` runs always, `full` only on request."""

    quick = "quick"
    full = "full"


class Case(Mapping[str, Any]):
    """One point at which a formula is put to the test: inputs as typed, readable as floats by attribute.

    Inputs may be left out where the claim brings a prediction of its own. `label` is the name under which a claim lists
    the case; experiments may read a law or a setting from it.

    >>> case = Case("alignment.n_eff", {"M": "4", "K": "9"})
    >>> case.M, round(case.value(), 4)
    (4, 2.5714)
    >>> round(case.value(K="90"), 4)
    3.7895
    """

    def __init__(self, id: str, inputs: Mapping[str, Any], label: str = "") -> None:
        self.label = label
        self.formula: Formula = formula_of(id)
        self.inputs = dict(inputs)
        self._admitted, curve = admit(self.formula, self.inputs, partial=True)
        if curve is not None:
            raise InputError(f"a case of {id} is one point; {curve} is a list")

    def value(self, **overrides: Any) -> Any:
        """The formula's value here, or with some inputs replaced: a float, a complex number, or an array for a list."""
        midpoint = self.prediction(**overrides).value.midpoint
        if isinstance(midpoint, tuple):
            return np.array([float(each) for each in midpoint])
        if isinstance(midpoint, Mapping):
            return complex(*(float(midpoint[part]) for part in ("re", "im")))
        return float(midpoint)

    def prediction(self, **overrides: Any) -> Prediction:
        """The same with radius and kind."""
        return predict(self.formula.id, self.inputs | overrides)

    def covariance(self, name: str) -> np.ndarray:
        """A covariance in full, in floating point."""
        matrix = as_floats(self._admitted[name])
        return matrix if is_full(self._admitted[name]) else np.diag(matrix)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._admitted:
            raise AttributeError(name)
        value = self._admitted[name]
        if value is None or isinstance(value, (int, str)):
            return value
        return as_floats(value) if isinstance(value, (tuple, np.ndarray)) else to_float(value)

    def __getitem__(self, name: str) -> Any:
        return self.inputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True)
class Control:
    """A wrong formula of a kind that people write. `value(case)` is what it would predict.

    A claim that does not refute its controls has shown nothing; its verdict is then `vacuous`.
    """

    name: str
    value: Callable[[Case], float]


class Rule(Protocol):
    """How a claim is decided. `judge` runs the experiment and the controls and says what was seen."""

    kind: str
    one_sided: bool
    """Whether the rule spends a share of the run's alpha."""

    def judge(self, claim: Claim, seed: int, alpha: float) -> Any:
        """The outcome of the claim in the run with that seed."""
        ...


@dataclass(frozen=True)
class Claim:
    """A statement that an experiment can refute.

    `measure` is the experiment; its signature is the rule's business. `formula` is None for claims about a tool rather
    than a catalogue entry. `cost` is in seconds, to start the long ones first.
    """

    id: str
    statement: str
    rule: Rule
    measure: Callable[..., Any] = field(repr=False)
    controls: tuple[Control, ...]
    case: Case | None = None
    formula: Formula | None = None
    owner: Owner = OURS
    level: Level = Level.quick
    cost: float = 1.0

    @property
    def suite(self) -> str:
        """The part of the id before the first dot."""
        return self.id.split(".", 1)[0]


def claim(
    formula: str | None = None,
    *,
    rule: Rule,
    controls: tuple[Control, ...] | list[Control],
    case: Mapping[str, Any] | None = None,
    cases: Mapping[str, Mapping[str, Any]] | None = None,
    owner: Owner | str = OURS,
    level: Level | str = Level.quick,
    suite: str | None = None,
    cost: float = 1.0,
) -> Callable[[Callable[..., Any]], list[Claim]]:
    """Turn an experiment into claims, one for each case. The docstring's first paragraph is the statement.

    The id is suite.function_name, or suite.function_name/case where there are several; the suite is the formula's topic
    unless named. At least two controls.
    """
    if len(controls) < 2:
        raise InputError("a claim needs at least two controls: one that cannot fail shows nothing")
    if formula is None and suite is None:
        raise InputError("a claim without a formula must name its suite")
    known = None if formula is None else formula_of(formula)
    points = cases if cases is not None else {"": case if case is not None else {} if known is None else known.example}

    def build(measure: Callable[..., Any]) -> list[Claim]:
        statement = " ".join((measure.__doc__ or "").strip().split("\n\n")[0].split())
        if not statement:
            raise InputError(f"{measure.__name__} needs a docstring: it is the statement of the claim")
        name = f"{suite or known.topic}.{measure.__name__}"  # type: ignore[union-attr]
        return [
            Claim(
                id=f"{name}/{label}" if label else name,
                statement=statement,
                rule=rule,
                measure=measure,
                controls=tuple(controls),
                case=None if known is None else Case(known.id, point, label),
                formula=known,
                owner=Owner(owner),
                level=Level(level),
                cost=cost,
            )
            for label, point in points.items()
        ]

    return build


def collect(module: Any) -> list[Claim]:
    """The claims that a module defines, in the order it defines them; ids must be distinct."""
    found: list[Claim] = []
    for value in vars(module).values():
        if isinstance(value, Claim):
            found.append(value)
        elif isinstance(value, list) and value and all(isinstance(each, Claim) for each in value):
            found += value
    unique = {each.id: each for each in found}
    if len(unique) != len({id(each) for each in found}):
        ids = [each.id for each in found]
        raise InputError(f"two claims of {module.__name__} share the id {max(set(ids), key=ids.count)}")
    return list(unique.values())
