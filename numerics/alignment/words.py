"""The scalar words of the alignment statements, in mpmath: the only thing the two routes of a value share is this list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..inputs import is_full
from ..number import to_mpmath
from .sample import broadcast

__all__ = ["words"]


def words(admitted: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a'b, b'Sb, tr[ST], ||mu|| and the like at the current mpmath precision; none where no law is given."""
    import mpmath

    if admitted.get("mu") is None:
        return {}
    given = (admitted.get(name) for name in ("mu", "Sigma", "mu_test", "Sigma_test"))
    a, S, b, T = (_matrix(each, square) for each, square in zip(broadcast(*given), (False, True) * 2, strict=True))

    def trace(matrix: Any) -> Any:
        return mpmath.fsum(matrix[i, i] for i in range(matrix.rows))

    ST = S * T
    paths = {
        "a'b": a.T * b,
        "b'Sb": b.T * S * b,
        "a'Ta": a.T * T * a,
        "b'STa": b.T * ST * a,
        "b'STSb": b.T * ST * S * b,
        "a'TSTa": a.T * T * ST * a,
        "mu'Sigma mu": a.T * S * a,
    }
    cycles = {"tr[ST]": trace(ST), "tr[(ST)^2]": trace(ST * ST), "tr[Sigma^2]": trace(S * S)}
    return {name: value[0, 0] for name, value in paths.items()} | cycles | {"||mu||": mpmath.norm(a)}


def _matrix(value: Any, square: bool) -> Any:
    import mpmath

    if square and not is_full(value):
        return mpmath.diag([to_mpmath(_exact(each)) for each in value])
    return mpmath.matrix(
        [[to_mpmath(_exact(x)) for x in row] for row in value] if square else [to_mpmath(_exact(x)) for x in value]
    )


def _exact(number: Any) -> Any:
    return float(number) if hasattr(number, "dtype") else number
