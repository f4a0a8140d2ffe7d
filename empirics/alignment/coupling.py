"""Is q_i a function of sample i alone, and does everything pass through the cut? Asked of the network, not of its code.

A per-sample gradient exists only if the samples of a batch do not interact. That is decided by experiment: the gradient
of sample i is taken twice, at one random state, among different companions. In the same way a path that goes round the
boundary is found: the boundary's output is held fixed while the input changes, and the network's output must not move.
A handful of rows is enough for either: the probes cost a few forward and backward passes over at most 16 of them.
Any coupling that is a smooth function of the companions is seen; a discrete rule (a capacity) could happen to decide
alike in all the compositions that are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from theory import InputError

from .cut import Cut, Passage, call, rows, same_random_state, tensors

__all__ = ["Findings", "examine", "tolerance"]

PROBE_ROWS = 16


@dataclass(frozen=True)
class Findings:
    """What the probes found out about a network and a boundary.

    `broadcast`: the boundary's output has no sample axis (a position embedding); `partial`: the network also reads its
    input by a path round the boundary, None where this could not be decided; `random`: the forward pass draws random
    numbers; `notes`: what the user should know, in words.
    """

    broadcast: bool = False
    partial: bool | None = None
    random: bool = False
    notes: tuple[str, ...] = ()


def tolerance(q: Tensor) -> float:
    """Relative change of a gradient that rounding explains: 1e-6 in float64, 1e-4 in float32, 8 eps below that.

    On a CUDA device that may multiply float32 with the 10 bits of TF32 it is 8 eps of those.

    >>> tolerance(torch.zeros(1)), tolerance(torch.zeros(1, dtype=torch.bfloat16))
    (0.0001, 0.0625)
    """
    if q.dtype == torch.float64:
        return 1e-6
    tf32 = q.device.type == "cuda" and (torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
    if q.dtype == torch.float32:
        return 8 * 2**-10 if tf32 else 1e-4
    return 8 * torch.finfo(q.dtype).eps


def examine(cut: Cut, x: Any, y: Any, n: int) -> tuple[Findings, Tensor]:
    """Probe the cut on a batch of n samples; raise InputError where q is not a per-sample gradient.

    Refused: a boundary whose output has no recognisable sample axis, a loss that is not a sum over samples, samples
    that interact. Told in the findings: random forward passes and paths round the boundary. With n = 1 there are no
    companions to change: nothing can interact, and a path round the boundary is left undecided.

    Returns the findings and the gradient of the whole batch, which one of the probes needs and capture as well.
    """
    m = PROBE_ROWS - 2 if n == PROBE_ROWS else min(PROBE_ROWS, 2 * n)  # never n: two batch sizes tell more than one
    # Scattered, so that regular patterns of a batch (pairs, halves) are broken up.
    index = torch.randperm(n, generator=torch.Generator().manual_seed(n))[:m] if n > m else torch.arange(m) % n
    few = rows((x, y), index, n)
    with same_random_state(cut.model):
        plain, z = cut.forward(few[0])
    with same_random_state(cut.model):
        shorter = cut.shape(rows(few[0], torch.arange(m - 1), m))
    cut = replace(cut, broadcast=_has_no_sample_axis(cut.boundary, z.shape, shorter, m))
    with same_random_state(cut.model) as random:
        whole = cut.gradient(x, y)
    tol, everything = tolerance(whole.gradient), torch.arange(m)
    _refuse_unless_sum(cut.loss, plain, few[1], m, tol)
    if random.used:  # equal places of equally shaped batches meet equal noise: compare the few with the few
        with same_random_state(cut.model):
            reference = cut.gradient(*few)
    else:
        reference = Passage(whole.gradient[index], rows(whole.output, index, n))
    if n > 1:
        _refuse_if_coupled(cut, few, reference.gradient, n, tol)
    if _apart(reference.output, plain, everything, m, tol):
        with same_random_state(cut.model):
            replaced = cut.gradient(*few).output
        if not _apart(replaced, plain, everything, m, tol):
            raise _coupled("the output changes", f"It takes more than {m} samples to see it: a capacity, perhaps.")
        raise InputError(
            f"the network's output changes when the output of {cut.boundary!r} is replaced by a copy of itself: its "
            "memory is shared with, or its shape read by, another part of the network; cut at another module"
        )
    partial, detour = _goes_round(cut, few[0], z, plain, m, tol)
    notes = [detour] if detour else []
    if random.used:
        modules = cut.model.named_modules()
        thinned = [name for name, each in modules if each.training and "Dropout" in type(each).__name__]
        source = f" (dropout in training mode: {', '.join(thinned)})" if thinned else ""
        notes.append(
            f"the forward pass draws random numbers{source}: each q belongs to one draw of that noise, not to the "
            "network without it; in evaluation mode, model.eval(), there is no dropout"
        )
    return Findings(cut.broadcast, partial, random.used, tuple(notes)), whole.gradient


def _has_no_sample_axis(boundary: str, full: torch.Size, shorter: torch.Size, m: int) -> bool:
    if full == shorter:
        return True
    if full[:1] == (m,) and shorter[:1] == (m - 1,):
        return False
    raise InputError(
        f"the output of {boundary!r} has shape {tuple(full)} for {m} samples and {tuple(shorter)} for {m - 1}: samples "
        "must lie along its first axis (a batch_first layout, not folded with positions); cut at another module"
    )


def _refuse_unless_sum(loss: Callable[[Any, Any], Tensor], output: Any, y: Any, m: int, tol: float) -> None:
    twice = torch.cat([torch.arange(m), torch.arange(m)])
    with torch.no_grad():
        once, doubled = float(loss(output, y)), float(loss(rows(output, twice, m), rows(y, twice, m)))
    if abs(doubled - 2 * once) <= tol * max(abs(once), abs(doubled)):
        return
    if abs(doubled - once) <= tol * abs(once):
        reason = "it is a mean over samples, so q_i would shrink with the size of its batch; use reduction='sum'"
    else:
        reason = "it is no sum of one term a sample (a regulariser, a ratio, or terms that join samples?)"
    raise InputError(
        f"the loss must sum over samples: it is {once:.6g} for a batch and {doubled:.6g} for that batch twice; {reason}"
    )


def _refuse_if_coupled(cut: Cut, few: tuple[Any, Any], reference: Tensor, n: int, tol: float) -> None:
    """Take the gradients of m samples among other companions than in the reference (m, ...), and compare.

    One sample takes half of the places, the others stay where they were. In a batch so small that the few hold all of
    it, the first 4 are each put among copies of themselves as well: there half may have the statistics of all.
    """
    m = len(reference)
    loudest = int(reference.flatten(1).abs().amax(1).argmax())
    half = torch.where(torch.arange(m) < m // 2, loudest, torch.arange(m))
    for places in [half] if n > m else [half, *(torch.full((m,), i) for i in range(min(n, 4)))]:
        others = rows(few, places, m)
        with same_random_state(cut.model):
            b = cut.gradient(*others)
        kept = torch.nonzero(places == torch.arange(m)).flatten()
        before, after = (q.flatten(1).to(torch.float64) for q in (reference, b.gradient))
        # In units of the rms of |q| at least: the gradient of a nearly fitted sample is a difference of nearly equal
        # numbers, whose relative error says nothing.
        norms = before.norm(dim=1)
        size = norms.clamp(min=float(norms.square().mean().sqrt()))[kept]
        change = float(((after - before)[kept].norm(dim=1) / torch.where(size > 0, size, 1.0)).max())
        if not change <= tol:  # NaN is a change too
            what = f"a gradient changes by {change:.2g} of its size (rounding explains {tol:g})"
            raise _coupled(what, _culprit(cut, few, others, kept, m, tol))


def _coupled(what: str, culprit: str) -> InputError:
    return InputError(
        f"samples interact: {what} when only the companions in the batch change, so per-sample gradients do not exist. "
        + culprit
    )


def _apart(a: Any, b: Any, kept: Tensor, m: int, tol: float) -> bool:
    """Whether the kept ones of m samples differ by more than `tol` of their largest entry, in any tensor of two trees.

    Samples folded with positions, (m T, ...), are unfolded; tensors without a sample axis are compared as they are.
    """
    a, b = tensors(a), tensors(b)
    if [each.shape for each in a] != [each.shape for each in b]:
        return True
    for left, right in zip(a, b, strict=True):
        if not (left.is_floating_point() and left.numel()):
            continue
        if left.dim() and left.shape[0] % m == 0:
            left, right = (t.reshape(m, -1)[kept.to(t.device)] for t in (left, right))
        left, right = left.to(torch.float64), right.to(torch.float64)
        if float((left - right).abs().max()) > tol * float(left.abs().max()):
            return True
    return False


def _culprit(cut: Cut, a: tuple[Any, Any], b: tuple[Any, Any], kept: Tensor, m: int, tol: float) -> str:
    """Where kept samples first come to depend on their companions: the first module to finish whose output shows it and
    whose inputs do not; else the loss, by its gradient at equal outputs; else an honest "somewhere"."""
    first, second = (_trace(cut.model, x) for x, _ in (a, b))
    for key, (module, given, made) in first.items():
        _, given_b, made_b = second.get(key, (module, given, made))
        if _apart(made, made_b, kept, m, tol) and not _apart(given, given_b, kept, m, tol):
            mode = "training" if module.training else "evaluation"
            where = f"module {key[0]!r}" if key[0] else "the model's own forward method"
            hint = " Put the model into evaluation mode: model.eval()." if module.training else ""
            return f"First seen at {where} ({type(module).__name__}, in {mode} mode).{hint}"
    slopes = [_slope_at_output(cut, x, y) for x, y in (a, b)]
    if all(slope is not None for slope in slopes) and _apart(*slopes, kept, m, tol):
        return "No module mixes them on the way forward; the loss does: it joins the outputs of different samples."
    return (
        f"Among {m} samples no single module shows it on the way forward: look for a loss, a function or a capacity "
        "that joins the samples of a batch."
    )


def _trace(model: nn.Module, x: Any) -> dict[tuple[str, int], tuple[nn.Module, list[Tensor], list[Tensor]]]:
    """(name, how often called before) -> (module, inputs, outputs), in the order in which the calls end."""
    seen: dict[tuple[str, int], tuple[nn.Module, list[Tensor], list[Tensor]]] = {}

    def watch(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            given, made = ([t.clone() for t in tensors(each)] for each in ((args, kwargs), output))
            seen[name, sum(name == other for other, _ in seen)] = (module, given, made)

        return hook

    with ExitStack() as hooks, torch.no_grad(), same_random_state(model):
        for name, module in model.named_modules():
            hooks.callback(module.register_forward_hook(watch(name), with_kwargs=True).remove)
        call(model, x)
    return seen


def _slope_at_output(cut: Cut, x: Any, y: Any) -> Tensor | None:
    """The gradient of the loss at the network's output, where that is one tensor."""
    with same_random_state(cut.model):
        output, _ = cut.forward(x)
    if not isinstance(output, Tensor):
        return None
    with torch.enable_grad():
        leaf = output.detach().requires_grad_()
        return torch.autograd.grad(cut.loss(leaf, y), leaf, allow_unused=True)[0]


def _goes_round(cut: Cut, x: Any, z: Tensor, output: Any, m: int, tol: float) -> tuple[bool | None, str]:
    """Hold the boundary's output z at what x gave, shift the first input by one sample, and see if the output moves.

    The other inputs (masks, conditions) stay with their sample: reading them behind the cut is no detour of the data.
    """
    first, everything = tensors(x)[0], torch.arange(m)
    shifted = tree_map_only(Tensor, lambda t: t.roll(1, 0) if t is first else t, x)
    with same_random_state(cut.model):
        held, _ = cut.forward(shifted, hold=z)
    if _apart(output, held, everything, m, tol):
        return True, (
            f"the network also reads its input by a path round {cut.boundary!r} (a skip connection, a second branch, "
            "or a mask made from the input): q is the partial derivative with that path held fixed"
        )
    if not tensors(output) or not _apart(output, rows(output, everything.roll(1), m), everything, m, tol):
        return None, (
            f"whether a path goes round {cut.boundary!r} could not be decided: the output does not tell the first "
            "samples apart. If one does (a skip connection), q is the partial derivative with that path held fixed"
        )
    return False, ""
