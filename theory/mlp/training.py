"""Loss and kernels of a wide network during training: level 1 of the theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Function, IndexedBase, Rational, Sum, Symbol, Tuple

from ..formula import Derivation, Formula
from . import words as w
from .dmft import Mean, Reading
from .network import GAMMA0, NU, SIGMA, Network

__all__ = ["KERNELS", "LOSS", "on_the_site"]

MU, P = Symbol("mu", integer=True), Symbol("P", integer=True, positive=True)
Y, FEATURE, READOUT = IndexedBase("y"), IndexedBase("phi"), Symbol("w")


def on_the_site(reading: Reading, expression: Any) -> Expr:
    """The expression with every vector written out in the Gaussian fields, and every response by its definition."""
    body = expression
    while names := body.free_symbols & (reading.fields.keys() | reading.responses.keys()):
        body = body.xreplace({name: reading.fields.get(name, reading.responses.get(name)) for name in names})
    return body


def _prove_loss(known: Mapping[str, Any]) -> Derivation:
    """One sample, one update, two hidden layers: the smallest program in which every axiom acts."""
    d = Derivation()
    network = Network(steps=1)
    reading = w.read(known, network)
    w.record(d, reading)
    output = on_the_site(reading, reading.scalars[network.symbols["f", 0, 1, 0]])
    d.step("the output, in Gaussian fields", network.symbols["f", 0, 1, 0], output)
    error = network.symbols["Delta", 0, 1, 0]
    target = reading.scalars[error] + network.symbols["f", 0, 1, 0]
    d.step("half the square, P = 1", Symbol("L(1)"), (target - output) ** 2 / 2)
    return d


def _loss() -> Expr:
    error = Y[MU] - Mean(READOUT * FEATURE[MU]) / GAMMA0
    return Sum(Rational(1, 2) * error**2, (MU, 1, P)) / P


def _prove_kernels(known: Mapping[str, Any]) -> Derivation:
    """One sample, two updates: the first program in which features respond to the weights; entry (1, 0) of each block."""
    d = Derivation()
    network = Network(steps=2)
    reading = w.read(known, network)
    w.record(d, reading)
    phi = [network.symbols["phi", 1, s, 0] for s in (0, 1)]
    g = [network.symbols["g", 2, s, 0] for s in (0, 1)]
    entries = [
        reading.scalars[network.kernels["Phi", 1, (1, 0), (0, 0)]],
        reading.scalars[network.kernels["G", 2, (1, 0), (0, 0)]],
        reading.responses.get(reading.response.get((phi[1], g[0])), 0),
        reading.responses.get(reading.response.get((g[1], phi[0])), 0),
    ]
    d.step("the blocks at times (1, 0)", Symbol("(Phi, G, A, B)"), Tuple(*entries))
    return d


K, J = Symbol("k", integer=True), Symbol("j", integer=True)


def _kernels() -> Tuple:
    slope_phi, slope_g = Function("dphi/dr")(K, J), Function("dg/du")(K, J)
    phi, g = IndexedBase("phi"), IndexedBase("g")
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
