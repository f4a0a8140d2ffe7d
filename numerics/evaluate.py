"""From an id and inputs to a prediction: admission, assumptions, evaluation, and the JSON that other tools read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any

from theory import Formula, InputError
from theory.catalogue import formula

from .inputs import admit, show
from .value import Value

__all__ = ["Evaluator", "Prediction", "evaluator", "evaluates", "predict"]

FLOAT_DIGITS = 15
MOST_DIGITS = 10_000


@dataclass(frozen=True)
class Evaluator:
    """The function that computes one id from admitted inputs, and the digits its routes can give (None: any)."""

    id: str
    function: Callable[..., Value]
    most_digits: int | None


_EVALUATORS: dict[str, Evaluator] = {}


def evaluates(id: str, most_digits: int | None = None) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a function as the evaluator of an id. It is called with the formula's parameters, and `digits`, by name."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        _EVALUATORS[id] = Evaluator(id, function, most_digits)
        return function

    return register


def evaluator(id: str) -> Evaluator:
    """The evaluator of an id; the topic's package in numerics/ is imported when first needed."""
    known = formula(id)
    if id not in _EVALUATORS:
        import_module(f"numerics.{known.topic}")
    return _EVALUATORS[id]


@dataclass(frozen=True)
class Prediction:
    """A value with the question it answers. `to_dict` is the JSON contract.

    `assumptions` lists each hypothesis with `holds`: True or False where the inputs decide it, None where only data can.
    """

    formula: Formula
    value: Value
    inputs: Mapping[str, Any]
    assumptions: tuple[Mapping[str, Any], ...]

    @property
    def id(self) -> str:
        """The id that was asked."""
        return self.formula.id

    @property
    def radius(self) -> Any:
        """The value's radius."""
        return self.value.radius

    @property
    def kind(self) -> str:
        """exact, ball or estimate."""
        return self.value.kind

    def __float__(self) -> float:
        return float(self.value)

    def to_dict(self) -> dict[str, Any]:
        """`{"id", "value", "radius", "kind", "digits", "inputs", "assumptions", "source"}`, numbers as decimal strings."""
        return {
            "id": self.formula.id,
            **self.value.to_dict(),
            "inputs": dict(self.inputs),
            "assumptions": [dict(each) for each in self.assumptions],
            "source": str(self.formula.source),
        }

    def __str__(self) -> str:
        return f"{self.formula.id} = {self.value}"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(n)}</td><td>{escape(str(v))}</td></tr>" for n, v in self.inputs.items())
        return f"<b>{escape(self.formula.id)}</b> = {escape(str(self.value))} <i>({self.kind})</i><table>{rows}</table>"


def predict(id: str, inputs: Mapping[str, Any] | None = None, *, digits: int | None = None) -> Prediction:
    """Evaluate a formula.

    `inputs` maps parameter names to text, numbers or arrays. One scalar may be a list: the value is then a list.
    Raises InputError for an unknown id, refused inputs, or more digits than the formula's routes give.

    >>> print(predict("alignment.n_eff", {"M": 8, "K": 32}))
    alignment.n_eff = 6.24390243902439 +/- 2.44e-16
    """
    known = formula(id)
    admitted, curve = admit(known, inputs or {})
    route = evaluator(id)
    asked = FLOAT_DIGITS if digits is None else digits
    limit = MOST_DIGITS if route.most_digits is None else route.most_digits
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= limit:
        raise InputError(f"{id} can be computed to between 1 and {limit} digits; asked for {asked}")
    if curve is None:
        value = route.function(**admitted, digits=asked)
    else:
        value = Value.gather([route.function(**(admitted | {curve: each}), digits=asked) for each in admitted[curve]])
    return Prediction(
        known,
        value,
        {name: show(each) for name, each in admitted.items() if each is not None},
        tuple(_check(known, admitted, curve)),
    )


def _check(known: Formula, admitted: Mapping[str, Any], curve: str | None) -> list[Mapping[str, Any]]:
    points = [admitted] if curve is None else [{**admitted, curve: each} for each in admitted[curve]]
    checked = []
    for assumption in known.assumptions:
        verdicts = [assumption.holds(point) for point in points]
        holds = False if False in verdicts else None if None in verdicts else True
        entry = {"name": assumption.name, "text": assumption.text, "holds": holds}
        checked.append(entry | ({"otherwise": assumption.otherwise} if holds is False and assumption.otherwise else {}))
    return checked
