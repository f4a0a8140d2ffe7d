"""A traced network, walked once with labels and masses side by side: what each call does to both."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_flatten, tree_map

from theory import InputError

from .modules import MODULES, activation
from .pools import pool_adaptive, pool_average, pool_max, reduce
from .products import add, attention, matmul, multiply, negate, softmax
from .squared import Tape
from .wiring import Signal, Wiring

__all__ = ["Traced", "own_name"]

STRUCTURAL = {
    "chunk", "contiguous", "expand", "flatten", "movedim", "narrow", "permute", "repeat", "repeat_interleave", "reshape",
    "select", "split", "squeeze", "swapaxes", "tile", "transpose", "unbind", "unflatten", "unsqueeze", "view",
    "cat", "concat", "stack", "getitem",
}  # fmt: skip
"""Calls that move entries about: they act on labels and masses as they act on the activation."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("relu", "leaky_relu", "dropout", "identity"), lambda w, x, *_, **__: activation(w, x, "homogeneous")
    ),
    **dict.fromkeys(("gelu", "silu"), lambda w, x, *_, **__: activation(w, x, "smooth")),
    **dict.fromkeys(("softmax", "log_softmax"), lambda w, x, *_, **__: softmax(w, x)),
    **dict.fromkeys(("add", "iadd", "sub", "isub"), add),
    **dict.fromkeys(("mul", "imul", "multiply"), multiply),
    **dict.fromkeys(("truediv", "itruediv", "div", "divide"), lambda w, a, b: multiply(w, a, b, inverse=True)),
    **dict.fromkeys(("neg", "negative"), negate),
    **dict.fromkeys(("matmul", "bmm"), matmul),
    "mean": lambda w, x, dim=None, keepdim=False: reduce(w, x, dim, keepdim, average=True),
    "sum": lambda w, x, dim=None, keepdim=False: reduce(w, x, dim, keepdim, average=False),
    "scaled_dot_product_attention": attention,
    "masked_fill": lambda w, x, mask, value: _masked(x, mask),
}
for _n in (1, 2, 3):
    _FUNCTIONS[f"max_pool{_n}d"] = lambda w, x, *a, n=_n, **k: pool_max(w, x, n, *a, **k)
    _FUNCTIONS[f"avg_pool{_n}d"] = lambda w, x, *a, n=_n, **k: pool_average(w, x, n, *a, **k)
    _FUNCTIONS[f"adaptive_avg_pool{_n}d"] = lambda w, x, size, n=_n: pool_adaptive(w, x, n, size, average=True)
    _FUNCTIONS[f"adaptive_max_pool{_n}d"] = lambda w, x, size, n=_n: pool_adaptive(w, x, n, size, average=False)


_KNOWN_MODULES = ("torch", "_operator", "builtins", "math")
_OF_SCORES = {
    "add",
    "iadd",
    "sub",
    "isub",
    "mul",
    "imul",
    "multiply",
    "truediv",
    "div",
    "divide",
    "softmax",
    "masked_fill",
}


def _masked(x: Signal, mask: Tensor) -> Signal:
    if not x.score:
        raise InputError("masks an activation; only attention scores may be masked")
    return Signal(x.labels.expand(torch.broadcast_shapes(x.labels.shape, mask.shape)), None, score=True)


@dataclass(frozen=True)
class Traced:
    """A graph, its modules (copies: the user's are never called), and the shapes of one sample."""

    graph: fx.Graph
    modules: Mapping[str, nn.Module]
    attributes: nn.Module
    shapes: tuple[Any, ...]
    prefix: str

    def walk(self, *, maxpool: str = "sum", smooth: bool = False, reach: bool = False) -> Wiring:
        """Every node once, in order; slopes of the squared network have been propagated when this returns."""
        if maxpool not in ("sum", "max"):
            raise InputError(f"maxpool must be 'sum', the exact lifting, or 'max', the authors' code; got {maxpool!r}")
        wiring = Wiring(Tape(reach), maxpool, smooth)
        values: dict[fx.Node, Any] = {}
        given = iter(self.shapes)
        for node in self.graph.nodes:
            args = fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
            try:
                if node.op == "placeholder":
                    values[node] = self._input(wiring, node, given)
                elif node.op == "output":
                    self._outputs(wiring, args[0][0])
                else:
                    values[node] = self._step(wiring, node, *args)
            except Exception as fault:
                where = (
                    own_name(node.target, self.prefix) if node.op == "call_module" else f"{_name(node)}, at {node.name}"
                )
                why = str(fault) if isinstance(fault, InputError) else f"the example does not fit the model ({fault})"
                raise InputError(f"path conditioning: {where}: {why}") from None
        if next(given, None) is not None:
            raise InputError(f"path conditioning: the example has {len(self.shapes)} inputs, more than the model takes")
        return wiring

    def _input(self, wiring: Wiring, node: fx.Node, given: Any) -> Any:
        shape = next(given, None)
        if shape is None:
            if node.args:
                return node.args[0]
            raise InputError(f"the example has no value for the input {node.target}")
        return Signal(torch.zeros(shape, dtype=torch.int64), wiring.tape.ones(shape))

    def _outputs(self, wiring: Wiring, result: Any) -> None:
        signals = [each for each in tree_flatten(result)[0] if isinstance(each, Signal)]
        for each in signals:
            wiring.labels.pin(each.labels)
        wiring.tape.backward([each.flow for each in signals])

    def _step(self, wiring: Wiring, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if node.op == "get_attr":
            value = operator.attrgetter(node.target)(self.attributes)
            if isinstance(value, nn.Parameter):
                raise InputError("uses a parameter outside of any supported module")
            return value
        if node.op == "call_module":
            module = self.modules[node.target]
            if len(args) != 1 or kwargs or not isinstance(args[0], Signal):
                raise InputError(f"{type(module).__name__} is called with something other than one activation")
            if args[0].score and not isinstance(module, (nn.Softmax, nn.Dropout)):
                raise InputError(
                    "is applied to attention scores; they may only be scaled, masked and sent through softmax"
                )
            return MODULES[type(module)](wiring, own_name(node.target, self.prefix), module, args[0])
        name = _name(node)
        signals = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Signal)]
        if not signals:  # sizes and constants
            call = node.target if node.op == "call_function" else operator.methodcaller(name, *args[1:], **kwargs)
            return call(*args, **kwargs) if node.op == "call_function" else call(args[0])
        if node.op == "call_function" and not (node.target.__module__ or "torch").startswith(_KNOWN_MODULES):
            raise InputError(f"is a function of {node.target.__module__}, which is not looked into")
        if name in ("size", "dim"):
            return getattr(args[0].labels, name)(*args[1:], **kwargs)
        if name == "getattr":
            if args[1] not in ("shape", "ndim"):
                raise InputError(f"reads .{args[1]} of an activation")
            return getattr(args[0].labels, args[1])
        if name == "getitem" and not isinstance(args[0], Signal):
            return args[0][args[1]]
        if name in STRUCTURAL:
            return self._moved(wiring, node, args, kwargs, signals)
        if name not in _FUNCTIONS:
            raise InputError("is not on the list of operations whose rescaling is known to be exact")
        if any(each.score for each in signals) and name not in _OF_SCORES:
            raise InputError("is applied to attention scores; they may only be scaled, masked and sent through softmax")
        return _FUNCTIONS[name](wiring, *args, **{key: each for key, each in kwargs.items() if key != "inplace"})

    def _moved(self, wiring: Wiring, node: fx.Node, args: Any, kwargs: Any, signals: list[Signal]) -> Any:
        """The same call on labels and on masses."""

        def call(values: list[Tensor]) -> Any:
            supply = iter(values)
            a, k = tree_map(lambda each: next(supply) if isinstance(each, Signal) else each, (args, kwargs))
            if node.op == "call_function":
                return node.target(*a, **k)
            # Labels are expanded where the activation is dense: what it views, they may have to copy.
            return getattr(a[0], "reshape" if node.target == "view" else node.target)(*a[1:], **k)

        def part(labels: Tensor, pick: Callable[[Any], Tensor]) -> Signal:
            if any(each.mass is None for each in signals):
                return Signal(labels, None, gate, score)
            masses = [each.flow for each in signals]
            return Signal(labels, wiring.tape.linear(lambda *values: pick(call(list(values))), *masses), gate)

        gate, score = all(each.gate for each in signals), any(each.score for each in signals)
        labels = call([each.labels for each in signals])
        if isinstance(labels, Tensor):
            return part(labels, lambda result: result)
        return tuple(part(each, operator.itemgetter(k)) for k, each in enumerate(labels))


def own_name(target: Any, prefix: str) -> str:
    """The module's name in the user's model, "" for the model itself."""
    return "" if f"{target}." == prefix else str(target).removeprefix(prefix)


def _name(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
