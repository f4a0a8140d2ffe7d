"""Overlaps of a trained matrix's outlying singular vectors with the spikes that made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Abs, Add, Expr, Symbol, Tuple, expand, factor, solve, sqrt

from ..formula import Derivation, Formula
from ..words import Word
from . import words as w
from .network import Network
from .probe import R_A, U_B, Probe, spectral_probe

__all__ = ["OVERLAPS", "norms"]

Q_A, Q_B = Word("q_a", positive=True), Word("q_b", positive=True)


def norms(probe: Probe, mean: Any, aspect: Expr, variance: Expr) -> tuple[Expr, Expr]:
    """(|a|^2/N_in, |b|^2/N_in) in terms of q_a, q_b themselves and of alpha, beta, p, q.

    a is linear in its Gaussian part u_b, of variance variance <b^2>, and in the rows' vectors; <g u_b> is read off the
    equation for beta, whose part free of G it is.
    """
    size: dict[Symbol, Any] = {}
    sides: Any = (
        (probe.left, U_B, probe.rows, probe.beta, probe.blocks["G"], aspect * variance * Q_B),
        (probe.right, R_A, probe.columns, probe.alpha, probe.blocks["Phi"], variance * Q_A),
    )
    for side, gaussian, vectors, overlaps, kernel, own in sides:
        factor = side.coeff(gaussian)
        weights = [expand(side).coeff(vector) for vector in vectors]
        total = factor**2 * own
        for i, weight in enumerate(weights):
            row = Add(*(kernel[i, j] * weights[j] for j in range(len(vectors))))
            with_gaussian = expand(probe.equations[overlaps[i]] - row) / factor
            total += 2 * factor * weight * with_gaussian + weight * row
        size[gaussian] = total
    return size[U_B], size[R_A]


def _prove(known: Mapping[str, Any]) -> Derivation:
    """One sample, one update: one spike, which responds (B) to the initial matrix."""
    d = Derivation()
    network = Network(steps=1)
    reading = w.read(known, network)
    matrix, spikes = network.matrices[0], network.spikes[0]
    probe = spectral_probe(reading, matrix, spikes)
    spike = spikes[0]
    k, j = probe.rows.index(spike.g), probe.columns.index(spike.phi)
    later = {q: 0 for q, x in zip(probe.q, probe.columns, strict=True) if x != spike.phi}
    variance = known[w.FORWARD.name](matrix)
    left, right = norms(probe, reading.mean, matrix.aspect, variance)
    short = probe.short_names()
    left, right = (each.xreplace(later).xreplace(short) for each in (left, right))
    d.step("the mean square of a, per input neuron", Q_A, left)
    d.step("the mean square of b, per input neuron", Q_B, right)
    (solution,) = solve((Q_A - left, Q_B - right), (Q_A, Q_B), dict=True)
    d.step("the two equations solved", Symbol("(q_a, q_b)"), Tuple(*(factor(solution[q]) for q in (Q_A, Q_B))))
    cos_a = Abs(short[probe.beta[k]]) / sqrt(solution[Q_A] * short[probe.blocks["G"][k, k]])
    cos_b = Abs(short[probe.alpha[j]]) / sqrt(solution[Q_B] * short[probe.blocks["Phi"][j, j]])
    d.step("overlap over the product of the norms", Symbol("(left, right)"), Tuple(cos_a, cos_b))
    return d


def _state() -> Tuple:
    G, Phi = Word("G_kk", "G_{kk}", positive=True), Word("Phi_kk", r"\Phi_{kk}", positive=True)
    alpha, beta = Word("alpha_k", r"\alpha_k"), Word("beta_k", r"\beta_k")
    return Tuple(Abs(beta) / sqrt(Q_A * G), Abs(alpha) / sqrt(Q_B * Phi))


OVERLAPS = Formula(
    id="mlp.overlaps",
    title="overlaps of the top outlier's singular vectors with the spikes",
    symbol="(left, right)_k",
    parameters=(w.T, *w.NETWORK),
    assumptions=w.ASSUMPTIONS,
    conventions=w.CONVENTIONS
    + "; left is |cos| of the left vector (output side) with g_k, right of the right vector with phi_k; alpha, beta from the "
    "eigenvector of MA MB; q_a = m_a^2 (nu sigma^2 q_b + 2 P.B alpha + P.G P), q_b = m_b^2 (sigma^2 q_a + 2 Q.A beta + Q.Phi Q), "
    "P = p + C alpha, Q = q + C beta",
    source=w.SEED,
    state=_state,
    prove=_prove,
    axioms=w.AXIOMS,
    example=w.EXAMPLE,
)
