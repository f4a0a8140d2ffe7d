"""The second route for every closed form: its SymPy statement, evaluated at admitted inputs with mpmath.

A topic's package may define `words(admitted)`, the values of the words that its statements are written in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

from theory import Formula

from .number import Complex, to_mpmath

__all__ = ["evaluate_statement"]


def evaluate_statement(
    formula: Formula,
    admitted: Mapping[str, Any],
    *,
    words: Mapping[str, Any] | None = None,
    expression: Any = None,
    digits: int = 30,
) -> Any:
    """The statement (or another `expression` in its symbols) as a SymPy number of `digits` digits; a tuple part by part.

    `words` overrides the value of some words by name. Independent of `numerics`' own evaluation except for the words.

    >>> from theory import formula
    >>> from numerics import admit
    >>> n_eff = formula("alignment.n_eff")
    >>> evaluate_statement(n_eff, admit(n_eff, {"M": 1, "K": 1})[0], digits=5)
    0.33333
    """
    import mpmath
    import sympy

    body = formula.statement if expression is None else expression
    topic = import_module(f"numerics.{formula.topic}")
    with mpmath.workdps(digits + 15):
        values = {name: _scalar(each, sympy, digits) for name, each in admitted.items() if not _is_array(each)}
        if hasattr(topic, "words"):
            values |= {name: sympy.Float(each, digits + 15) for name, each in topic.words(admitted).items()}
        values |= {name: sympy.Float(each, digits + 15) for name, each in (words or {}).items()}
        parts = body if isinstance(body, tuple) else (body,)
        found = []
        for part in parts:
            point = {symbol: values[symbol.name] for symbol in part.free_symbols if symbol.name in values}
            found.append(sympy.N(part.subs(point), digits))
        return tuple(found) if isinstance(body, tuple) else found[0]


def _is_array(value: Any) -> bool:
    return value is None or isinstance(value, (tuple, str)) or hasattr(value, "shape")


def _scalar(value: Any, sympy: Any, digits: int) -> Any:
    """Rationals stay exact, so that a ceiling at an exact tie comes out right."""
    if isinstance(value, (int, Fraction)):
        return sympy.Rational(value.numerator, value.denominator)
    if isinstance(value, Complex):
        return _scalar(value.re, sympy, digits) + sympy.I * _scalar(value.im, sympy, digits)
    return sympy.oo if value == math.inf else sympy.Float(to_mpmath(value), digits + 15)
