"""The exact update of one log-factor, the others fixed."""

from __future__ import annotations

from typing import Any

from theory import InputError

from ..evaluate import evaluates
from ..value import Value
from .balls import enclosed, real

__all__ = ["coordinate_update"]


@evaluates("path.coordinate_update")
def coordinate_update(
    incoming: Any, outgoing: Any, rest: Any, fan_in: int, fan_out: int, parameters: int, *, digits: int = 15
) -> Value:
    """z = log x, x the positive root of (p+A) B x^2 + A R x - (p-A) C = 0, A = fan_in - fan_out. A ball.

    Of the two forms of the root the one that does not cancel is used. Refused where fan_in + fan_out exceeds the number of
    parameters, or makes up all of it though `rest` is positive. Source: seed 003.

    >>> from numerics import predict
    >>> counts = {"fan_in": 1, "fan_out": 1, "parameters": 2}
    >>> round(float(predict("path.coordinate_update", {"incoming": 4, "outgoing": 1, "rest": 0, **counts}).value), 12)
    0.69314718056
    """
    others = parameters - fan_in - fan_out
    if others < 0 or (float(rest) > 0) != (others > 0):
        raise InputError(
            f"path.coordinate_update: fan_in={fan_in} and fan_out={fan_out} of {parameters} parameters leave {others} others, "
            f"whose g cannot sum to {float(rest):g}"
        )
    surplus = fan_in - fan_out

    def formula() -> list[Any]:
        C, B, middle = real(incoming), real(outgoing), real(rest) * surplus
        root = (middle * middle + 4 * (parameters**2 - surplus**2) * B * C).sqrt()
        if surplus > 0:
            return [(2 * (parameters - surplus) * C / (root + middle)).log()]
        return [((root - middle) / (2 * (parameters + surplus) * B)).log()]

    return enclosed(formula, digits)[0]
