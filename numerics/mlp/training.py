"""Level 1: the training of a network of infinite width, one causal sweep over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from theory import InputError

from .problem import Problem
from .site import Coefficients, Sampled, Site, gaussian_points

__all__ = ["Matrices", "Training", "train"]

Array = NDArray[np.float64]
MOST_BYTES = 4 * 2**30


@dataclass(frozen=True)
class Matrices:
    """Level 1 of one hidden matrix, index k = s P + mu: Phi = <phi phi'>, G = nu <g g'>, and the responses
    A = sigma^2 <d phi/d r>, B = nu sigma^2 <d g/d u>. Phi and A have a further P rows for the last time.
    """

    Phi: Array
    G: Array
    A: Array
    B: Array


@dataclass(frozen=True)
class Training:
    """What a network of infinite width does in `problem.steps` updates.

    `losses` and `outputs` (steps + 1, P, C) are measured before each update and after the last; `c` (n,) are the spikes'
    coefficients; `matrices[l-1]` belongs to W^l. With one output g = w phi' and c = eta0 gamma0 (y - f) weight; with
    several the error is part of g, z^L = sum_C (y - f)_C w_C, and c = eta0 gamma0 weight.
    """

    problem: Problem
    losses: Array
    outputs: Array
    c: Array
    matrices: tuple[Matrices, ...]


def train(
    problem: Problem, samples: int = 2**14, seed: np.random.SeedSequence | int = 0, responses: bool = True
) -> Training:
    """Solve level 1 on `samples` points a layer, from one scramble; exactly (no sampling) where phi is linear.

    Every quantity needs only ones already computed, so that a single sweep over time, forward and then backward through
    the layers, is all there is; nothing is iterated. `responses=False` drops A and B, which is wrong and says by how
    much. Error: of the order of samples^-1 for smooth phi, seen by repeating with other seeds.
    Raises InputError where outputs overflow (a rate beyond stability) or the memory would exceed 4 GiB.

    >>> run = train(Problem("linear", gram=1.0, targets=[1.0], gamma0=4, eta0=0.02, steps=1))
    >>> round(float(run.outputs[1, 0, 0]), 12)
    0.06
    """
    sweep = _Sweep(problem, samples, seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(problem.steps + 1):
            sweep.forward(t, responses)
            if t < problem.steps:
                sweep.backward(t, responses)
    return sweep.result()


class _Sweep:
    def __init__(self, problem: Problem, samples: int, seed: np.random.SeedSequence) -> None:
        self.problem = problem
        P, L, T = problem.P, problem.depth, problem.steps
        fields = [P + P * T] + [P * (T + 1) + P * T] * (L - 2) + [problem.outputs + P * (T + 1)]
        self.n, self.rows = P * T, P * (T + 1)
        width = samples
        self.sites: list[Site] = []
        if problem.phi.linear:
            width = max(fields)
            self.sites += [Coefficients(width) for _ in fields]
        else:
            need = 8 * samples * (sum(fields) * 3 + L * (self.rows + self.n))
            if need > MOST_BYTES:
                raise InputError(
                    f"{P} samples, {T} updates and {samples} points need about {need / 2**30:.1f} GiB; "
                    f"the limit is {MOST_BYTES / 2**30:.0f} GiB: ask for fewer samples"
                )
            drivers = (gaussian_points(d, samples, s) for d, s in zip(fields, seed.spawn(L), strict=True))
            self.sites += [Sampled(each) for each in drivers]
        self.phi = [np.zeros((self.rows, width)) for _ in range(L)]
        self.g = [np.zeros((self.n, width)) for _ in range(L)]
        self.slope = [np.zeros((P, width)) for _ in range(L)]
        self.Phi, self.A = ([np.zeros((self.rows, shape)) for _ in range(L)] for shape in (self.rows, self.n))
        self.G, self.B = ([np.zeros((self.n, self.n)) for _ in range(L)] for _ in range(2))
        self.h0 = self.sites[0].draw("h", problem.gram)
        self.w0 = self.sites[-1].draw("w", np.eye(problem.outputs))
        self.c = np.zeros(self.n)
        self.direction = np.ones((self.n, problem.outputs))
        self.w = self.w0
        self.losses = np.zeros(T + 1)
        self.outputs = np.zeros((T + 1, P, problem.outputs))

    def forward(self, t: int, responses: bool) -> None:
        """h and phi of every layer, Phi(t, .) and A(t, .), then outputs and loss."""
        problem, P = self.problem, self.problem.P
        past, now, upto = slice(0, t * P), slice(t * P, (t + 1) * P), slice(0, (t + 1) * P)
        variance = problem.sigma**2
        for layer, site in enumerate(self.sites):
            if layer == 0:
                h = self.h0 + (np.tile(problem.gram, t) * self.c[past]) @ self.g[0][past]
            else:
                kernel = self.Phi[layer - 1][now]
                u = site.draw("u", variance * kernel[:, upto])
                h = u + (self.A[layer - 1][now, past] + self.c[past] * kernel[:, past]) @ self.g[layer][past]
            self.phi[layer][now] = problem.phi.value(h)
            self.slope[layer] = problem.phi.slope(h)
            self.Phi[layer][now, upto] = site.mean(self.phi[layer][now], self.phi[layer][upto])
            self.Phi[layer][past, now] = self.Phi[layer][now, past].T
            if t and layer < problem.depth - 1 and responses:
                self.A[layer][now, past] = variance * site.slope(self.phi[layer][now], "r", np.arange(t * P))
        last = self.sites[-1]
        self.w = self.w0 + (self.c[past, None] * self.direction[past]).T @ self.phi[-1][past]
        self.outputs[t] = last.mean(self.w, self.phi[-1][now]).T / problem.gamma0
        self.losses[t] = problem.loss(self.outputs[t])
        if not np.isfinite(self.losses[t]):
            raise InputError(
                f"training overflows at update {t}: gamma0={problem.gamma0:g}, eta0={problem.eta0:g} is beyond "
                "stability; lower eta0 or ask for an earlier t"
            )

    def backward(self, t: int, responses: bool) -> None:
        """The spikes' coefficients, then g of every layer from the last to the first, G(t, .) and B(t, .)."""
        problem, P = self.problem, self.problem.P
        past, now, upto = slice(0, t * P), slice(t * P, (t + 1) * P), slice(0, (t + 1) * P)
        error = problem.targets - self.outputs[t]
        rate = problem.eta0 * problem.gamma0 * problem.weights(t)
        if problem.outputs == 1:
            self.c[now] = rate * error[:, 0]
        else:
            self.c[now], self.direction[now] = rate, error
        for layer in range(problem.depth - 1, -1, -1):
            site = self.sites[layer]
            if layer == problem.depth - 1:
                z = self.direction[now] @ self.w
            else:
                kernel = self.G[layer + 1][now]
                r = site.draw("r", problem.sigma**2 * kernel[:, upto])
                z = r + self.B[layer + 1][now, upto] @ self.phi[layer][upto]
                z = z + (self.c[past] * kernel[:, past]) @ self.phi[layer][past]
            self.g[layer][now] = z * self.slope[layer]
            if layer:
                self.G[layer][now, upto] = problem.nu * site.mean(self.g[layer][now], self.g[layer][upto])
                self.G[layer][past, now] = self.G[layer][now, past].T
                for k in range(t * P, (t + 1) * P) if responses else ():
                    # At equal time g responds to its own sample's field alone.
                    causes = np.append(np.arange(t * P), k)
                    found = site.slope(self.g[layer][k : k + 1], "u", causes)
                    self.B[layer][k, causes] = problem.nu * problem.sigma**2 * found[0]

    def result(self) -> Training:
        pairs = range(1, self.problem.depth)
        matrices = (Matrices(self.Phi[up - 1], self.G[up], self.A[up - 1], self.B[up]) for up in pairs)
        return Training(self.problem, self.losses, self.outputs, self.c, tuple(matrices))
