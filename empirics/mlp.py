"""Finite multilayer perceptrons in the scaling of `theory.mlp`, trained by autograd, with what the theory predicts recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numerics.mlp import Problem
from theory import InputError

from .measurement import Measurement

__all__ = ["PerceptronRun", "Perceptrons", "on_fresh_bulk", "train_perceptron", "train_perceptrons"]

Array = NDArray[np.float64]
LEVEL = 0.95
DENSE = 300
"""Below this size all singular values are computed; above, the top ones by Lanczos iteration."""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda h: h,
    "tanh": torch.tanh,
    "erf": lambda h: torch.erf(h / sqrt(2)),
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
}


@dataclass(frozen=True)
class PerceptronRun:
    """One network's training; t counts updates done, k = s P + mu the spikes, layer - 1 the index of lists.

    `losses` (steps + 1,) and `outputs` (steps + 1, P, C) are measured before each update and after the last.
    `singular_values[layer-1]` (steps + 1, top) are those of W/sqrt(N_in), largest first. `Phi`, `G` (n, n) are phi.phi'/N_in and
    g.g'/N_in of a matrix's inputs and outputs; `left`, `right` (steps + 1, n) are |cos| of the top singular vectors with
    g_k and phi_k, 0 for spikes yet to come. `initial`, `final` are the matrices W/sqrt(N_in) themselves.
    """

    losses: Array
    outputs: Array
    singular_values: tuple[Array, ...]
    Phi: tuple[Array, ...]
    G: tuple[Array, ...]
    left: tuple[Array, ...]
    right: tuple[Array, ...]
    initial: tuple[Tensor, ...]
    final: tuple[Tensor, ...]


class _Perceptron:
    """f = w.phi(h^L)/(gamma0 N_L), h^(l+1) = W^l phi(h^l)/sqrt(N_l), h^1 = W^0 x/sqrt(D)."""

    def __init__(self, problem: Problem, width: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.problem = problem
        self.widths = [round(width * problem.nu**layer) for layer in range(problem.depth)]
        self.phi = ACTIVATIONS[problem.activation.name]

        def normal(*shape: int, scale: float = 1.0) -> Tensor:
            return (scale * torch.randn(*shape, generator=generator, dtype=torch.float64)).requires_grad_()

        # Any X with X X^T/D = K gives the same networks in law; this one has D = P.
        values, vectors = np.linalg.eigh(problem.gram)
        self.x = torch.from_numpy(vectors * np.sqrt(np.maximum(values, 0)))
        self.first = normal(self.widths[0], problem.P)
        pairs = zip(self.widths[1:], self.widths[:-1], strict=True)
        self.hidden = [normal(rows, columns, scale=problem.sigma) for rows, columns in pairs]
        self.readout = normal(problem.outputs, self.widths[-1])

    def __call__(self) -> tuple[Tensor, list[Tensor]]:
        """(outputs (P, C), the preactivations h^1, ..., h^L, each (P, N_l))."""
        h = [self.x @ self.first.T]
        for matrix, columns in zip(self.hidden, self.widths[:-1], strict=True):
            h.append(self.phi(h[-1]) @ matrix.T / sqrt(columns))
        return self.phi(h[-1]) @ self.readout.T / (self.problem.gamma0 * self.widths[-1]), h

    @property
    def rate(self) -> float:
        """eta0 gamma0^2 N_L, for every weight."""
        return self.problem.eta0 * self.problem.gamma0**2 * self.widths[-1]


def train_perceptron(
    problem: Problem, width: int, seed: int = 0, *, top: int = 2, centred: bool = True
) -> PerceptronRun:
    """Train one network of first width N = `width` (then nu N, nu^2 N, ..., rounded) in float64 by gradient descent.

    Autograd and a plain update, nothing from the theory. `centred` subtracts each output's initial value, which is of
    order 1/(gamma0 sqrt N) and the largest finite-width effect otherwise. `top` singular values are recorded at every t.
    Weights come from `seed` alone; torch's own generator is not touched. Raises InputError for an activation that this
    module does not know, or a width below `top` or the number of samples.

    >>> run = train_perceptron(Problem("linear", gram=1.0, targets=[1.0], gamma0=4, eta0=0.02, steps=2), width=64)
    >>> run.losses.shape, run.singular_values[0].shape, float(run.losses[0])
    ((3,), (3, 2), 0.5)
    """
    if problem.activation.name not in ACTIVATIONS:
        raise InputError(f"networks are built for {', '.join(ACTIVATIONS)}; got {problem.activation.name}")
    network = _Perceptron(problem, width, seed)
    if top < 1 or min(network.widths) <= max(top, problem.P):
        raise InputError(
            f"widths {network.widths} must exceed top={top} >= 1 singular values and the {problem.P} samples; "
            "ask for a larger width"
        )
    recorder = _Recorder(network, top)
    weights = [network.first, *network.hidden, network.readout]
    targets, offset = torch.from_numpy(problem.targets), None
    for t in range(problem.steps + 1):
        outputs, h = network()
        if offset is None:
            offset = outputs.detach() if centred else torch.zeros_like(outputs)
        error = targets - (outputs - offset)
        recorder.after(t, outputs - offset)
        if t == problem.steps:
            break
        recorder.spikes(t, outputs, h, error.detach())
        of_sample = (error**2).sum(1) / 2
        gradients = torch.autograd.grad(of_sample @ torch.from_numpy(problem.weights(t)), weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= network.rate * gradient
    return recorder.result()


class _Recorder:
    def __init__(self, network: _Perceptron, top: int) -> None:
        self.network, self.top = network, top
        problem, matrices = network.problem, network.hidden
        steps, n = problem.steps + 1, problem.steps * problem.P
        self.losses, self.outputs = np.zeros(steps), np.zeros((steps, problem.P, problem.outputs))
        self.values = [np.zeros((steps, top)) for _ in matrices]
        self.left, self.right = ([np.zeros((steps, n)) for _ in matrices] for _ in range(2))
        self.phi = [np.zeros((n, matrix.shape[1])) for matrix in matrices]
        self.g = [np.zeros((n, matrix.shape[0])) for matrix in matrices]
        self.initial = self._matrices()

    def _matrices(self) -> tuple[Tensor, ...]:
        return tuple(matrix.detach() / sqrt(matrix.shape[1]) for matrix in self.network.hidden)

    def after(self, t: int, outputs: Tensor) -> None:
        """Loss, singular values and overlaps after t updates."""
        self.outputs[t] = outputs.detach().numpy()
        self.losses[t] = self.network.problem.loss(self.outputs[t])
        past = slice(0, t * self.network.problem.P)
        for layer, matrix in enumerate(self._matrices()):
            u, self.values[layer][t], v = top_singular(matrix.numpy(), self.top)
            for cosines, vector, spikes in ((self.left, u, self.g), (self.right, v, self.phi)):
                norms = np.linalg.norm(spikes[layer][past], axis=1)
                products = np.abs(spikes[layer][past] @ vector)
                cosines[layer][t, past] = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)

    def spikes(self, t: int, outputs: Tensor, h: list[Tensor], error: Tensor) -> None:
        """phi and g = gamma0 N_L df/dh of every matrix; with several outputs g is that of error.f, as in the theory."""
        network = self.network
        now = slice(t * network.problem.P, (t + 1) * network.problem.P)
        direction = torch.ones_like(error) if network.problem.outputs == 1 else error
        slopes = torch.autograd.grad((direction * outputs).sum(), h[1:], retain_graph=True)
        for layer, slope in enumerate(slopes):
            self.g[layer][now] = network.problem.gamma0 * network.widths[-1] * slope.numpy()
            self.phi[layer][now] = network.phi(h[layer]).detach().numpy()

    def result(self) -> PerceptronRun:
        """The run, kernels formed."""
        kernels = [
            tuple(x @ x.T / phi.shape[1] for x, phi in zip(xs, self.phi, strict=True)) for xs in (self.phi, self.g)
        ]
        parts = (tuple(self.values), *kernels, tuple(self.left), tuple(self.right), self.initial, self._matrices())
        return PerceptronRun(self.losses, self.outputs, *parts)


def top_singular(matrix: Array, top: int) -> tuple[Array, Array, Array]:
    """(left vector of the largest, the `top` largest singular values in falling order, right vector of the largest)."""
    if min(matrix.shape) <= DENSE:
        u, s, vh = np.linalg.svd(matrix, full_matrices=False)
        return u[:, 0], s[:top], vh[0]
    from scipy.sparse.linalg import svds

    # A fixed start makes the Lanczos iteration reproducible.
    start = np.random.default_rng(0).normal(size=min(matrix.shape))
    u, s, vh = svds(matrix, k=top, v0=start, tol=1e-10)
    order = np.argsort(s)[::-1]
    return u[:, order[0]], s[order], vh[order[0]]


def on_fresh_bulk(run: PerceptronRun, layer: int = 1, seed: int = 0) -> float:
    """Top singular value of the trained update on a fresh initial matrix: spikes and bulk made independent.

    The control experiment of the theory: it comes out as the naive answer (`independent=true`), whatever the true one.
    The fresh matrix has the standard deviation of the initial one.
    """
    if not 1 <= layer <= len(run.initial):
        raise InputError(f"there are hidden matrices 1 to {len(run.initial)}; got layer={layer}")
    before, after = run.initial[layer - 1], run.final[layer - 1]
    generator = torch.Generator().manual_seed(seed)
    fresh = torch.randn(*before.shape, generator=generator, dtype=before.dtype) * before.std()
    return float(top_singular((after - before + fresh).numpy(), 1)[1][0])


@dataclass(frozen=True)
class Perceptrons:
    """Several networks of one width. Every quantity is a Measurement over networks: mean, standard error, interval.

    The mean over networks of a loss exceeds the loss of the mean output by the outputs' variance, of order 1/N.
    """

    width: int
    seeds: tuple[int, ...]
    runs: tuple[PerceptronRun, ...]

    def loss(self, t: int) -> Measurement:
        """Training loss after t updates."""
        return self.of(lambda run: run.losses[t])

    def singular_value(self, t: int, layer: int = 1, rank: int = 1) -> Measurement:
        """The rank-th largest singular value of W/sqrt(N_in) after t updates, whether or not it is an outlier."""
        return self.of(lambda run: run.singular_values[layer - 1][t, rank - 1])

    def overlap(self, side: str, t: int, k: int, layer: int = 1) -> Measurement:
        """|cos| of the top singular vector, `side` left with g_k or right with phi_k, after t updates."""
        if side not in ("left", "right"):
            raise InputError(f"side must be left or right; got {side}")
        return self.of(lambda run: getattr(run, side)[layer - 1][t, k])

    def kernel(self, name: str, i: int, j: int, layer: int = 1) -> Measurement:
        """Entry (i, j) of Phi or G, i and j counting spikes."""
        if name not in ("Phi", "G"):
            raise InputError(f"name must be Phi or G; got {name}. Responses cannot be read off one network")
        return self.of(lambda run: getattr(run, name)[layer - 1][i, j])

    def of(self, quantity: Callable[[PerceptronRun], float]) -> Measurement:
        """Any number of a run."""
        from scipy.special import stdtrit

        values = np.array([float(quantity(run)) for run in self.runs])
        count, mean = len(values), float(values.mean())
        error = float(values.std(ddof=1)) / sqrt(count)
        reach = float(stdtrit(count - 1, 0.5 + LEVEL / 2)) * error
        return Measurement(
            mean,
            error,
            (mean - reach, mean + reach),
            LEVEL,
            unit="network",
            count=count,
            seed=self.seeds[0],
            settings={"width": self.width},
        )


def train_perceptrons(
    problem: Problem, width: int, seeds: int | Sequence[int] = 8, *, top: int = 2, centred: bool = True
) -> Perceptrons:
    """Train several networks, seeds 0, 1, ... or the given ones; at least 2, since an error needs them.

    >>> problem = Problem("linear", gram=1.0, targets=[1.0], gamma0=4, eta0=0.02, steps=1)
    >>> networks = train_perceptrons(problem, width=64, seeds=3)
    >>> networks.loss(0).estimate, networks.loss(1).count
    (0.5, 3)
    """
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise InputError(f"at least 2 different seeds are needed for a standard error; got {chosen}")
    runs = (train_perceptron(problem, width, seed, top=top, centred=centred) for seed in chosen)
    return Perceptrons(width, chosen, tuple(runs))
