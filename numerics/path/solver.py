"""Damped Newton with conjugate gradients for the PathCond criterion, and a certificate of what is left to gain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from theory import InputError

from .descent import descend
from .objective import Floats, Objective, Point, gap_of

__all__ = ["Solution", "certificate", "solve"]

STOP = 1e-12
LONGEST_STEP = 8.0
MOST_STEPS = 500
ROUNDING = 4e-16
"""f is a logarithm minus a scalar product, known to a few units in the last place: Armijo's test must let those pass."""
RESIDUAL = 1e-14


@dataclass(frozen=True)
class Solution:
    """A minimiser z (H,), and how well it is known.

    `value` is F/p at z; `certificate` bounds its excess over the minimum (inf: no bound is known); `clipped` marks the
    labels that the box holds; `steps` Newton steps took `products` products with the Hessian. `gap_before` and `gap`
    are None where the objective knows no geometric mean.
    """

    z: Floats
    value: float
    certificate: float
    clipped: np.ndarray
    steps: int
    products: int
    gap_before: float | None
    gap: float | None


def solve(
    objective: Objective, *, start: Floats | None = None, max_abs_z: float = math.inf, most_steps: int = MOST_STEPS
) -> Solution:
    """The minimiser of F over abs(z) <= max_abs_z, by damped Newton steps from `start`, if F is lower there, or 0.

    A step solves (T + diag(abs(r))/4 - v v') d = r for the negative gradient r by preconditioned conjugate gradients. The
    added term keeps steps bounded where the Hessian nearly vanishes (without it z of deep nets leaves for -1e9) and
    goes away with r. Labels at the box whose gradient points outward stand still. The iteration ends at a squared
    decrement below 1e-12; where it does not get there, sweeps of exact coordinate descent give it a second start.

    Returns a `Solution`, whose certificate says what was reached: F and gap are of second order in what z is off.
    Raises InputError for a box that is not positive. Derived here.

    >>> from numerics.path.criterion import Criterion
    >>> found = solve(Criterion.of([1, 0], [0, 1], np.log([4.0, 1.0]), [1, 1], labels=1, mean_log=np.log(2.0)))
    >>> [round(float(each), 9) for each in (found.z[0], found.gap_before, found.gap)]
    [0.693147181, 0.223143551, 0.0]
    """
    if not max_abs_z > 0:
        raise InputError(f"max_abs_z must be positive; got {max_abs_z}")
    origin = objective.at(np.zeros(objective.labels))
    z, point = np.zeros(objective.labels), origin
    if start is not None:
        ahead = np.clip(start, -max_abs_z, max_abs_z)
        there = objective.at(ahead, origin)
        z, point = (ahead, there) if there.value < origin.value else (z, origin)
    z, point, steps, products, done = _newton(objective, z, point, max_abs_z, most_steps)
    if not done:
        z = np.clip(descend(objective, z), -max_abs_z, max_abs_z)
        z, point, more, further, _ = _newton(objective, z, objective.at(z), max_abs_z, most_steps)
        steps, products = steps + more, products + further
    bound = certificate(objective, z, max_abs_z=max_abs_z, point=point)
    known = objective.mean_log is not None
    return Solution(
        z,
        point.value,
        bound,
        np.abs(z) >= max_abs_z,
        steps,
        products,
        gap_of(objective, origin.value) if known else None,
        gap_of(objective, point.value) if known else None,
    )


def _newton(
    objective: Objective, z: Floats, point: Point, box: float, most: int
) -> tuple[Floats, Point, int, int, bool]:
    """(z, its point, steps, products with the Hessian, whether the decrement fell below the stop)."""
    products = 0
    for step in range(most):
        r = objective.balance - point.slope
        tolerance = min(0.1, 0.3 * math.sqrt(np.abs(r).sum()))
        free = ~_held(z, r, box)
        while True:  # a free label at the box may still be sent outward by the others: it is held as well
            d, count = _conjugate_gradients(point, np.where(free, r, 0.0), np.abs(r) / 4, free, tolerance)
            products += count
            outward = free & _held(z, d, box)
            if not outward.any():
                break
            free &= ~outward
        decrement = float(r[free] @ d[free])
        if not (math.isfinite(decrement) and decrement >= 0):
            return z, point, step, products, False
        if decrement < STOP:
            # Quadratic convergence: one more full step costs little and makes z as exact as f is.
            last = np.clip(z + d, -box, box)
            polished = objective.at(last, point)
            better = polished.value <= point.value + ROUNDING * abs(point.value)
            return (last, polished, step, products, True) if better else (z, point, step, products, True)
        length = min(1.0, LONGEST_STEP / float(np.abs(d).max()))
        while True:
            trial = np.clip(z + length * d, -box, box)
            new = objective.at(trial, point)
            if new.value <= point.value - 0.1 * float(r @ (trial - z)) + ROUNDING * abs(point.value):
                break
            length /= 2
            if length < 1e-12:
                return z, point, step, products, False
        z, point = trial, new
    return z, point, most, products, False


def _held(z: Floats, r: Floats, box: float) -> np.ndarray:
    """Labels at the box that would leave it."""
    return (np.abs(z) >= box) & (np.sign(r) == np.sign(z))


def _conjugate_gradients(
    point: Point, r: Floats, damping: Floats, free: np.ndarray, relative: float, absolute: float = 0.0
) -> tuple[Floats, int]:
    """d with (T + damping - v v') d = r on the free labels, and the number of products used."""
    slope = point.slope
    diagonal = point.incoming + point.outgoing + damping
    # A label without live entries has no diagonal and no gradient: it stays where it is.
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=(diagonal > 0) & free)
    d, residual = np.zeros_like(r), r.copy()
    target = max(relative * math.sqrt(float(r @ r)), absolute)
    search = inverse * residual
    rho = float(residual @ search)
    most = 10 * len(r) + 10
    for count in range(most):
        if not rho > 0 or math.sqrt(float(residual @ residual)) <= target:
            return d, count
        product = point.times(search) + damping * search - slope * float(slope @ search)
        product[~free] = 0.0
        curvature = float(search @ product)
        if not curvature > 0:
            return d, count
        d += rho / curvature * search
        residual -= rho / curvature * product
        scaled = inverse * residual
        rho, before = float(residual @ scaled), rho
        search = scaled + rho / before * search
    return d, most


def certificate(objective: Objective, z: Floats, *, max_abs_z: float = math.inf, point: Point | None = None) -> float:
    """An upper bound on F(z)/p minus its minimum over the box; inf where none can be given.

    Weak duality: where H d = r, the shares pi~ = pi (1 + eps), eps_i = b_i.d - v.d, have the balance as their mean row,
    and are shares if all abs(eps) <= 1. The excess is then at most KL(pi~ || pi) = sum pi phi(eps), phi(e) =
    (1+e) log(1+e) - e. As phi(e)/e^2 = int_0^1 (1-t)/(1+te) dt falls with e, that is at most phi(-delta)/delta^2 times
    sum pi eps^2 = d'Hd, with delta = max abs(eps). What conjugate gradients leave of r - H d tilts the dual bound: it is
    charged to the far side of the box, or, without a box, to a distance of 1 from z. Derived here.

    >>> from numerics.path.criterion import Criterion
    >>> pair = Criterion.of([1, 0], [0, 1], np.log([4.0, 1.0]), [1, 1], labels=1)
    >>> excess = pair.at(np.array([0.5])).value - pair.at(np.array([math.log(2)])).value
    >>> bool(excess <= certificate(pair, np.array([0.5])) <= 1.15 * excess)
    True
    """
    point = objective.at(z) if point is None else point
    r = objective.balance - point.slope
    free = ~_held(z, r, max_abs_z)
    absolute = RESIDUAL / math.sqrt(max(1, len(z)))
    d, _ = _conjugate_gradients(point, np.where(free, r, 0.0), np.zeros_like(r), free, 0.0, absolute)
    shift = float(point.slope @ d)
    image = point.times(d) - point.slope * shift
    least, largest = point.range(d)
    delta = max(abs(least - shift), abs(largest - shift))
    if not delta <= 1:  # written so that NaN gives no bound
        return math.inf
    left = r - image
    room = np.where(left > 0, max_abs_z - z, max_abs_z + z) if math.isfinite(max_abs_z) else np.ones_like(left)
    return _phi_over_square(delta) * float(d @ image) + float(np.abs(left) @ np.maximum(room, 0.0))


def _phi_over_square(delta: float) -> float:
    """((1-delta) log(1-delta) + delta)/delta^2, from 1/2 to 1; its series where the formula cancels."""
    if delta < 1e-2:
        return sum(delta ** (k - 2) / (k * (k - 1)) for k in range(2, 11))
    return 1.0 if delta == 1 else ((1 - delta) * math.log1p(-delta) + delta) / delta**2
