"""The training of a multilayer perceptron as a program.

f = w.phi(h^L)/(gamma0 N_L), h^(l+1) = W^l phi(h^l)/sqrt(N_l), h^1 = W^0 x/sqrt(D); squared loss (1/P) sum (y - f)^2/2;
gradient descent at rate eta0 gamma0^2 N_L on every weight. With g^L = w phi'(h^L), z^l = W^l^T g^(l+1)/sqrt(N_l),
g^l = z^l phi'(h^l) and c_mu(s) = eta0 gamma0 (y - f)_mu(s)/P, the update of W^l/sqrt(N_l) is exactly
(1/N_l) sum c g^(l+1) phi^l^T, and likewise below and above: weights never appear except in their initial values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sympy import Add, Expr, Function, Symbol, diff

from ..formula import InputError
from ..program import Matrix, Program, Space
from ..words import Word

__all__ = ["ETA0", "GAMMA0", "NU", "SIGMA", "Network", "Spike", "phi"]

GAMMA0 = Word("gamma0", r"\gamma_0", positive=True)
ETA0 = Word("eta0", r"\eta_0", positive=True)
NU = Word("nu", r"\nu", positive=True)
SIGMA = Word("sigma", r"\sigma", positive=True)


class phi(Function):
    """An activation left open. Its derivatives are dphi, d2phi, d3phi."""

    nargs = 1
    order = 0

    def fdiff(self, argindex: int = 1) -> Any:
        """phi'(h)."""
        return _DERIVATIVES[self.order](self.args[0])

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        primes = r"^{" + r"\prime" * self.order + "}" if self.order else ""
        body = rf"\phi{primes}({printer._print(self.args[0])})"
        return body if exp is None else rf"{body}^{{{exp}}}"


class dphi(phi):
    """phi'."""

    order = 1


class d2phi(phi):
    """phi''."""

    order = 2


class d3phi(phi):
    """phi'''."""

    order = 3


_DERIVATIVES: tuple[type[phi], ...] = (dphi, d2phi, d3phi)


@dataclass(frozen=True)
class Spike:
    """One term c g phi^T / N_in of a trained matrix: a scalar, a vector of its rows, a vector of its columns."""

    c: Expr
    g: Symbol
    phi: Symbol


@dataclass
class Network:
    """The program of `steps` updates of a network of `depth` hidden layers on `samples` samples.

    `matrices[l-1]` is W^l, widths N, nu N, nu^2 N, ...; `spikes[l-1]` are its updates, index k = s P + mu. Gram matrix
    and targets are symbols K_mu_nu, y_mu unless given; the activation is open unless given. Symbols of the program are
    found under `symbols["h", l, s, mu]` and likewise `phi`, `g`, `z`, `chi`, `xi` (with l), `f`, `Delta`, `c` (l = 0).

    >>> network = Network(steps=1)
    >>> network.program.line(network.symbols["h", 2, 1, 0]).expression
    Phi1[(1,0),(0,0)]*c(0)*g2(0) + chi2(1)
    """

    depth: int = 2
    steps: int = 1
    samples: int = 1
    activation: Callable[[Any], Any] = phi
    gram: Callable[[int, int], Any] | None = None
    targets: Callable[[int], Any] | None = None
    program: Program = field(default_factory=Program, init=False)
    symbols: dict[tuple[str, int, int, int], Symbol] = field(default_factory=dict, init=False)
    kernels: dict[tuple[str, int, tuple[int, int], tuple[int, int]], Symbol] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.depth < 2 or self.steps < 0 or self.samples < 1:
            raise InputError(
                f"a network needs depth >= 2, steps >= 0, samples >= 1; got {self.depth}, {self.steps}, {self.samples}"
            )
        self.spaces = [Space(f"layer{layer}", NU ** (layer - 1)) for layer in range(1, self.depth + 1)]
        self.matrices = [
            Matrix(f"W{layer}", self.spaces[layer], self.spaces[layer - 1], SIGMA**2) for layer in range(1, self.depth)
        ]
        self._initialise()
        for s in range(self.steps + 1):
            self._forward(s)
            if s < self.steps:
                self._backward(s)

    @property
    def spikes(self) -> list[list[Spike]]:
        """Per hidden matrix, its updates in the order of time."""
        index = [(s, mu) for s in range(self.steps) for mu in range(self.samples)]
        return [
            [Spike(self.symbols["c", 0, *k], self.symbols["g", up, *k], self.symbols["phi", up - 1, *k]) for k in index]
            for up in range(2, self.depth + 1)
        ]

    def _name(self, letter: str, layer: int, s: int, mu: int) -> tuple[str, str]:
        upper = f"^{{{layer}}}" if layer else ""
        lower = f"_{{{mu + 1}}}" if self.samples > 1 else ""
        text = f"{letter}{layer or ''}" + (f"_{mu + 1}" if self.samples > 1 else "") + f"({s})"
        return text, rf"{_LATEX.get(letter, letter)}{upper}{lower}({s})"

    def _point(self, letter: str, layer: int, s: int, mu: int, expression: Any) -> Symbol:
        name, latex = self._name(letter, layer, s, mu)
        if letter == "w":  # one vector for all samples
            name = latex = f"w({s})"
        symbol = self.program.point(name, expression, latex)
        self.symbols[letter, layer, s, mu] = symbol
        return symbol

    def _scalar(self, letter: str, s: int, mu: int, expression: Any) -> Symbol:
        name, latex = self._name(letter, 0, s, mu)
        self.symbols[letter, 0, s, mu] = self.program.scalar(name, expression, latex)
        return self.symbols[letter, 0, s, mu]

    def _gram(self, mu: int, nu: int) -> Any:
        low, high = sorted((mu, nu))
        if self.gram is not None:
            return self.gram(low, high)
        return Word(f"K_{low + 1}{high + 1}", f"K_{{{low + 1}{high + 1}}}")

    def _initialise(self) -> None:
        for mu in range(self.samples):
            earlier = {self.symbols["h", 1, 0, nu]: self._gram(nu, mu) for nu in range(mu)}
            name, latex = self._name("h", 1, 0, mu)
            self.symbols["h", 1, 0, mu] = self.program.input(
                name, self.spaces[0], self._gram(mu, mu), covariance=earlier, latex=latex
            )
        self.symbols["w", 0, 0, 0] = self.program.input("w(0)", self.spaces[-1])

    def _before(self, s: int) -> list[tuple[int, int]]:
        return [(r, nu) for r in range(s) for nu in range(self.samples)]

    def _forward(self, s: int) -> None:
        symbols, program = self.symbols, self.program
        for layer in range(1, self.depth + 1):
            for mu in range(self.samples):
                if layer == 1:
                    h = symbols["h", 1, 0, mu]
                    moved = [symbols["c", 0, *k] * self._gram(mu, k[1]) * symbols["g", 1, *k] for k in self._before(s)]
                else:
                    name, latex = self._name("chi", layer, s, mu)
                    h = program.product(name, self.matrices[layer - 2], symbols["phi", layer - 1, s, mu], latex=latex)
                    symbols["chi", layer, s, mu] = h
                    moved = [
                        symbols["c", 0, *k] * self.kernels["Phi", layer - 1, (s, mu), k] * symbols["g", layer, *k]
                        for k in self._before(s)
                    ]
                if layer > 1 or s > 0:
                    h = self._point("h", layer, s, mu, Add(h, *moved))
                self._point("phi", layer, s, mu, self.activation(h))
            if layer < self.depth:
                self._kernel("Phi", "phi", layer, s, 1)
        w = symbols["w", 0, 0, 0]
        if s > 0:
            grown = [symbols["c", 0, *k] * symbols["phi", self.depth, *k] for k in self._before(s)]
            w = self._point("w", 0, s, 0, Add(w, *grown))
        for mu in range(self.samples):
            name, latex = self._name("f", 0, s, mu)
            f = program.average(name, w * symbols["phi", self.depth, s, mu] / GAMMA0, latex)
            target = self.targets(mu) if self.targets else Word(f"y_{mu + 1}", f"y_{{{mu + 1}}}")
            symbols["f", 0, s, mu] = f
            error = self._scalar("Delta", s, mu, target - f)
            self._scalar("c", s, mu, ETA0 * GAMMA0 * error / self.samples)

    def _backward(self, s: int) -> None:
        symbols = self.symbols
        for layer in range(self.depth, 0, -1):
            for mu in range(self.samples):
                if layer == self.depth:
                    z = symbols["w", 0, s, 0]
                else:
                    name, latex = self._name("xi", layer, s, mu)
                    matrix, argument = self.matrices[layer - 1], symbols["g", layer + 1, s, mu]
                    xi = self.program.product(name, matrix, argument, transposed=True, latex=latex)
                    symbols["xi", layer, s, mu] = xi
                    moved = [
                        symbols["c", 0, *k] * self.kernels["G", layer + 1, (s, mu), k] * symbols["phi", layer, *k]
                        for k in self._before(s)
                    ]
                    z = self._point("z", layer, s, mu, Add(xi, *moved))
                h = symbols["h", layer, s, mu]
                self._point("g", layer, s, mu, z * diff(self.activation(h), h))
            if layer > 1:
                # G is divided by the number of inputs of its matrix, not by that of its own neurons.
                self._kernel("G", "g", layer, s, self.matrices[layer - 2].aspect)

    def _kernel(self, letter: str, of: str, layer: int, s: int, factor: Any) -> None:
        for mu in range(self.samples):
            for k in [*self._before(s), *((s, nu) for nu in range(mu + 1))]:
                label = f"{letter}{layer}[({s},{mu}),({k[0]},{k[1]})]"
                latex = rf"{_LATEX[letter]}^{{{layer}}}_{{{s}{_sample(mu, self)},{k[0]}{_sample(k[1], self)}}}"
                product = factor * self.symbols[of, layer, s, mu] * self.symbols[of, layer, *k]
                symbol = self.program.average(label, product, latex)
                self.kernels[letter, layer, (s, mu), k] = self.kernels[letter, layer, k, (s, mu)] = symbol


_LATEX = {
    "phi": r"\varphi",
    "chi": r"\chi",
    "xi": r"\xi",
    "Delta": r"\Delta",
    "Phi": r"\Phi",
    "G": "G",
}


def _sample(mu: int, network: Network) -> str:
    return f"|{mu + 1}" if network.samples > 1 else ""
