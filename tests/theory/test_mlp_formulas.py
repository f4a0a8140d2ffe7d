"""The catalogue's statements against the engine's derivations, and every axiom broken."""

from functools import cache

import pytest
from sympy import Abs, Determinant, Piecewise, Rational, Symbol, expand, eye, nan, simplify, solve

from theory.mlp import FORMULAS, Mean, Network, Reading, box, spectral_probe
from theory.mlp.network import NU, SIGMA
from theory.mlp.overlaps import Q_A, Q_B
from theory.mlp.probe import M_A, M_B

BY_ID = {each.id: each for each in FORMULAS}
BROKEN = [(each.id, axiom.name) for each in FORMULAS for axiom in each.axioms]


@cache
def training(**settings):
    network = Network(**settings)
    return network, Reading(network.program)


@cache
def one_spike():
    network, reading = training(steps=1)
    return network, reading, spectral_probe(reading, network.matrices[0], network.spikes[0])


@cache
def derived(id, breaking=None):
    return BY_ID[id].derive(breaking).result


@pytest.mark.parametrize(("id", "axiom"), BROKEN)
def test_a_broken_axiom_is_noticed(id, axiom):
    assert derived(id, axiom) != derived(id)


@pytest.mark.parametrize("id", ["mlp.outliers", "mlp.lower_outliers"])
def test_the_stated_outliers_are_the_derived_ones(id):
    characteristic, place = BY_ID[id].statement
    determinant = characteristic.lhs
    assert isinstance(determinant, Determinant)
    network, reading = training(steps=2)
    probe = spectral_probe(reading, network.matrices[0], network.spikes[0])
    short = probe.short_names()
    MA, MB = box(*(probe.blocks[name][:2, :2].xreplace(short) for name in ("A", "B", "Phi", "G", "C")))
    inside = determinant.arg
    named = {str(each): half for each, half in (("MA", MA), ("MB", MB))}
    symbol = next(each for each in inside.free_symbols if str(each) == "Lambda")
    explicit = (symbol * eye(4) - named["MA"] * named["MB"]).det()
    got, found = derived(id)
    assert expand(explicit - got.lhs) == 0
    assert isinstance(found, Piecewise)
    seen = 0
    for point in ({NU: 2, SIGMA: Rational(1, 2)}, {NU: 9, SIGMA: 1}, {NU: Rational(1, 3), SIGMA: 2}):
        for value in (-6.77, -3.9, -2.4, -1.9, -0.4, 0.3, 0.36, 2.9, 9.5):
            at = point | {symbol: Rational(str(value))}
            one, other = place.subs(at), found.subs(at)
            assert (one is nan) == (other is nan)
            assert one is nan or simplify(one - other) == 0
            seen += one is not nan
    assert seen >= 3


def test_the_stated_escape_is_the_derived_one():
    assert simplify(BY_ID["mlp.escape_time"].statement - derived("mlp.escape_time")) == 0


def test_the_stated_loss_is_the_derived_one_for_one_sample():
    network, reading = training(steps=1)
    statement = BY_ID["mlp.loss"].statement.subs(Symbol("P", integer=True, positive=True), 1).doit()
    w, feature = network.symbols["w", 0, 1, 0], network.symbols["phi", 2, 1, 0]
    (mean,) = statement.atoms(Mean)
    loss, field, back, *responses = derived("mlp.loss")
    target = next(each for each in statement.free_symbols if str(each) == "y[1]")
    y = next(each for each in loss.free_symbols if each.name == "y_1")
    assert simplify(statement.xreplace({mean: Mean(w * feature), target: y}) - loss) == 0
    # What enters it, by hand: h^2(1) = u + (A + c Phi) g(0) and xi^1(0) = r + B phi(0).
    s, r, u = (
        network.symbols,
        reading.gaussian[network.symbols["xi", 1, 0, 0]],
        reading.gaussian[network.symbols["chi", 2, 1, 0]],
    )
    A, B = reading.response[s["phi", 1, 1, 0], s["g", 2, 0, 0]], reading.response[s["g", 2, 0, 0], s["phi", 1, 0, 0]]
    kernel = network.kernels["Phi", 1, (1, 0), (0, 0)]
    assert expand(field.rhs - u - (A + s["c", 0, 0, 0] * kernel) * s["g", 2, 0, 0]) == 0
    assert expand(back.rhs - r - B * s["phi", 1, 0, 0]) == 0
    assert {each.lhs for each in responses} == {A, B}


def test_the_stated_kernels_are_the_derived_ones():
    Phi, G, A, B = derived("mlp.kernels")
    stated = BY_ID["mlp.kernels"].statement
    assert [each.as_independent(Mean)[0] for each in stated] == [1, NU, SIGMA**2, NU * SIGMA**2]
    assert [Phi.as_independent(Mean)[0], G.as_independent(Mean)[0]] == [1, NU]
    network, reading = training(steps=2)
    phi1, g0 = network.symbols["phi", 1, 1, 0], network.symbols["g", 2, 0, 0]
    slope = reading.expand(reading.derivative(phi1, reading.gaussian[network.symbols["xi", 1, 0, 0]]))
    assert expand(A - SIGMA**2 * reading.mean(slope)) == 0
    g1, u0 = network.symbols["g", 2, 1, 0], reading.gaussian[network.symbols["chi", 2, 0, 0]]
    assert expand(B - NU * SIGMA**2 * reading.mean(reading.expand(reading.derivative(g1, u0)))) == 0
    assert g0 != g1


def test_the_stated_overlaps_are_the_derived_ones_with_the_norms_of_the_notes():
    probe = one_spike()[-1]
    short = probe.short_names()
    A, B, Phi, G, C = (probe.blocks[name][:1, :1][0, 0] for name in ("A", "B", "Phi", "G", "C"))
    assert A == 0
    a, b, p, q = (short[family[0]] for family in (probe.alpha, probe.beta, probe.p, probe.q))
    B, Phi, G, C = (short[each] for each in (B, Phi, G, C))
    P, Q = p + C * a, q + C * b
    q_a = M_A**2 * (NU * SIGMA**2 * Q_B + 2 * P * B * a + P * G * P)
    q_b = M_B**2 * (SIGMA**2 * Q_A + 2 * Q * A * b + Q * Phi * Q)
    (solution,) = solve((Q_A - q_a, Q_B - q_b), (Q_A, Q_B), dict=True)
    left, right = derived("mlp.overlaps")
    assert simplify(left**2 - Abs(b) ** 2 / (solution[Q_A] * G)) == 0
    assert simplify(right**2 - Abs(a) ** 2 / (solution[Q_B] * Phi)) == 0
    assert [str(each) for each in BY_ID["mlp.overlaps"].statement] == [
        "Abs(beta_k)/(sqrt(G_kk)*sqrt(q_a))",
        "Abs(alpha_k)/(sqrt(Phi_kk)*sqrt(q_b))",
    ]
