"""Pr(X <= 0) for Gaussian means at any number of digits: the second route to what `gaussian` computes in doubles.

It shares the contour with the float engine and nothing else. The laws are reduced in mpmath from the exact inputs, K(s)
is the textbook form in ball arithmetic, which tells how many digits its cancellations cost, and everything is done
twice: at two precisions, on two rays, with interleaved nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np

from theory import InputError

from ..inputs import is_full
from ..number import Surd, to_ball, to_mpmath, working_precision
from ..value import Value

__all__ = ["RAYS", "Law", "agreed", "cgf", "from_log", "gaussian_at", "law_at", "saddle", "slope"]

GUARD_DIGITS = 30
MOST_TRIES = 6
LEAST_LOG = -700.0
MOST_FULL = 200
RAYS = (0.4, -0.4, 0.0)
"""Bends of the rays s0 + y(i - bend), tried in turn. A mean that no product carries, c_perp, decays to the left where it is
positive, to the right where it is negative; along the vertical nothing grows, but it oscillates."""


class Law(NamedTuple):
    """X = c + sum_j (u_j xi_j + v_j eta_j + d_j xi_j eta_j) in the words of K(s), as `arb` points.

    `flat` sums u_j^2 + v_j^2 where d_j = 0; `rows` has (d_j^2, u_j^2 + v_j^2, u_j v_j d_j) elsewhere.
    """

    c: Any
    flat: Any
    rows: list[tuple[Any, Any, Any]]

    @property
    def variance(self) -> Any:
        """Var X."""
        return self.flat + sum((d2 + w for d2, w, _ in self.rows), flint.arb(0))

    @property
    def top(self) -> Any:
        """The largest d_j, 0 without any."""
        return max((d2 for d2, _, _ in self.rows), default=flint.arb(0)).sqrt().mid()


def law_at(a: Any, S: Any, b: Any, T: Any, M: Any, K: Any) -> Law:
    """The law of U'V at flint's current precision, from admitted inputs of one dimension; S, T of one draw.

    InputError for full covariances so large that a reduction in multiple precision would take hours.
    """
    if len(S) > MOST_FULL and (is_full(S) or is_full(T)):
        raise InputError(
            f"full covariances are reduced to more than 15 digits up to dimension {MOST_FULL}, which takes minutes; got "
            f"{len(S)}. Ask for 15 digits, or give covariances as diagonals in their common eigenbasis"
        )
    m, k = (flint.arb(0) if count == math.inf else 1 / flint.arb(count) for count in (M, K))
    one, two = ([_point(each) for each in vector] for vector in (a, b))
    c = _near(sum((x * y for x, y in zip(one, two, strict=True)), flint.arb(0)))
    if not is_full(S) and not is_full(T):
        left, right = ([_point(each) for each in covariance] for covariance in (S, T))
        u = [x.sqrt() * y for x, y in zip(left, two, strict=True)]
        v = [x.sqrt() * y for x, y in zip(right, one, strict=True)]
        d = [(x * y).sqrt() for x, y in zip(left, right, strict=True)]
    else:
        u, v, d = _reduced(S, T, one, two)
    u, v, d = [m.sqrt() * x for x in u], [k.sqrt() * x for x in v], [(m * k).sqrt() * x for x in d]
    triples = list(zip(u, v, d, strict=True))
    flat: Any = sum((x * x + y * y for x, y, z in triples if z == 0), flint.arb(0))
    rows = [((z * z).mid(), (x * x + y * y).mid(), (x * y * z).mid()) for x, y, z in triples if z != 0]
    return Law(c, flat.mid(), rows)


def _point(number: Any) -> Any:
    return _near(to_ball(number if isinstance(number, (Fraction, Surd)) else float(number)))


def _near(ball: Any) -> Any:
    """The midpoint; 0 where the ball contains it, as that of sqrt(2)^2 - 2 does."""
    return flint.arb(0) if ball.contains(0) else ball.mid()


def _reduced(S: Any, T: Any, a: list[Any], b: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """u, v, d before the division by M and K, for covariances of which one at least is full."""
    import mpmath

    with mpmath.workprec(flint.ctx.prec):
        first, second = (mpmath.matrix([mpmath.mpf(_pair(x)) for x in vector]) for vector in (a, b))
        A = _root(S)
        if _same(S, T):
            u, v, d = A.T * second, A.T * first, [mpmath.norm(A[:, j]) ** 2 for j in range(A.cols)]
        else:
            B = _root(T)
            left, d, right = mpmath.svd_r(A.T * B)
            u, v = left.T * (A.T * second), right * (B.T * first)
        return tuple([flint.arb(x) for x in each] for each in (u, v, d))  # type: ignore[return-value]


def _pair(number: Any) -> Any:
    mantissa, exponent = number.man_exp()
    return (int(mantissa), int(exponent))


def _same(S: Any, T: Any) -> bool:
    same = S == T
    return bool(same.all()) if hasattr(same, "all") else same


def _root(covariance: Any) -> Any:
    """A square A with A A' = covariance and orthogonal columns; a negative eigenvalue is rounding of 0."""
    import mpmath

    def number(entry: Any) -> Any:
        return to_mpmath(entry if isinstance(entry, (Fraction, Surd)) else float(entry))

    size = len(covariance)
    if is_full(covariance):
        spectrum, basis = mpmath.eigsy(mpmath.matrix([[number(x) for x in row] for row in covariance]))
    else:
        spectrum, basis = [number(x) for x in covariance], mpmath.eye(size)
    return basis * mpmath.diag([mpmath.sqrt(max(x, 0)) for x in spectrum])


def cgf(law: Law, s: Any) -> Any:
    """K(s) = s c + sum_j [-log(q_j)/2 + s^2 (u_j^2 + v_j^2 + 2 s d_j u_j v_j)/(2 q_j)], q_j = 1 - s^2 d_j^2."""
    square, total = s * s, 0
    half = square / 2
    for d2, w, duv in law.rows:
        q = 1 - square * d2
        total += half * (w + 2 * s * duv) / q - q.log() / 2
    return s * law.c + half * law.flat + total


def slope(law: Law, s: Any) -> Any:
    """K'(s)."""
    square, total = s * s, 0
    for d2, w, duv in law.rows:
        q = 1 - square * d2
        total += (s * (d2 + w) + 3 * square * duv) / q + square * s * d2 * (w + 2 * s * duv) / (q * q)
    return law.c + s * law.flat + total


def saddle(law: Law, pole: int) -> Any:
    """The s < 0 with K'(s) = pole/s to a third of the precision: K is stationary there, and a ray may start anywhere."""
    if not law.rows:  # c + flat s = pole/s
        return ((-law.c - (law.c * law.c + 4 * pole * law.flat).sqrt()) / (2 * law.flat)).mid()
    low, high, s = flint.arb(-4000), flint.arb(4000), flint.arb(0)  # log-odds of s between 0 and -1/max(d)
    for _ in range(flint.ctx.prec // 3 + 13):
        middle = ((low + high) / 2).mid()
        s = (-1 / (law.top * (1 + (-middle).exp()))).mid()
        # At the pole the ball contains everything: what is not certainly positive counts as beyond the root.
        low, high = (middle, high) if slope(law, s) - pole / s > 0 else (low, middle)
    return s


def agreed(compute: Callable[[int, int], Any], digits: int) -> Value:
    """`compute(run, tries)` for run 0 and, 20 digits more precisely, run 1: an estimate with their difference as radius.

    Repeated with more digits, and `tries` counted up, until the runs agree to `digits`; ArithmeticError after six times.
    """
    dps = 2 * digits + GUARD_DIGITS
    for tries in range(MOST_TRIES):
        with working_precision(_bits(dps)):
            first = compute(0, tries)
        with working_precision(_bits(dps + 20)):
            second = compute(1, tries)
            gap = abs(first - second).abs_upper()  # the radii of both balls are part of it
            if gap <= second.abs_lower() * flint.arb(10) ** (-digits - 1):
                return _rounded(second, gap, digits)
        dps += dps // 2
    raise ArithmeticError(
        f"two runs do not agree to {digits} digits, not even at {dps} digits: the law is too ill-conditioned"
    )


def _rounded(ball: Any, gap: Any, digits: int) -> Value:
    if gap == 0 and ball.is_integer():
        return Value.exact(int(ball.unique_fmpz()), digits)
    middle = ball.mid().str(digits, radius=False)
    radius = (gap + abs(ball - flint.arb(middle))).abs_upper()
    # Three digits, rounded to nearest: a hundredth more than covers that.
    return Value(Decimal(middle), Decimal((radius * 1.01).str(3, radius=False)), "estimate", digits)


def from_log(log_p: Any, error: float, digits: int) -> Value:
    """exp(log_p) as an estimate of relative error `error`, for exponents beyond those of a double too.

    `log_p` is a double or a NumPy long double.
    """
    if log_p > LEAST_LOG:
        p = float(np.exp(log_p))
        return Value.estimate(p, p * error, digits)
    with working_precision(128):
        p = flint.arb(float(log_p)).exp()
        return Value(
            Decimal(p.mid().str(17, radius=False)),
            Decimal((p * error * 1.01).mid().str(3, radius=False)),
            "estimate",
            digits,
        )


def _bits(dps: int) -> int:
    return math.ceil(dps * math.log2(10))


def gaussian_at(a: Any, S: Any, b: Any, T: Any, M: Any, K: Any, digits: int) -> Value:
    """Pr(X <= 0) to `digits` digits, from admitted inputs of one dimension.

    An estimate: the radius is the difference of two runs, at two precisions, on two rays, with interleaved nodes.
    ArithmeticError where they do not come together. Time grows with digits^2 d, and with d^3 for full covariances.

    >>> gaussian_at((Fraction(3, 5),), (Fraction(1),), (Fraction(3, 5),), (Fraction(1),), 3, 5, 18)  # R10 of the notes
    Value(0.212365183935927077 +/- 2.32e-19, estimate)
    """
    return agreed(lambda run, tries: _tail(law_at(a, S, b, T, M, K), digits, run, tries), digits)


def _tail(law: Law, digits: int, run: int, tries: int) -> Any:
    if law.variance == 0:
        return flint.arb(1 if law.c <= 0 else 0)
    if law.c < 0:
        flipped = Law(-law.c, law.flat, [(d2, w, -duv) for d2, w, duv in law.rows])
        return 1 - _tail(flipped, digits, run, tries)
    if not law.rows:
        return (law.c / (2 * law.flat).sqrt()).mid().erfc() / 2  # of a ball far out it would enclose 0
    s = saddle(law, 1)
    near = s * (1 + flint.arb(2) ** (-flint.ctx.prec // 3))
    scale = (1 / (abs((slope(law, near) - slope(law, s)) / (near - s)) + 1 / (s * s)).sqrt()).mid()
    start = cgf(law, s) - (-s).log()
    step = flint.arb(2) ** -(tries + math.ceil(math.log2(4 * digits + 16)))
    for bend in RAYS[tries // 3 :]:
        total = _integral(law, s, start, scale, bend * (1 - 0.25 * run), step, (digits + 8) * math.log(10), 0.5 * run)
        if total is not None:
            return start.exp() * total / flint.arb.pi()
    raise ArithmeticError("the integrand of the inversion grows along every ray: no digit of it can be trusted")


def _integral(law: Law, s: Any, start: Any, scale: Any, bend: float, step: Any, log_range: float, offset: float) -> Any:
    """The trapezoid sum along s + y(i - bend), y = scale exp(pi/2 sinh t), as `gaussian` has it; None where it grows."""
    quarter, direction = flint.arb.pi() / 2, flint.acb(-bend, 1)
    count = math.ceil(math.asinh(2 * log_range / math.pi) / float(step))
    total = flint.arb(0)
    for i in range(-count, count + 1):
        t = step * (i + offset)
        y = scale * (quarter * t.sinh()).exp()
        at = s + y * direction
        exponent = cgf(law, at) - (-at).log() - start
        height = float(exponent.real.mid())
        if i > 0 and height + float((y / scale).log().mid()) < -log_range:
            break
        if height > 3:
            return None
        total += (exponent.exp() * direction).imag * y * t.cosh()
    return total * quarter * step
