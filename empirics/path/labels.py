"""Which channels share a rescaling: label numbers on activations, and the ties that a network's wiring puts on them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["GROUND", "Labels"]

GROUND = 0


class Labels:
    """Numbers given out to channels, and pairs that must have one rescaling; 0 is the ground, which is not rescaled.

    An activation carries a tensor of labels of its own shape, so that whatever reshapes the activation reshapes its
    labels by the same call. `resolve` turns ties into classes.

    >>> labels = Labels()
    >>> a, b = labels.fresh(3), labels.fresh(3)
    >>> labels.tie(a[:2], b[1:])
    >>> labels.tie(b[0], torch.tensor(GROUND))
    >>> labels.resolve([a, b])
    (3, [array([1, 2, 3], dtype=int32), array([0, 1, 2], dtype=int32)])
    """

    def __init__(self) -> None:
        self.count = 1
        self.ties: list[np.ndarray] = []

    def fresh(self, number: int) -> Tensor:
        """New labels, shape (number,)."""
        self.count += number
        return torch.arange(self.count - number, self.count)

    def tie(self, one: Tensor, other: Tensor) -> None:
        """One rescaling for entries in the same place; the tensors broadcast."""
        one, other = torch.broadcast_tensors(one, other)
        for axis in range(one.dim()):  # an axis along which both are copies says everything once
            if one.stride(axis) == 0 and other.stride(axis) == 0 and one.shape[axis]:
                one, other = one.narrow(axis, 0, 1), other.narrow(axis, 0, 1)
        differs = one != other
        if bool(differs.any()):
            met = np.unique((one[differs] * self.count + other[differs]).numpy())
            self.ties.append(np.stack(np.divmod(met, self.count)))

    def pin(self, labels: Tensor) -> None:
        """Tie to the ground."""
        self.tie(labels, torch.zeros_like(labels))

    def constant_along(self, labels: Tensor, axes: set[int]) -> Tensor:
        """Tie all positions along the axes; the labels of the first position, shape with those axes of length 1."""
        first = labels
        for axis in axes:
            first = first.narrow(axis, 0, 1)
        self.tie(labels, first)
        return first

    def resolve(self, wanted: list[Tensor]) -> tuple[int, list[np.ndarray]]:
        """(H, the classes 0..H of the wanted labels): classes that are wanted are numbered in order, 0 is the ground's."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pairs = np.concatenate(self.ties, axis=1) if self.ties else np.zeros((2, 0), dtype=np.int64)
        joined = coo_array(
            (np.ones(pairs.shape[1], dtype=np.int8), (pairs[0], pairs[1])), shape=(self.count, self.count)
        )
        _, component = connected_components(joined, directed=False)
        number = np.full(component.max() + 1, -1, dtype=np.int32)
        number[component[GROUND]] = 0
        met = component[np.concatenate([each.reshape(-1).numpy() for each in wanted])] if wanted else component[:0]
        found, first = np.unique(met, return_index=True)
        ordered = found[np.argsort(first)]
        free = ordered[number[ordered] < 0]
        number[free] = np.arange(1, len(free) + 1)
        return len(free), [number[component[each.numpy()]] for each in wanted]
