"""The evaluators of the `mlp.*` ids."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from theory import InputError

from ..evaluate import evaluates
from ..value import Value
from .problem import problem
from .solution import Solution, solve

__all__ = ["escape_time", "kernels", "loss", "lower_outliers", "outliers", "overlaps"]

DIGITS = 15


def _solution(id: str, steps: int, inputs: dict[str, Any]) -> Solution:
    if inputs["samples"] & (inputs["samples"] - 1):
        raise InputError(f"{id}: samples must be a power of 2; got {inputs['samples']}")
    solution = solve(problem(id, steps, inputs), inputs["samples"], inputs["seed"])
    if solution.unstable_from is not None:
        warnings.warn(
            f"{id}: unstable from update {solution.unstable_from}: scrambles differ by more than 1 % of the loss there. Either "
            f"eta0={solution.problem.eta0:g} is beyond stability, where networks part as well and should not be compared, or "
            f"samples={inputs['samples']} are too few: ask for more to tell",
            stacklevel=4,
        )
    return solution


def _value(mean: Any, error: Any, digits: int) -> Value:
    """A number, or lists of lists of them, as estimates; an empty list is one too."""
    if np.ndim(mean) == 0:
        return Value.estimate(float(mean), float(error), digits)
    parts = [_value(m, e, digits) for m, e in zip(mean, error, strict=True)]
    return Value.gather(parts) if parts else Value((), (), "estimate", digits)


def _naive(inputs: dict[str, Any]) -> bool:
    return inputs["independent"] == "true"


@evaluates("mlp.loss", most_digits=DIGITS)
def loss(t: int, *, digits: int = DIGITS, **inputs: Any) -> Value:
    """(1/P) sum |y - f|^2/2 after t updates of a network of infinite width; estimate, see `Solution` for its error.

    `independent` does not enter: it is a statement about spectra. Source: seed "Spectral dynamics", notes section 2.

    >>> from numerics import predict
    >>> data = {"gram": 1, "targets": 1, "gamma0": 4, "eta0": 0.02}
    >>> round(float(predict("mlp.loss", {"t": 5, "activation": "linear", **data})), 5)
    0.22316
    """
    mean, error = _solution("mlp.loss", t, inputs).losses
    return _value(mean[t], error[t], digits)


@evaluates("mlp.kernels", most_digits=DIGITS)
def kernels(t: int, *, digits: int = DIGITS, **inputs: Any) -> Value:
    """Object Phi, G, A, B of the hidden matrix `layer`, n x n lists over its first n = t P spikes, k = s P + mu.

    Phi = phi.phi'/N_in, G = g.g'/N_in, A = sigma^2 <d phi/d r>, B = nu sigma^2 <d g/d u>. Where a kernel is singular (training
    has stopped), single entries of A and B are undetermined along its null space: compare A G and B Phi instead.
    `independent` does not enter.

    >>> from numerics import predict
    >>> data = {"gram": 1, "targets": 1, "gamma0": 4, "eta0": 0.02}
    >>> found = predict("mlp.kernels", {"t": 2, "activation": "linear", **data}).value.midpoint
    >>> [round(float(found[name][1][0]), 12) for name in ("Phi", "G", "A", "B")]
    [1.0, 1.0, 0.08, 0.08]
    """
    found = _solution("mlp.kernels", t, inputs).kernels(t, inputs["layer"])
    return Value.gather({name: _value(*pair, digits) for name, pair in found.items()})


def _list_of(id: str, ask: Callable[..., Any], t: int, inputs: dict[str, Any], digits: int) -> Value:
    mean, error = ask(_solution(id, t, inputs), t, inputs["layer"], _naive(inputs))
    return _value(mean, error, digits)


@evaluates("mlp.outliers", most_digits=DIGITS)
def outliers(t: int, *, digits: int = DIGITS, **inputs: Any) -> Value:
    """Singular values of W(t)/sqrt(N_in) above the bulk edge sigma (1 + sqrt(nu)), largest first; empty if none.

    With `independent=true` the spikes are taken for independent of the initial matrix, the naive answer.

    >>> from numerics import predict
    >>> data = {"gram": 1, "targets": 1, "gamma0": 4, "eta0": 0.02}
    >>> [round(float(z), 5) for z in predict("mlp.outliers", {"t": 12, "activation": "linear", **data}).value.midpoint]
    [2.02379]
    """
    return _list_of("mlp.outliers", Solution.outliers, t, inputs, digits)


@evaluates("mlp.lower_outliers", most_digits=DIGITS)
def lower_outliers(t: int, *, digits: int = DIGITS, **inputs: Any) -> Value:
    """Singular values of W(t)/sqrt(N_in) below the bulk edge sigma |1 - sqrt(nu)|, smallest first; empty for nu = 1.

    >>> from numerics import predict
    >>> data = {"gram": 1, "targets": 1, "gamma0": 4, "eta0": 0.02}
    >>> predict("mlp.lower_outliers", {"t": 5, "activation": "linear", **data}).to_dict()["value"]
    []
    """
    return _list_of("mlp.lower_outliers", Solution.lower_outliers, t, inputs, digits)


@evaluates("mlp.escape_time", most_digits=DIGITS)
def escape_time(t_max: int, *, digits: int = DIGITS, **inputs: Any) -> Value:
    """First time at which the top eigenvalue Lambda, linear between updates, reaches sigma^2 sqrt(nu); inf if not by t_max.

    >>> from numerics import predict
    >>> data = {"gram": 1, "targets": 1, "gamma0": 4, "eta0": 0.02}
    >>> round(float(predict("mlp.escape_time", {"t_max": 12, "activation": "linear", **data})), 6)
    8.817356
    """
    solution = _solution("mlp.escape_time", t_max, inputs)
    return _value(*solution.escape_time(inputs["layer"], _naive(inputs)), digits)


@evaluates("mlp.overlaps", most_digits=DIGITS)
def overlaps(t: int, *, digits: int = DIGITS, **inputs: Any) -> Value:
    """Object left, right over k = s P + mu: |cos| of the top outlier's vectors with g_k and phi_k; 0 without an outlier.

    >>> from numerics import predict
    >>> data = {"gram": 1, "targets": 1, "gamma0": 4, "eta0": 0.02}
    >>> found = predict("mlp.overlaps", {"t": 20, "activation": "linear", **data}).value.midpoint
    >>> round(float(found["left"][0]), 5)
    0.45663
    """
    solution = _solution("mlp.overlaps", t, inputs)
    left, right = solution.overlaps(t, inputs["layer"], _naive(inputs))
    return Value.gather({"left": _value(*left, digits), "right": _value(*right, digits)})
