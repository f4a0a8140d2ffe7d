"""The shared mutant generator: the convention errors of this field, each as a control that a claim must refute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .claim import Case, Control

__all__ = [
    "factor",
    "inverse",
    "replaced",
    "restated",
    "statement_value",
    "swapped",
    "transposed",
    "without_term",
    "word_replaced",
]


def factor(by: float) -> Control:
    """The value times `by`: the forgotten 2, the half that does not belong."""
    return Control(f"times {by:g}", lambda case: by * case.value())


def inverse() -> Control:
    """The reciprocal: a ratio taken upside down."""
    return Control("inverted", lambda case: 1 / case.value())


def swapped(first: str, second: str) -> Control:
    """Two arguments exchanged. Only a case in which they differ, and matter differently, can see it."""
    return Control(
        f"{first} and {second} swapped", lambda case: case.value(**{first: case[second], second: case[first]})
    )


def replaced(name: str, value: Any, text: str = "") -> Control:
    """One input replaced: a covariance divided by the batch, a ratio by its inverse."""
    return Control(text or f"{name} = {value}", lambda case: case.value(**{name: value}))


def transposed(name: str) -> Control:
    """A matrix input transposed."""

    def value(case: Case) -> float:
        rows = [row.split(",") for row in case[name].split(";")]
        return case.value(**{name: ";".join(",".join(column) for column in zip(*rows, strict=True))})

    return Control(f"{name} transposed", value)


def restated(name: str, function: Callable[[Case], float]) -> Control:
    """A rival formula written out: for errors that no simple change of the right one produces."""
    return Control(name, function)


def word_replaced(word: str, by: Callable[[Case], float] | float, name: str = "") -> Control:
    """The statement with one of its words given another value: tr(Sigma^2) dropped (0), or taken for (tr Sigma)^2."""

    def value(case: Case) -> float:
        new = by if isinstance(by, (int, float)) else by(case)
        return statement_value(case, {word: float(new)})

    return Control(name or (f"{word} dropped" if by == 0 else f"{word} replaced"), value)


def without_term(index: int) -> Control:
    """The expanded statement with its `index`-th term dropped (in SymPy's order, which is stable)."""

    def value(case: Case) -> float:
        from sympy import expand

        terms = expand(case.formula.statement).as_ordered_terms()
        return statement_value(case, {}, sum(terms) - terms[index])

    return Control(f"term {index + 1} dropped", value)


def statement_value(case: Case, words: Mapping[str, float], expression: Any = None) -> float:
    """The symbolic statement evaluated at the case, some of its words overridden."""
    from numerics.statement import evaluate_statement

    return float(evaluate_statement(case.formula, case._admitted, words=words, expression=expression))
