"""The network cut behind one module: run below without autograd, differentiate above, leave no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from theory import InputError

__all__ = ["Cut", "Passage", "call", "rows", "same_random_state", "tensors", "untouched"]


class _AtTheBoundary(BaseException):
    """Ends a forward pass; no Exception, because the model might catch those."""


@dataclass(frozen=True)
class Passage:
    """One passage of a batch through a cut: per-sample gradients (n, ...) at the boundary, and the network's output."""

    gradient: Tensor
    output: Any


@dataclass(frozen=True)
class Cut:
    """A network cut behind the module called `boundary`, and the loss that is summed over samples.

    `broadcast` says that the boundary's output has no sample axis; every sample then gets a copy of its own. The model
    is only ever run, with one forward hook that is removed whatever happens.
    """

    model: nn.Module
    boundary: str
    loss: Callable[[Any, Any], Tensor]
    broadcast: bool = False

    def __post_init__(self) -> None:
        names = [name for name, _ in self.model.named_modules(remove_duplicate=False) if name]
        if self.boundary and self.boundary not in names:
            near = get_close_matches(self.boundary, names, n=3, cutoff=0.4)
            hint = (
                f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names) or 'none'}"
            )
            raise InputError(f"the model has no module {self.boundary!r}; {hint}")

    def forward(self, x: Any, hold: Tensor | None = None) -> tuple[Any, Tensor]:
        """The network's output and the boundary's, without gradients; `hold` takes the place of the latter."""
        seen: list[Tensor] = []

        def change(z: Tensor) -> Tensor | None:
            seen.append(z.clone())
            return None if hold is None else hold.clone()

        with torch.no_grad():
            output = self.through(x, change)
        return output, seen[0]

    def shape(self, x: Any) -> torch.Size:
        """The shape of the boundary's output; the network above it is not run."""
        seen: list[torch.Size] = []

        def stop(z: Tensor) -> None:
            seen.append(z.shape)
            raise _AtTheBoundary

        with torch.no_grad(), suppress(_AtTheBoundary):
            self.through(x, stop)
        return seen[0]

    def gradient(self, x: Any, y: Any) -> Passage:
        """The gradient of loss(output, y) at the boundary's output, with one row a sample."""
        leaves: list[Tensor] = []

        def change(z: Tensor) -> Tensor:
            leaves.append(self._one_row_a_sample(z, len(tensors(x)[0])).detach().requires_grad_())
            torch.set_grad_enabled(True)
            # A copy, because the network above may change it in place, which autograd forbids on a leaf.
            return leaves[0].clone()

        with torch.no_grad():  # leaving no_grad also ends what `change` switched on
            output = self.through(x, change)
            total = self.loss(output, y)
            if not isinstance(total, Tensor) or total.numel() != 1:
                shape = tuple(total.shape) if isinstance(total, Tensor) else type(total).__name__
                raise InputError(f"the loss must be one number, the sum over samples; got {shape}")
            gradient = torch.autograd.grad(total, leaves, allow_unused=True)[0] if total.requires_grad else None
        if gradient is None:
            raise InputError(
                f"the loss does not depend differentiably on the output of {self.boundary!r}: the network above it "
                "detaches it, runs under no_grad, or never uses it"
            )
        return Passage(gradient, tree_map_only(Tensor, Tensor.detach, output))

    def through(self, x: Any, change: Callable[[Tensor], Tensor | None]) -> Any:
        """The model's output at x with the boundary's output replaced by change(z) (kept where that is None)."""
        calls = 0

        def hook(_module: nn.Module, _inputs: Any, output: Any) -> Tensor | None:
            nonlocal calls
            calls += 1
            return change(self._one_tensor(output)) if calls == 1 else None

        handle = self.model.get_submodule(self.boundary).register_forward_hook(hook)
        try:
            output = call(self.model, x)
        finally:
            handle.remove()
        if calls != 1:
            raise InputError(
                f"module {self.boundary!r} must be called exactly once in a forward pass; it was called {calls} times"
                + ("" if calls else " (a compiled or scripted model runs no hooks: pass the original)")
            )
        return output

    def _one_tensor(self, output: Any) -> Tensor:
        if not isinstance(output, Tensor) or not output.is_floating_point() or output.is_meta or not output.dim():
            got = f"a {output.dtype} tensor on {output.device}" if isinstance(output, Tensor) else type(output).__name__
            raise InputError(
                f"module {self.boundary!r} must return one floating-point tensor (n, ...) with data; it "
                f"returned {got}. Cut at a module inside or after it"
            )
        return output

    def _one_row_a_sample(self, z: Tensor, n: int) -> Tensor:
        if not self.broadcast and z.shape[0] == n:
            return z
        if z.shape[0] == 1:
            return z.expand(n, *z.shape[1:])
        if self.broadcast:
            return z.expand(n, *z.shape)
        raise InputError(
            f"the output of {self.boundary!r} has shape {tuple(z.shape)} for {n} samples: samples must lie along its "
            "first axis; cut at another module"
        )


def call(model: nn.Module, x: Any) -> Any:
    """The model on its inputs: one tensor, positional ones in a tuple or list, keyword ones in a mapping."""
    try:
        if isinstance(x, Tensor):
            return model(x)
        return model(**x) if isinstance(x, Mapping) else model(*x)
    except RuntimeError as fault:
        given, own = ({t.dtype for t in ts if t.is_floating_point()} for ts in (tensors(x), model.parameters()))
        if given and own and not given & own:
            raise InputError(
                f"the inputs are {', '.join(map(str, given))}, the model is {', '.join(map(str, own))}: convert one"
            ) from fault
        raise


def tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and mappings, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def rows(tree: Any, index: Tensor, n: int) -> Any:
    """The same tree with rows `index` of every tensor whose first axis has length n."""
    return tree_map_only(Tensor, lambda t: t[index.to(t.device)] if t.shape[:1] == (n,) else t, tree)


class same_random_state:
    """Run a block at the present state of torch's generators and put that state back afterwards.

    `used` says whether the block drew from them. Covers the CPU and the CUDA devices that the model lies on.
    """

    def __init__(self, model: nn.Module) -> None:
        placed = [*model.parameters(), *model.buffers()]
        self.devices = sorted({t.device.index for t in placed if t.device.type == "cuda"})
        self.used = False

    def _state(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in self.devices)]

    def __enter__(self) -> same_random_state:
        self.before = self._state()
        return self

    def __exit__(self, *_: object) -> None:
        self.used = not all(map(torch.equal, self.before, self._state()))
        torch.set_rng_state(self.before[0])
        for device, state in zip(self.devices, self.before[1:], strict=True):
            torch.cuda.set_rng_state(state, device)


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Put buffers (running statistics, power iterations) and the generators' states back as they were."""
    before = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    with same_random_state(model):
        try:
            yield
        finally:
            with torch.no_grad():
                for module, name, buffer, value in before:
                    if getattr(module, name) is not buffer:
                        setattr(module, name, buffer)
                    if not torch.equal(buffer, value):
                        buffer.copy_(value)
