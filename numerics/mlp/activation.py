"""Pointwise activations with their slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from theory import InputError

__all__ = ["ACTIVATIONS", "Activation", "activation"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Activation:
    """phi and phi', both acting on arrays. `linear` is True for phi(h) = h alone, which is solved without sampling.

    Second derivatives are never asked for: responses come from Stein's identity, so a kink (relu) does no harm.

    >>> activation("relu").slope(np.array([-1.0, 2.0]))
    array([0., 1.])
    """

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    linear: bool = False


def _normal_density(h: Array) -> Array:
    return np.exp(-(h**2) / 2) / sqrt(2 * pi)


def _erf(h: Array) -> Array:
    from scipy.special import erf

    return erf(h / sqrt(2))


def _normal_distribution(h: Array) -> Array:
    from scipy.special import ndtr

    return ndtr(h)


ACTIVATIONS: dict[str, Activation] = {
    each.name: each
    for each in (
        Activation("linear", lambda h: h, np.ones_like, linear=True),
        Activation("tanh", np.tanh, lambda h: 1 - np.tanh(h) ** 2),
        Activation("erf", _erf, lambda h: 2 * _normal_density(h)),
        Activation("relu", lambda h: np.maximum(h, 0), lambda h: (h > 0).astype(np.float64)),
        Activation(
            "gelu", lambda h: h * _normal_distribution(h), lambda h: _normal_distribution(h) + h * _normal_density(h)
        ),
    )
}
"""By name; erf is erf(h/sqrt 2), gelu the exact one, h times the normal distribution function."""


def activation(name: str | Activation) -> Activation:
    """The activation of that name; one that is already an `Activation` is returned as it is."""
    if isinstance(name, Activation):
        return name
    if name not in ACTIVATIONS:
        raise InputError(
            f"there is no activation {name!r}; choose from {', '.join(ACTIVATIONS)}, or give an Activation"
        )
    return ACTIVATIONS[name]
