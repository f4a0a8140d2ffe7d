"""Exact coordinate descent on the PathCond criterion, a whole class of labels at a time: fallback and cross-check.

Labels that share no parameter (the units of one layer of a chain) can be minimised jointly in closed form but for one
scalar, the new sum S.
"""

from __future__ import annotations

import numpy as np

from .objective import Floats, Objective

__all__ = ["coordinate_step", "descend"]

LEAST_SHARE = 1e-300
"""Stands for a share that underflows. Taken too large, a share makes the step too short, never past the minimum."""


def coordinate_step(incoming: Floats, outgoing: Floats, surplus: Floats, rest: float) -> Floats:
    """The step of the labels of one class, all other labels fixed, that minimises F exactly.

    `incoming`, `outgoing`: shares C, B of sum g' before the step; `surplus` = (number in - number out)/p; `rest` = share of all
    entries that touch no label of the class. With s the new sum relative to the old, each step obeys
    B x - C/x + surplus s = 0 for x = e^step: step = log(C/B)/2 - arsinh(surplus s/(2 sqrt(BC))), and s = rest +
    sum_h sqrt((surplus s)^2 + 4 B C), whose right side is convex in s: Newton from below is monotone, the root unique. A
    label without entries stays. Derived here; one label alone gives the authors' quadratic for a neuron.

    >>> float(np.exp(coordinate_step(np.array([0.8]), np.array([0.2]), np.array([0.0]), 0.0))[0])
    2.0
    """
    live = (incoming > 0) | (outgoing > 0) | (surplus != 0)
    C, B = (np.maximum(each[live], LEAST_SHARE) for each in (incoming, outgoing))
    # One-sided labels exist only where the other side has no parameter at all; their step is that limit.
    middle, q = (np.log(C) - np.log(B)) / 2, np.sqrt(C) * np.sqrt(B)
    a = surplus[live]
    s = rest + 2 * float(q.sum())
    for _ in range(100):
        root = np.hypot(a * s, 2 * q)
        excess = rest + float(root.sum()) - s
        slope = 1 - float((a * a * s / root).sum())
        if excess <= 4e-16 * s or slope <= 0:
            break
        s += excess / slope
    step = np.zeros_like(surplus)
    ratio = a * s / 2
    step[live] = middle - np.sign(ratio) * (np.log(np.abs(ratio) + np.hypot(ratio, q)) - np.log(q))
    return step


def descend(
    objective: Objective, start: Floats | None = None, *, sweeps: int = 100, tolerance: float = 1e-12
) -> Floats:
    """z (H,) after sweeps of exact coordinate descent over the classes of labels, until abs(grad F/p)_1 < `tolerance`.

    Every step lowers F; convergence is linear and slows with depth. Derived here.

    >>> from numerics.path.criterion import Criterion
    >>> z = descend(Criterion.of([1, 0], [0, 1], np.log([4.0, 1.0]), [1, 1], labels=1))
    >>> round(float(np.exp(z[0])), 12)
    2.0
    """
    z = np.zeros(objective.labels) if start is None else start.copy()
    groups = objective.classes()
    point = None
    for _ in range(sweeps):
        for group in groups:
            point = objective.at(z, point)
            incoming, outgoing = point.incoming[group], point.outgoing[group]
            rest = max(0.0, 1.0 - float((incoming + outgoing).sum()))
            z[group] += coordinate_step(incoming, outgoing, -objective.balance[group], rest)
        if np.abs(objective.balance - objective.at(z, point).slope).sum() < tolerance:
            break
    return z
