"""Loss and kernels of a wide network during training: level 1 of the theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Eq, Expr, Function, IndexedBase, Rational, Sum, Symbol, Tuple

from ..formula import Derivation, Formula
from . import words as w
from .dmft import Mean
from .network import GAMMA0, NU, SIGMA, Network

__all__ = ["KERNELS", "LOSS"]

MU, P = Symbol("mu", integer=True), Symbol("P", integer=True, positive=True)
Y: Any = IndexedBase("y")
FEATURE: Any = IndexedBase("phi")
GRADIENT: Any = IndexedBase("g")
READOUT = Symbol("w")


def _prove_loss(known: Mapping[str, Any]) -> Derivation:
    """One sample, one update, two hidden layers: the smallest program in which every axiom acts."""
    d = Derivation()
    network = Network(steps=1)
    reading, s = w.read(known, network), network.symbols
    w.record(d, reading)
    output = reading.scalars[s["f", 0, 1, 0]]
    target = reading.scalars[s["Delta", 0, 1, 0]] + s["f", 0, 1, 0]
    h, u, r = s["h", 2, 1, 0], s["chi", 2, 1, 0], s["xi", 1, 0, 0]
    # What the output is made of: the last field, the response in it, and the response in that.
    parts = [Eq(h, reading.fields[h].xreplace({u: reading.fields[u]})), Eq(r, reading.fields[r])]
    parts += [Eq(name, value) for name, value in reading.responses.items()]
    d.step("half the square, P = 1, and what enters it", Symbol("L(1)"), Tuple((target - output) ** 2 / 2, *parts))
    return d


def _loss() -> Expr:
    error = Y[MU] - Mean(READOUT * FEATURE[MU]) / GAMMA0
    return Sum(Rational(1, 2) * error**2, (MU, 1, P)) / P


def _prove_kernels(known: Mapping[str, Any]) -> Derivation:
    """One sample, two updates: the first program in which features respond to the weights; entry (1, 0) of each block."""
    d = Derivation()
    network = Network(steps=2)
    reading = w.read(known, network)
    w.record(d, reading, until=network.symbols["xi", 1, 1, 0])
    phi = [network.symbols["phi", 1, s, 0] for s in (0, 1)]
    g = [network.symbols["g", 2, s, 0] for s in (0, 1)]
    pairs = ((phi[1], g[0]), (g[1], phi[0]))
    entries = [
        reading.scalars[network.kernels["Phi", 1, (1, 0), (0, 0)]],
        reading.scalars[network.kernels["G", 2, (1, 0), (0, 0)]],
        *(reading.responses[reading.response[k]] if k in reading.response else 0 for k in pairs),
    ]
    d.step("the blocks at times (1, 0)", Symbol("(Phi, G, A, B)"), Tuple(*entries))
    return d


K, J = Symbol("k", integer=True), Symbol("j", integer=True)


def _kernels() -> Tuple:
    slope_phi, slope_g = Function("dphi/dr")(K, J), Function("dg/du")(K, J)
    phi, g = FEATURE, GRADIENT
    return Tuple(
        Mean(phi[K] * phi[J]), NU * Mean(g[K] * g[J]), SIGMA**2 * Mean(slope_phi), NU * SIGMA**2 * Mean(slope_g)
    )


LOSS = Formula(
    id="mlp.loss",
    title="training loss of a wide multilayer perceptron",
    symbol="L(t)",
    parameters=(w.T, *w.NETWORK),
    assumptions=w.ASSUMPTIONS,
    conventions=w.CONVENTIONS,
    source=w.SEED,
    state=_loss,
    prove=_prove_loss,
    axioms=(w.FORWARD, w.BACKWARD, w.DEPENDENCE),
    example=w.EXAMPLE,
)
KERNELS = Formula(
    id="mlp.kernels",
    title="correlations Phi, G and responses A, B of one hidden matrix",
    symbol="(Phi, G, A, B)_kj",
    parameters=(w.T, *w.NETWORK),
    assumptions=w.ASSUMPTIONS,
    conventions=w.CONVENTIONS + "; phi on the matrix's input side, g on its output side",
    source=w.SEED,
    state=_kernels,
    prove=_prove_kernels,
    axioms=(w.FORWARD, w.BACKWARD, w.DEPENDENCE),
    example=w.EXAMPLE | {"t": "2"},
)
