"""Path lifting on small networks: every path written out, with its Jacobian, the path kernel P and the Gram matrix G.

A network is a graph of units. An edge carries a parameter, or a fixed number; a bias is an edge from the constant 1. A
path starts at an input unit or at a bias and ends at an output unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from sympy import Expr, Matrix, Mul, Symbol, prod, sympify

from ..formula import InputError

__all__ = ["Edge", "Graph", "Path", "mlp"]

MOST_PATHS = 20_000


@dataclass(frozen=True)
class Edge:
    """From `tail` (None: the constant 1, so that the edge is a bias) to `head`, carrying a parameter or a fixed number.

    A parameter may sit on many edges, as a convolution's do, but at most once on a path.
    """

    tail: str | None
    head: str
    carries: Any


@dataclass(frozen=True)
class Path:
    """The edges from a start to an output, in order."""

    edges: tuple[Edge, ...]

    @property
    def value(self) -> Expr:
        """Phi: the product of what the edges carry."""
        return Mul(*(edge.carries for edge in self.edges))

    @property
    def end(self) -> str:
        """The output unit."""
        return self.edges[-1].head


@dataclass(frozen=True)
class Graph:
    """A network with homogeneous activations in its hidden units: inputs, hidden units and outputs by name, and edges.

    `units` orders the hidden units so that edges run forward; `labels` gives hidden units that must share a factor one
    name (pixels of a channel, streams tied by a skip), the unit's own name by default, and None for units that may not be
    rescaled. Raises InputError for an edge that runs backward or a parameter twice on a path.

    >>> net = mlp([1, 1, 1])
    >>> net.lifting.T, net.parameters
    (Matrix([[w1_00*w2_00, b1_0*w2_00, b2_0]]), (w1_00, b1_0, w2_00, b2_0))
    >>> net.gram[0, 0], net.gram[1, 1]
    (w2_00**2, w2_00**2)
    """

    inputs: tuple[str, ...]
    units: tuple[str, ...]
    outputs: tuple[str, ...]
    edges: tuple[Edge, ...]
    labels: Mapping[str, str | None] | None = None

    def __post_init__(self) -> None:
        place = {name: n for n, name in enumerate((*self.inputs, *self.units))} | {
            name: len(self.inputs) + len(self.units) for name in self.outputs
        }
        for edge in self.edges:
            if edge.head not in place or (edge.tail is not None and edge.tail not in place):
                raise InputError(f"the edge {edge.tail} -> {edge.head} names a unit that the graph does not have")
            if edge.tail is not None and place[edge.tail] >= place[edge.head]:
                raise InputError(f"the edge {edge.tail} -> {edge.head} runs backward")

    @cached_property
    def parameters(self) -> tuple[Symbol, ...]:
        """The parameters, in order of first appearance."""
        return tuple(dict.fromkeys(edge.carries for edge in self.edges if isinstance(edge.carries, Symbol)))

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """All q paths, depth first."""
        leaving: dict[str | None, list[Edge]] = {}
        for edge in self.edges:
            leaving.setdefault(edge.tail, []).append(edge)
        found: list[Path] = []

        def walk(edges: tuple[Edge, ...]) -> None:
            if edges[-1].head in self.outputs:
                found.append(Path(edges))
                if len(found) > MOST_PATHS:
                    raise InputError(f"more than {MOST_PATHS} paths: enumeration is for small networks")
                return
            for edge in leaving.get(edges[-1].head, ()):
                if isinstance(edge.carries, Symbol) and any(edge.carries == each.carries for each in edges):
                    raise InputError(
                        f"{edge.carries} occurs twice on a path: the lifting would not be multilinear in it"
                    )
                walk((*edges, edge))

        for start in (*self.inputs, None):
            for edge in leaving.get(start, ()):
                walk((edge,))
        return tuple(found)

    @cached_property
    def lifting(self) -> Matrix:
        """Phi (q x 1): the product of the parameters on each path."""
        return Matrix([path.value for path in self.paths])

    @cached_property
    def jacobian(self) -> Matrix:
        """J = dPhi/dtheta (q x p): the product of the other parameters where the path holds the parameter, else 0."""
        rows = []
        for path in self.paths:
            on_path = {edge.carries for edge in path.edges}
            rows.append([path.value / each if each in on_path else 0 for each in self.parameters])
        return Matrix(rows)

    @cached_property
    def kernel(self) -> Matrix:
        """The path kernel P = J J' (q x q), by which gradient flow in Phi is preconditioned."""
        return self.jacobian * self.jacobian.T

    @cached_property
    def gram(self) -> Matrix:
        """G = J' J (p x p); G_ii is the sum over the paths through i of the squared product of the others."""
        return self.jacobian.T * self.jacobian

    @cached_property
    def rescalings(self) -> Matrix:
        """B (p x H): -1 where the parameter enters a unit of the label, +1 where it leaves one, 0 where both or neither."""
        columns = self.free_labels
        rows = {each: [0] * len(columns) for each in self.parameters}
        seen: set[tuple[Any, str | None, str | None]] = set()
        for edge in self.edges:
            ends = (edge.carries, self._label(edge.head), self._label(edge.tail))
            if edge.carries not in rows or ends in seen:
                continue
            if any(edge.carries == other for other, *_ in seen):
                raise InputError(f"the edges of {edge.carries} join different labels: give their units shared ones")
            seen.add(ends)
            for label, sign in ((ends[1], -1), (ends[2], 1)):
                if label is not None:
                    rows[edge.carries][columns.index(label)] += sign
        return Matrix(len(self.parameters), len(columns), [entry for row in rows.values() for entry in row])

    @cached_property
    def free_labels(self) -> tuple[str, ...]:
        """The H labels that may be rescaled, in the order of the units."""
        return tuple(dict.fromkeys(label for unit in self.units if (label := self._label(unit)) is not None))

    def _label(self, unit: str | None) -> str | None:
        if unit is None or unit not in self.units:
            return None
        return unit if self.labels is None else self.labels.get(unit, unit)

    def activity(self, slopes: Mapping[str, Any], x: Mapping[str, Any]) -> Matrix:
        """A (q x 1): the start's value times the slopes of the hidden units on each path, so that y_o = sum Phi A."""
        values = []
        for path in self.paths:
            start = path.edges[0].tail
            met = [slopes[edge.head] for edge in path.edges if edge.head in self.units]
            values.append((1 if start is None else x[start]) * prod(met))
        return Matrix(values)

    def outputs_of(self, slopes: Mapping[str, Any], x: Mapping[str, Any]) -> Matrix:
        """The outputs, unit by unit (the other way round from `activity`): each hidden unit multiplies by its slope."""
        value: dict[str, Any] = {name: sympify(x[name]) for name in self.inputs}
        for unit in (*self.units, *self.outputs):
            terms = [
                edge.carries * (1 if edge.tail is None else value[edge.tail])
                for edge in self.edges
                if edge.head == unit
            ]
            value[unit] = sum(terms, sympify(0)) * (slopes[unit] if unit in self.units else 1)
        return Matrix([value[unit] for unit in self.outputs])


def mlp(widths: Sequence[int], biases: str = "all") -> Graph:
    """The fully connected network of widths n_0..n_L; `biases` is none, hidden or all, as everywhere.

    Parameters are w1_jk (row j, column k of the first matrix), b1_j and so on; units h1_j, inputs x_k, outputs y_j. With
    all biases q = sum_(s=0)^L prod_(l >= s) n_l + n_L ... the last term being the output biases' paths of length 0.

    >>> len(mlp([3, 4, 2, 2]).paths), len(mlp([3, 4, 2, 2]).parameters)
    (70, 32)
    """
    depth = len(widths) - 1
    if depth < 1 or min(widths) < 1:
        raise InputError(f"widths must be at least two positive integers; got {list(widths)}")

    def names(level: int) -> list[str]:
        letter = "x" if level == 0 else "y" if level == depth else f"h{level}_"
        return [f"{letter}{j}" for j in range(widths[level])]

    edges = []
    for layer, (below, above) in enumerate(pairwise(range(depth + 1)), 1):
        for j, head in enumerate(names(above)):
            edges += [Edge(tail, head, Symbol(f"w{layer}_{j}{k}", real=True)) for k, tail in enumerate(names(below))]
        if biases == "all" or (biases == "hidden" and layer < depth):
            edges += [Edge(None, head, Symbol(f"b{layer}_{j}", real=True)) for j, head in enumerate(names(above))]
    hidden = tuple(name for layer in range(1, depth) for name in names(layer))
    return Graph(tuple(names(0)), hidden, tuple(names(depth)), tuple(edges))
