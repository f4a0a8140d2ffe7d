"""From a module to a graph that can be walked: traced by torch.fx from a copy, checked against the closed list."""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize

from theory import InputError

from .graph import Traced, own_name
from .modules import MODULES, REASONS

__all__ = ["trace"]


class _Tracer(fx.Tracer):
    """Buffers are nodes, so that a mask may be cut to the length of a sequence."""

    proxy_buffer_attributes = True


def trace(model: nn.Module, example: Any) -> Traced:
    """The graph of a copy of the model, checked against the closed list; the model itself is not called.

    `example` is the input, a tensor or a tuple of tensors with samples along the first axis; one sample's shape is used.
    Raises InputError for what cannot be traced or is not supported, naming the module or operation.
    """
    inputs = example if isinstance(example, tuple) else (example,)
    if not all(isinstance(each, Tensor) and each.dim() > 0 and len(each) > 0 for each in inputs):
        raise InputError("the example must be a tensor, or a tuple of tensors, with samples along the first axis")
    shapes = tuple((1, *each.shape[1:]) for each in inputs)
    _check_parameters(model)
    try:
        twin = copy.deepcopy(model).eval()
    except Exception as fault:
        raise InputError(f"the model cannot be copied ({fault}); path conditioning works on a copy") from None
    # fx traces into the module it is given, even if that is a Linear.
    prefix = "0." if type(twin) in MODULES or type(twin) in REASONS else ""
    root = nn.Sequential(twin) if prefix else twin
    try:
        graph = _Tracer().trace(root)
    except Exception as fault:
        raise InputError(
            f"the model cannot be traced ({type(fault).__name__}: {fault}); control flow on activations is not supported"
        ) from None
    modules = dict(root.named_modules())
    traced = Traced(graph, modules, root, shapes, prefix)
    _check_modules(traced)
    return traced


def _check_parameters(model: nn.Module) -> None:
    names: dict[int, str] = {}
    places: list[tuple[int, int, str]] = []
    for name, each in model.named_parameters(remove_duplicate=False):
        if isinstance(each, nn.parameter.UninitializedParameter):
            raise InputError(f"{name} has no shape yet: call the model once before")
        if not each.is_floating_point():
            raise InputError(f"{name} is of {each.dtype}; path conditioning takes real floating-point parameters")
        if id(each) in names:
            raise InputError(f"{name} and {names[id(each)]} are one tensor: a rescaling cannot treat them apart")
        names[id(each)] = name
        places.append((each.data_ptr(), each.data_ptr() + each.nbytes, name))
        if each.numel() and not all(math.isfinite(float(end)) for end in torch.aminmax(each.detach())):
            raise InputError(f"{name} has an entry that is not finite")
    for (_, end, name), (start, _, other) in pairwise(sorted(each for each in places if each[0])):
        if start < end:
            raise InputError(f"{name} and {other} share memory: a rescaling cannot treat them apart")


def _check_modules(traced: Traced) -> None:
    called: set[int] = set()
    for node in traced.graph.nodes:
        if node.op != "call_module":
            continue
        module, name = traced.modules[node.target], own_name(node.target, traced.prefix)
        kind = type(module)
        if parametrize.is_parametrized(module):
            raise InputError(
                f"path conditioning: {name} is parametrised ({kind.__name__}): remove the parametrisation first"
            )
        if kind not in MODULES:
            reason = next(
                (REASONS[each] for each in kind.__mro__ if each in REASONS), "is not on the list of supported modules"
            )
            raise InputError(f"path conditioning: {name}: {kind.__name__} {reason}")
        own = {each for each, _ in module.named_parameters(recurse=False)}
        if not own <= {"weight", "bias"}:
            raise InputError(
                f"path conditioning: {name} has parameters {sorted(own)}: is it a wrapped {kind.__name__}?"
            )
        if own and kind is not nn.PReLU:
            if id(module) in called:
                raise InputError(f"path conditioning: {name} is used more than once, with one weight for both places")
            called.add(id(module))
