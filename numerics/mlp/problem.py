"""What is trained and how: data, loss, rates and shape of a wide multilayer perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory import InputError

from ..inputs import as_floats, is_full
from ..number import to_float
from .activation import Activation, activation

__all__ = ["Problem", "problem"]

Array = NDArray[np.float64]
SINGULAR = 1e-10
LATER = {
    "momentum": 0,
    "nesterov": "false",
    "weight_decay": 0,
    "residual": None,
    "bias_rate": None,
    "bias_std": 0,
    "labels": None,
    "classes": None,
}
"""Parameters of extensions that this solver does not cover, with the one value that it accepts."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A training run of `steps` updates. Conventions as in `theory.mlp.network`; loss (1/P) sum |y - f|^2/2.

    `gram` is x x^T/D, (P, P); `targets` is (P, C). The learning rate is eta0 gamma0^2 N_L for every weight; hidden
    matrices have `nu` times as many rows as columns and entries of variance sigma^2; there are depth - 1 of them.
    `batch` samples are used in each step, in turn (step s takes s batch, ..., s batch + batch - 1, modulo P), and the
    gradient is divided by `batch`; None uses all. Raises InputError for shapes that disagree, a Gram matrix that is no
    covariance, or numbers out of range.

    >>> Problem("tanh", gram=1.0, targets=[1.0], gamma0=3, eta0=0.3, steps=6).gram.shape
    (1, 1)
    """

    activation: Activation | str
    gram: Array | Any
    targets: Array | Any
    gamma0: float
    eta0: float
    steps: int
    depth: int = 2
    nu: float = 1.0
    sigma: float = 1.0
    batch: int | None = None

    def __post_init__(self) -> None:
        gram = np.atleast_2d(np.array(self.gram, dtype=np.float64))
        targets = np.array(self.targets, dtype=np.float64)
        targets = targets.reshape(-1, 1) if targets.ndim < 2 else targets
        set_ = object.__setattr__
        set_(self, "activation", activation(self.activation))
        set_(self, "gram", gram)
        set_(self, "targets", targets)
        if gram.shape[0] != gram.shape[1] or len(targets) != len(gram):
            raise InputError(
                f"gram must be P x P and targets have P rows; got gram {gram.shape[0]} x {gram.shape[1]} "
                f"and {len(targets)} row{'' if len(targets) == 1 else 's'} of targets"
            )
        if not (np.isfinite(gram).all() and np.isfinite(targets).all()):
            raise InputError("gram and targets must be finite")
        if not np.allclose(gram, gram.T, rtol=0, atol=1e-12 * np.abs(gram).max()):
            raise InputError("gram must be symmetric")
        lowest, highest = np.linalg.eigvalsh(gram)[[0, -1]]
        if lowest < -SINGULAR * highest or highest <= 0:
            raise InputError(f"gram must be positive semidefinite; its smallest eigenvalue is {lowest:.3g}")
        for name in ("gamma0", "eta0", "nu", "sigma"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} must be positive and finite; got {getattr(self, name)}")
        if self.depth < 2 or self.steps < 0:
            raise InputError(f"depth must be at least 2 and steps at least 0; got {self.depth} and {self.steps}")
        if self.batch is not None and not 1 <= self.batch <= self.P:
            raise InputError(f"batch must be between 1 and the {self.P} samples; got {self.batch}")

    def _key(self) -> tuple[object, ...]:
        arrays = (self.gram.shape, self.gram.tobytes(), self.targets.shape, self.targets.tobytes())
        rest = (self.gamma0, self.eta0, self.steps, self.depth, self.nu, self.sigma, self.batch)
        return (self.activation, *arrays, *rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def phi(self) -> Activation:
        """The activation with its slope."""
        return activation(self.activation)

    @property
    def P(self) -> int:
        """Number of samples."""
        return len(self.gram)

    @property
    def outputs(self) -> int:
        """Number of outputs C."""
        return self.targets.shape[1]

    def weights(self, step: int) -> Array:
        """The weight of each sample in the gradient of one step: 1/batch on the batch, 0 off it; they sum to 1."""
        if self.batch is None:
            return np.full(self.P, 1 / self.P)
        chosen = np.zeros(self.P)
        chosen[(step * self.batch + np.arange(self.batch)) % self.P] = 1 / self.batch
        return chosen

    def loss(self, outputs: ArrayLike) -> float:
        """(1/P) sum over samples of |y - f|^2/2, over all samples whatever the batch."""
        return float(((self.targets - np.asarray(outputs)) ** 2).sum() / (2 * self.P))


def problem(id: str, steps: int, inputs: dict[str, Any]) -> Problem:
    """The problem that admitted inputs of an `mlp.*` id describe. Raises InputError for what is not covered yet."""
    for name, neutral in LATER.items():
        if inputs.get(name) not in (None, neutral):
            only = "leave it out" if neutral is None else f"only {name}={neutral} is"
            raise InputError(f"{id}: {name} is not covered by this version (issue 7 extends the solver to it); {only}")
    if inputs["loss"] != "squared":
        raise InputError(f"{id}: loss={inputs['loss']} is not covered by this version (issue 7); only loss=squared is")
    if inputs.get("targets") is None:
        raise InputError(f"{id} needs targets: one a sample, or one row a sample")
    gram = inputs["gram"]
    if not is_full(gram) and len(gram) > 1:
        raise InputError(f"{id}: gram must be given in full, {len(gram)} rows of {len(gram)}; got one row")
    targets = as_floats(inputs["targets"])
    gram = np.atleast_2d(as_floats(gram))
    if targets.shape[0] == 1 and len(gram) > 1:
        targets = targets.T
    if not 1 <= inputs["layer"] < inputs["depth"]:
        raise InputError(
            f"{id}: depth={inputs['depth']} has hidden matrices 1 to {inputs['depth'] - 1}; got layer={inputs['layer']}"
        )
    scalars = {name: to_float(inputs[name]) for name in ("gamma0", "eta0", "nu", "sigma")}
    return Problem(
        inputs["activation"], gram, targets, steps=steps, depth=inputs["depth"], batch=inputs["batch"], **scalars
    )
