"""What PathCond is compared with: equinormalisation (ENorm) and the diagonal preconditioner of Path-SGD."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from theory import InputError

from .criterion import Criterion
from .objective import Floats
from .solver import solve

__all__ = ["enorm", "path_sgd_scaling"]


def enorm(out: object, into: object, log_powers: object, *, labels: int, order: float = 2.0) -> Floats:
    """The log-factors z (H,) at which ENorm's cycles end: the minimiser of sum_i abs(theta_i)^order e^(-order (Bz)_i / 2).

    `out`, `into` are the labels of the entries, `log_powers` the log of the sum of abs(theta)^order in each (-inf where all
    are zero), all of shape (entries,). The factors mean what they mean for PathCond: incoming parameters times e^(z/2),
    outgoing ones times e^(-z/2). At the minimum the incoming and outgoing norms of every unit agree. A unit that lacks
    a non-zero parameter on one side has no finite minimiser and is left at z = 0. Derived here: it is the criterion of
    PathCond with the labels exchanged and no parameter counted. Weights 2 and 1 in a row meet at sqrt(2):

    >>> z = enorm([1, 0], [0, 1], np.log([4.0, 1.0]), labels=1)
    >>> [round(float(each), 9) for each in (2 * np.exp(z[0] / 2), np.exp(-z[0] / 2))]
    [1.414213562, 1.414213562]
    """
    if not order > 0:
        raise InputError(f"order must be positive; got {order}")
    o, i = np.asarray(out, dtype=np.intp), np.asarray(into, dtype=np.intp)
    mass = np.asarray(log_powers, dtype=np.float64)
    pinned = np.zeros(labels + 1, dtype=bool)
    while True:  # a unit that is let go can leave its neighbour with one side only
        joins = (mass > -np.inf) & (o != i)
        entering, leaving = (np.bincount(side[joins], minlength=labels + 1) > 0 for side in (o, i))
        lame = (entering != leaving) & ~pinned
        lame[0] = False
        if not lame.any():
            break
        pinned |= lame
        o, i = np.where(pinned[o], 0, o), np.where(pinned[i], 0, i)
    exchanged = Criterion.of(i, o, mass, np.ones(len(o)), labels=labels)
    return 2 / order * solve(replace(exchanged, balance=np.zeros(labels))).z


def path_sgd_scaling(log_g: Floats) -> Floats:
    """The factor of each parameter's gradient in Path-SGD: 1/g_i over its geometric mean, from log g (any shape).

    Path-SGD divides by g_i at every step, up to a constant that goes into the learning rate; the geometric mean 1 fixes it
    here. A dead parameter (log g = -inf) has no path and gets the factor 0. Gradient descent after PathCond is the same with
    e^(Bz) for 1/g: the best fit of that form.

    >>> path_sgd_scaling(np.log([4.0, 1.0])).tolist()
    [0.5, 2.0]
    """
    live = np.isfinite(log_g)
    if not live.any():
        raise InputError("no parameter has g > 0")
    factors = np.zeros_like(log_g)
    factors[live] = np.exp(log_g[live].mean() - log_g[live])
    return factors
