"""Every matrix of a model or checkpoint: judged, or refused by name with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from theory import InputError

from .spectrum import WeightSpectrum, weight_spectrum

__all__ = ["Layer", "weight_spectra"]


@dataclass(frozen=True)
class Layer:
    """One weight: its spectrum, or why there is none."""

    name: str
    shape: tuple[int, ...]
    spectrum: WeightSpectrum | None
    refusal: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        found = None if self.spectrum is None else self.spectrum.to_dict()
        return {"name": self.name, "shape": list(self.shape), "spectrum": found, "refusal": self.refusal}


def weight_spectra(source: Any, *, initial: Any = None, **options: Any) -> tuple[Layer, ...]:
    """The spectrum of every weight of two dimensions or more, in the model's order.

    `source` and `initial`: a module, or a mapping of names to tensors or arrays (a state dict). Weights tied to an earlier
    one are named and judged once; what `weight_spectrum` refuses is listed with the reason; biases and norms are left
    out. `options` go to `weight_spectrum`. Each weight is tested at `level`: in a model of 50 noise matrices an outlier turns
    up with probability 50 times that.

    >>> import numpy as np
    >>> W = np.random.default_rng(0).normal(size=(64, 48))
    >>> [(layer.name, layer.refusal) for layer in weight_spectra({"a": W, "b": W, "c": W[:8], "bias": W[0]})]
    [('a', ''), ('b', 'tied to a'),
     ('c', 'c is too small to judge: 8 x 48 that are not zero, and at least 16 of each are needed')]
    """
    before = dict(_named(initial)) if initial is not None else {}
    seen: dict[Any, str] = {}
    layers = []
    for name, weight in _named(source):
        shape = tuple(weight.shape)
        if len(shape) < 2:
            continue
        first = seen.setdefault(_identity(weight), name)
        if first != name:
            layers.append(Layer(name, shape, None, f"tied to {first}"))
            continue
        try:
            layers.append(Layer(name, shape, weight_spectrum(weight, initial=before.get(name), name=name, **options)))
        except InputError as refusal:
            layers.append(Layer(name, shape, None, str(refusal)))
    if not layers:
        raise InputError("there is no weight of two dimensions or more in what was given")
    return tuple(layers)


def _named(source: Any) -> Iterable[tuple[str, Any]]:
    if hasattr(source, "named_parameters"):
        return source.named_parameters(remove_duplicate=False)
    if isinstance(source, Mapping):
        return [(str(name), weight) for name, weight in source.items() if hasattr(weight, "shape")]
    raise InputError(f"a module or a mapping of names to weights is needed; got {type(source).__name__}")


def _identity(weight: Any) -> Any:
    """Equal for two views of the same numbers: a state dict holds tied weights as two tensors on one storage."""
    if hasattr(weight, "data_ptr"):
        return weight.data_ptr(), tuple(weight.shape), tuple(weight.stride())
    return weight.__array_interface__["data"][0], weight.shape, weight.strides
