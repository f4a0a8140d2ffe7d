"""The words of the path statements, in mpmath: what the two routes of a value share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..number import to_mpmath

__all__ = ["words"]


def words(admitted: Mapping[str, Any]) -> dict[str, Any]:
    """Values of n_l, v_l, t_l, or of mean g and mean log g, at the current mpmath precision."""
    import mpmath

    def numbers(name: str) -> list[Any]:
        return [to_mpmath(float(each) if hasattr(each, "dtype") else each) for each in admitted[name]]

    if admitted.get("diagonal") is not None:
        g = numbers("diagonal")
        return {"mean g": mpmath.fsum(g) / len(g), "mean log g": mpmath.fsum(map(mpmath.log, g)) / len(g)}
    if admitted.get("widths") is None:
        return {}
    widths = numbers("widths")
    found = {f"n_{layer}": width for layer, width in enumerate(widths)}
    for letter, name in (("v", "weight_variance"), ("t", "bias_variance")):
        given = numbers(name)
        each = given * (len(widths) - 1) if len(given) == 1 else given
        found |= {f"{letter}_{layer}": number for layer, number in enumerate(each, 1)}
    return found
