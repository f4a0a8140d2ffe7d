"""The second route: the two Fredholm determinants at any precision, in ball arithmetic, and the quantile by a secant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flint

from ..number import to_float, working_precision

__all__ = ["determinants", "words"]


def determinants(s: Any, digits: int, nodes: int | None = None) -> tuple[flint.arb, flint.arb]:
    """(det(1 - B_s), det(1 + B_s)) by LU in balls: their radius covers rounding, the quadrature is judged by more nodes.

    Shares with `TracyWidom` the operator alone: other interval, other nodes, no eigenvalues, no floating point.

    >>> minus, plus = determinants(-1, 20)
    >>> minus.str(15, radius=False), (minus * plus).str(15, radius=False)
    ('0.583789895519732', '0.807214241999285')
    """
    count = nodes or 20 + 2 * digits
    with working_precision(int(3.4 * digits) + 60):
        s = flint.arb(s)
        half = (flint.arb(10 + digits // 4) + s.neg().nonnegative_part()) / 2
        pairs = [flint.arb.legendre_p_root(count, k, weight=True) for k in range(count)]
        grid = [(half * (point + 1), (half * weight).sqrt()) for point, weight in pairs]
        kernel = flint.arb_mat([[r * (x + y + s).airy_ai() * t for y, t in grid] for x, r in grid])
        one = flint.arb_mat(count, count, [flint.arb(int(i == j)) for i in range(count) for j in range(count)])
        return (one - kernel).det(), (one + kernel).det()


def words(admitted: Mapping[str, Any]) -> dict[str, Any]:
    """Values of det[1-B_s], det[1+B_s], of the same at the quantile Q, and of the quantile q, as mpmath numbers."""
    import mpmath

    from .distribution import TracyWidom

    digits = min(mpmath.mp.dps, 30)
    read = lambda ball: mpmath.mpf(ball.mid().str(digits + 5, radius=False))  # noqa: E731
    if admitted.get("s") is not None:
        pair = determinants(to_float(admitted["s"]), digits)
        return {"det[1-B_s]": read(pair[0]), "det[1+B_s]": read(pair[1])}
    if admitted.get("probability") is not None:
        law = TracyWidom(admitted["beta"])
        pair = determinants(law.quantile(to_float(admitted["probability"])), digits)
        return {"det[1-B_Q]": read(pair[0]), "det[1+B_Q]": read(pair[1])}
    if admitted.get("level") is not None:
        level = to_float(admitted["level"])
        start = TracyWidom(1).isf(level)
        gap = [float(((1 - determinants(at, 20)[0]) / level - 1).mid()) for at in (start - 1e-6, start + 1e-6)]
        return {"q": mpmath.mpf(start - 1e-6 - 2e-6 * gap[0] / (gap[1] - gap[0]))}
    return {}
