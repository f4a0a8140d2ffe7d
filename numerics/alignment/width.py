"""How the alignment dimension grows with width in the family of one signal and one spike along it."""

from __future__ import annotations

from typing import Any

import flint

from ..certified import certified
from ..evaluate import evaluates
from ..value import Value

__all__ = ["width_exponent"]


@evaluates("alignment.width_exponent")
def width_exponent(a: Any, p: Any, *, digits: int = 15) -> Value:
    """min(a - max(p, 0), 2a - max(1, 2p)): d_align ~ N^exponent if ||mu||^2 ~ N^a and the spike along mu ~ N^p.

    Exact for rational input; negative where the dimension falls with width. Derived here.

    >>> from numerics import predict
    >>> predict("alignment.width_exponent", {"a": 1, "p": "0.5"}).value
    Value(0.5, exact)
    """

    def formula(a: Any, p: Any) -> Any:
        along, energy = a - _larger(p, 0), 2 * a - _larger(2 * p, 1)
        return -_larger(-along, -energy)

    return certified(formula, a, p, digits=digits)


def _larger(one: Any, other: Any) -> Any:
    """Of balls the enclosure of the larger: at p = 1/2 or 0 equal ones need no decision."""
    return flint.arb(one).max(other) if isinstance(one, flint.arb) else max(one, other)
