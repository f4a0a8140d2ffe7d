"""What an insertion does to the held-out loss: predicted from activation gradients, and measured.

At a boundary z the insertion subtracts eta D(z): a vector, D = mu_M, the mean gradient of M samples (a bias), or a
residual branch V phi(Uz) grown from V = 0 by one gradient step, D(z) = Gamma_M phi(Uz), Gamma_M = mean of q phi' over the
M samples. With r(eta) the mean loss of K other samples, X = mu_M.g_K (or <Gamma_M, Gamma_K>) and curvature c = r''(0),

    r(eta) = r(0) - eta X + eta^2 c/2 + eta^3 r'''(0)/6 + ...,     eta_N = X/c,
    ratio  = (r(0) - r(eta))/(eta X) = 1 - eta/(2 eta_N) - eta^2 r'''(0)/(6 X) - ...

All is done in float64 on a copy: in float32 a step of 1e-6 eta_N has no measurable effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from math import copysign, inf, sqrt
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import bdtr
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_map, tree_map_only

from numerics.alignment.certificate import clopper_pearson_upper
from theory import InputError

from ..measurement import Measurement
from .activation_gradients import capture
from .cut import Cut, call, rows, tensors, untouched
from .moments import TILE_BYTES

__all__ = ["Interventions", "Preservation", "Response", "Site", "Step", "hadamard_gram", "intervene", "preservation"]

FRACTIONS = (0.02, 0.05, 0.08)
STEPS = (0.003, 0.01, 0.03, 0.1)
LEAST_PAIRS = 6  # from 6 on the smallest and the largest of the ratios enclose their median at 95 %
Branch = Callable[[Tensor], Tensor]


def hadamard_gram(q: Tensor, phi: Tensor, q_test: Tensor | None = None, phi_test: Tensor | None = None) -> Tensor:
    """The Gram matrix (n, m) of the gradients vec(sum_t q_t phi_t') of V, which are never formed.

    q (n, d) or (n, T, d) are gradients at the boundary, phi (n, h) or (n, T, h) the branch's features at the same places;
    entry (i, j) is sum over positions t, s of (q_it . p_js)(phi_it . psi_js): for one position the entrywise product of
    two Gram matrices. Without `q_test`, `phi_test` both sides are the same. In strips of 64 MiB.

    >>> import torch
    >>> q, phi = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[2.0], [3.0]])
    >>> hadamard_gram(q, phi).tolist()
    [[4.0, 6.0], [6.0, 18.0]]
    """
    q_test, phi_test = (q, phi) if q_test is None or phi_test is None else (q_test, phi_test)
    a, b, c, e = (t.reshape(len(t), -1, t.shape[-1]) for t in (q, phi, q_test, phi_test))
    if a.shape[:2] != b.shape[:2] or c.shape[:2] != e.shape[:2]:
        raise InputError(f"q and phi must have the same samples and positions; got {[tuple(t.shape) for t in (a, b)]}")
    T, m, S = a.shape[1], *c.shape[:2]
    c, e = c.flatten(0, 1), e.flatten(0, 1)
    step = max(1, TILE_BYTES // (8 * T * m * S))
    strips = []
    for left, right in zip(a.split(step), b.split(step), strict=True):
        products = (left.flatten(0, 1) @ c.T) * (right.flatten(0, 1) @ e.T)
        strips.append(products.reshape(-1, T, m, S).sum((1, 3)))
    return torch.cat(strips)


@dataclass(frozen=True)
class Response:
    """The held-out loss r(eta) of K samples along one insertion, as predicted at eta = 0 and as measured.

    `X` comes from the captured gradients, `slope` = r'(0) from differentiating r itself: slope = -X to rounding.
    `curvature` r''(0) = mu_M' H_K mu_M for a vector, `third` r'''(0), `risk` r(0) in the loss's unit. `unit_step` is the
    eta at which the insertion is as large as the activation, rms|z|/rms|D(z)| over the *train* samples. Derivatives are
    autograd's: it does not see the kinks of a ReLU; what is missed shows in `Step.worst_gap`.
    """

    X: float
    slope: float
    curvature: float
    third: float
    risk: float
    unit_step: float
    _at: Callable[[float], float] = field(repr=False, compare=False)

    @property
    def newton(self) -> float:
        """eta_N = X/curvature: negative where just one of the two is, infinite on a straight line."""
        return self.X / self.curvature if self.curvature else copysign(inf, self.X)

    @property
    def concave(self) -> bool:
        """Whether the loss bends down along the insertion: what lies at eta_N is then no minimum."""
        return self.curvature < 0

    def change(self, eta: float) -> float:
        """r(eta) - r(0), measured."""
        return self._at(eta) - self.risk

    def ratio(self, eta: float) -> float:
        """Measured over predicted change, which is -eta X; eta and X not 0."""
        return self.change(eta) / (-eta * self.X)

    def predicted_ratio(self, eta: float) -> float:
        """1 - eta/(2 eta_N) - eta^2 r'''(0)/(6 X): what second and third order leave of the first."""
        return 1 - eta * self.curvature / (2 * self.X) - eta**2 * self.third / (6 * self.X)


@dataclass(frozen=True)
class Site:
    """A boundary in a float64 copy of a network, with a pool of samples: what insertions there need.

    `z` and `q` (n, ...) are activations and their gradients, `positions` the axes over which a vector is shared,
    `branch` phi(Uz) with channels last, or None for a vector, `notes` those of `capture`.
    """

    cut: Cut
    x: Any
    y: Any
    z: Tensor
    q: Tensor
    positions: tuple[int, ...]
    branch: Branch | None
    notes: tuple[str, ...] = ()

    @classmethod
    @torch.inference_mode(False)
    def of(
        cls,
        model: nn.Module,
        boundary: str,
        data: Iterable[tuple[Any, Any]] | tuple[Any, Any],
        loss: Callable[[Any, Any], Tensor],
        *,
        reduce: Literal["sum", "flatten"] | tuple[int, ...] = "sum",
        branch: Branch | nn.Module | None = None,
        copy: nn.Module | None = None,
    ) -> Site:
        """Copy the model to float64 (or use such a `copy`) and capture once; arguments as in `capture`, no masks.

        `branch` maps (n, N) to (n, h), or (n, T, N) to (n, T, h), in float64; a module is copied as well.

        Raises InputError for what `capture` refuses, batches that do not fit together, random forward passes, narrow
        arithmetic whatever the parameters are, a boundary without samples along its first axis.
        """
        copy = in_float64(model) if copy is None else copy
        branch = in_float64(branch) if isinstance(branch, nn.Module) else branch
        x, y = pooled(data, copy)
        captured = capture(copy, boundary, (x, y), loss, reduce="flatten")
        if captured.random:
            raise InputError(f"an insertion cannot be measured where noise changes the loss: {captured.notes[0]}")
        cut, n = Cut(copy, boundary, loss), len(captured.gradients)
        with untouched(copy):
            z = cut.forward(x)[1]
        if z.dtype != torch.float64:
            raise InputError(f"{boundary!r} computes in {z.dtype} although its parameters are float64: no copy will do")
        if z.shape != (n, *captured.shape):
            raise InputError(f"the output of {boundary!r} has shape {tuple(z.shape)}, without an axis of {n} samples")
        if branch is not None and z.dim() not in (2, 3):
            raise InputError(f"a branch reads activations (n, N) or (n, T, N), channels last; got {tuple(z.shape)}")
        named = {"sum": (1,) if z.dim() == 3 else tuple(range(2, z.dim())), "flatten": ()}
        positions = named.get(reduce, (0,)) if isinstance(reduce, str) else tuple(axis % z.dim() for axis in reduce)
        if 0 in positions:
            raise InputError(f"reduce must be 'sum', 'flatten' or a tuple of axes behind the samples'; got {reduce!r}")
        return cls(cut, x, y, z, captured.gradients.reshape(z.shape), positions, branch, captured.notes)

    @torch.inference_mode(False)
    @torch.no_grad()
    def response(self, train: Tensor, test: Tensor) -> Response:
        """The insertion made from samples `train` (indices), and its effect on the samples `test`."""
        z, insertion = self.z[test], self._insertion(train)
        x, y = rows((self.x, self.y), test, len(self.z))
        D = insertion(z)
        size = float(insertion(self.z[train]).expand(len(train), *z.shape[1:]).square().sum())
        if not size:
            raise InputError(f"the mean of the {len(train)} train gradients is zero: there is no insertion to make")

        def risk(eta: Any) -> Tensor:
            # Fused attention has no second derivative; `untouched` for buffers that a pass in training mode moves.
            with untouched(self.cut.model), sdpa_kernel(SDPBackend.MATH):
                return self.cut.loss(self.cut.through(x, lambda _: z - eta * D), y) / len(test)

        r, slope, curvature, third = _derivatives(risk, z.device)
        unit_step = sqrt(float(self.z[train].square().sum()) / size)
        return Response(
            self._alignment(train, test), slope, curvature, third, r, unit_step, lambda eta: float(risk(eta))
        )

    def _mean(self, index: Tensor) -> Tensor:
        """The gradient of a shared vector; axes of length 1 stay, so that it can be subtracted from z as it is."""
        mean = self.q[index].mean(0, keepdim=True)
        return mean.sum(self.positions, keepdim=True) if self.positions else mean

    def _insertion(self, train: Tensor) -> Branch:
        if self.branch is None:
            mean = self._mean(train)
            return lambda z: mean
        branch, q = self.branch, self.q[train].reshape(-1, self.q.shape[-1])
        phi = branch(self.z[train])
        gamma = q.T @ phi.reshape(-1, phi.shape[-1]) / len(train)
        return lambda z: branch(z) @ gamma.T

    def _alignment(self, train: Tensor, test: Tensor) -> float:
        if self.branch is None:
            return float((self._mean(train) * self._mean(test)).sum())
        sides = (each for index in (train, test) for each in (self.q[index], self.branch(self.z[index])))
        return float(hadamard_gram(*sides).mean())


@dataclass(frozen=True)
class Step:
    """What happened to all pairs at steps of one kind.

    `kind` "newton": eta = size |eta_N|, which knows the test samples: a Taylor identity, a test of the code. "relative":
    |eta D|/rms|z| = size, fixed without test samples: a test of the prediction. `sign_accuracy` is the share of pairs
    whose loss moved as predicted, `worst_gap` the largest |ratio - (1 - eta/(2 eta_N) + third order)|.
    """

    kind: str
    size: float
    sign_accuracy: Measurement
    median_ratio: Measurement
    worst_gap: float


@dataclass(frozen=True)
class Interventions:
    """Insertions made from many pairs of M train and K test samples, step by step.

    `misaligned`, `concave`: the shares of pairs with X <= 0 and with negative curvature; `slope_error` the largest
    |r'(0) + X|/|X|, two routes to one number; `newton_size` the median of |eta_N D|/rms|z|, how large a Newton step is.
    """

    steps: tuple[Step, ...]
    misaligned: float
    concave: float
    slope_error: float
    newton_size: float


def intervene(
    model: nn.Module,
    boundary: str,
    data: Iterable[tuple[Any, Any]] | tuple[Any, Any],
    loss: Callable[[Any, Any], Tensor],
    *,
    M: int,
    K: int,
    pairs: int,
    seed: int,
    fractions: Sequence[float] = FRACTIONS,
    steps: Sequence[float] = STEPS,
    reduce: Literal["sum", "flatten"] | tuple[int, ...] = "sum",
    branch: Branch | nn.Module | None = None,
) -> Interventions:
    """Predicted against measured change of the held-out loss, over `pairs` random disjoint subsets of M and K samples.

    `data` must be samples that the network was not fitted to; the rest as in `Site.of`. `fractions` are steps in units
    of |eta_N|, `steps` in units of rms|z|. Both are taken along -D for either sign of X: misaligned pairs are predicted to
    lose. The intervals (95 %: Clopper-Pearson; order statistics for the median) describe the drawing of pairs from this
    pool. The user's model is copied, never touched.

    Raises InputError for what `Site.of` refuses, a pool below M + K samples, fewer than 6 pairs, an exact X = 0, and for
    `fractions` along a straight line, where no Newton step exists. Source: notes on alignment, section 6.

    >>> import torch
    >>> net = torch.nn.Linear(1, 1, dtype=torch.float64, bias=False)        # squared loss: r is a parabola
    >>> x = torch.arange(1.0, 9.0, dtype=torch.float64)[:, None]
    >>> wrapped = torch.nn.Sequential(torch.nn.Identity(), net)
    >>> seen = intervene(wrapped, "0", (x, x * 9), lambda out, y: ((out - y) ** 2).sum(), M=3, K=3, pairs=6, seed=0)
    >>> [round(step.median_ratio.estimate, 9) for step in seen.steps[:3]]
    [0.99, 0.975, 0.96]
    """
    site = Site.of(model, boundary, data, loss, reduce=reduce, branch=branch)
    n = len(site.z)
    if min(M, K) < 1 or n < M + K or pairs < LEAST_PAIRS:
        raise InputError(f"needs M, K >= 1, M + K <= {n} samples, {LEAST_PAIRS} pairs; got M={M}, K={K}, pairs={pairs}")
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(n, generator=generator)[: M + K] for _ in range(pairs)]
    responses = [site.response(each[:M], each[M:]) for each in drawn]
    if not all(r.X for r in responses):
        raise InputError("X is exactly 0 for a pair: there is no change to predict (a zero head, or a silent boundary)")
    if fractions and not all(r.curvature for r in responses):
        # Silently 0 as well for functions with a backward pass that is only once differentiable.
        raise InputError("autograd finds no curvature along an insertion, so no Newton step; leave fractions=()")
    wanted = [("newton", f) for f in fractions] + [("relative", s) for s in steps]
    return Interventions(
        tuple(_step(responses, kind, size, seed) for kind, size in wanted),
        sum(r.X <= 0 for r in responses) / pairs,
        sum(r.concave for r in responses) / pairs,
        max(abs(r.slope + r.X) / abs(r.X) for r in responses),
        float(np.median([abs(r.newton) / r.unit_step for r in responses])),
    )


@dataclass(frozen=True)
class Preservation:
    """The receipt of a change that should leave the function as it was: the largest |after - before| over all outputs, in
    float64, and the largest |before| to read it against. A block whose last matrix is zero changes exactly nothing."""

    max_change: float
    max_output: float

    @property
    def preserved(self) -> bool:
        """max_change < 1e-12."""
        return self.max_change < 1e-12


def preservation(model: nn.Module, after: nn.Module | Branch, x: Any, boundary: str | None = None) -> Preservation:
    """How much `after` changes the function of `model` on inputs x: a whole network, or, with `boundary`, a block that is
    added there, z -> z + after(z). Both are run as float64 copies in the mode they are in.

    Raises InputError for outputs that differ in shape or are not finite: a zero matrix does not silence an infinity.

    >>> import torch
    >>> net, block = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh()), torch.nn.Linear(3, 3)
    >>> _ = [torch.nn.init.zeros_(p) for p in block.parameters()]
    >>> preservation(net, block, torch.ones(4, 2), boundary="0").max_change
    0.0
    """
    before = in_float64(model)
    changed = in_float64(after) if isinstance(after, nn.Module) else after
    with torch.inference_mode(False), torch.no_grad(), untouched(before):
        x = _widened(x, before)
        if boundary is None:
            old, new = call(before, x), call(changed, x)  # type: ignore[arg-type]
        else:
            cut = Cut(before, boundary, lambda output, y: output)
            old, z = cut.forward(x)
            new, _ = cut.forward(x, hold=z + changed(z))
    sides = tensors(old), tensors(new)
    if [t.shape for t in sides[0]] != [t.shape for t in sides[1]]:
        raise InputError(f"outputs differ in shape: {[[tuple(t.shape) for t in side] for side in sides]}")
    if not all(torch.isfinite(t).all() for side in sides for t in side):
        raise InputError("an output is not finite, before or after the change: nothing can be said about it")
    change = max(float((a - b).abs().max()) for a, b in zip(*sides, strict=True))
    return Preservation(change, max(float(t.abs().max()) for t in sides[0]))


def in_float64(model: nn.Module) -> Any:
    """A frozen copy of the model in float64, in the mode it is in; buffers and attributes are copied with it."""
    return deepcopy(model).to(torch.float64).requires_grad_(False)


def _widened(tree: Any, model: nn.Module) -> Any:
    """Copies without history on the model's device, floating-point ones in float64."""
    device = next((t.device for t in [*model.parameters(), *model.buffers()]), None)
    return tree_map_only(
        Tensor, lambda t: t.detach().to(device, torch.float64 if t.is_floating_point() else t.dtype, copy=True), tree
    )


def pooled(data: Any, model: nn.Module) -> tuple[Any, Any]:
    """All batches as one pair (x, y)."""
    batches = [data] if isinstance(data, (tuple, list)) and len(data) == 2 and isinstance(data[1], Tensor) else data
    batches = [_widened(tuple(batch), model) for batch in batches] if isinstance(batches, Iterable) else []
    if not batches or any(len(batch) != 2 for batch in batches):
        raise InputError("data yielded no batch: an empty loader, an iterator used up before, or no pairs (x, y)")
    try:
        return tree_map(lambda *parts: torch.cat(parts) if isinstance(parts[0], Tensor) else parts[0], *batches)
    except (RuntimeError, ValueError) as fault:
        raise InputError("the batches must fit together into one pool: same structure, shapes and lengths") from fault


def _derivatives(risk: Callable[[Tensor], Tensor], device: torch.device) -> tuple[float, ...]:
    """(r, r', r'', r''') at 0, by backward passes on a scalar."""
    with torch.enable_grad():
        eta = torch.zeros((), dtype=torch.float64, device=device, requires_grad=True)
        found = [risk(eta)]
        if found[0].dtype != torch.float64:
            raise InputError(f"the loss is {found[0].dtype} for float64 inputs: the network, or the loss, narrows it")
        try:
            while len(found) < 4:
                value = found[-1]
                # What does not depend on eta any more has no graph: a derivative of 0.
                kept = value.requires_grad
                slope = torch.autograd.grad(value, eta, create_graph=True, allow_unused=True)[0] if kept else None
                found.append(torch.zeros_like(value) if slope is None else slope)
        except RuntimeError as fault:
            raise InputError(f"the network above the boundary has no derivative of order {len(found)}") from fault
    return tuple(float(value.detach()) for value in found)


def _step(responses: Sequence[Response], kind: str, size: float, seed: int) -> Step:
    etas = [size * (abs(r.newton) if kind == "newton" else r.unit_step) for r in responses]
    ratios = np.array([r.ratio(eta) for r, eta in zip(responses, etas, strict=True)])
    gaps = [abs(ratio - r.predicted_ratio(eta)) for ratio, r, eta in zip(ratios, responses, etas, strict=True)]
    pairs, hits = len(ratios), int((ratios > 0).sum())
    p = (hits + 1) / (pairs + 2)
    ends = (1 - clopper_pearson_upper(pairs - hits, pairs, 0.025), clopper_pearson_upper(hits, pairs, 0.025))
    how: Any = {"unit": "pair", "count": pairs, "seed": seed, "note": "of one pool"}
    accuracy = Measurement(hits / pairs, sqrt(p * (1 - p) / pairs), ends, **how)
    outer = max(k for k in range(pairs // 2) if bdtr(k, pairs, 0.5) <= 0.025)
    ends = tuple(float(end) for end in np.sort(ratios)[[outer, pairs - 1 - outer]])
    median = Measurement(float(np.median(ratios)), (ends[1] - ends[0]) / (2 * 1.96), ends, **how)
    return Step(kind, size, accuracy, median, max(gaps))
