"""The engine's equations against hand derivations: level 1, the box, the special cases, and every axiom broken."""

from functools import cache

import pytest
from sympy import (
    Add,
    Expr,
    Matrix,
    Mul,
    Rational,
    Symbol,
    diag,
    expand,
    eye,
    factor,
    simplify,
    solve,
    sqrt,
    symbols,
    zeros,
)

from theory import InputError
from theory.mlp import Mean, Network, Reading, Spike, box, spectral_probe
from theory.mlp.network import ETA0, GAMMA0, NU, SIGMA
from theory.mlp.network import d2phi as phi_second
from theory.mlp.network import dphi as phi_prime
from theory.mlp.outliers import location, threshold
from theory.mlp.overlaps import Q_A, Q_B, norms
from theory.mlp.probe import M_A, M_B
from theory.program import Matrix as GaussianMatrix
from theory.program import Program, Space

Lambda = Symbol("Lambda", real=True)


@cache
def training(**settings):
    network = Network(**settings)
    return network, Reading(network.program)


def response(reading, vector, other):
    return reading.responses[reading.response[vector, other]]


# ---------------------------------------------------------------------------------------------------- level 1


def test_the_responses_of_two_updates_are_those_derived_by_hand():
    """P = 1, L = 2, K = 1; p = phi^1, g = g^2, H = h^2, u the Gaussian part of H."""
    network, reading = training(steps=2, gram=lambda mu, nu: 1)
    s = network.symbols
    h, H, p, g = (
        {t: s[letter, layer, t, 0] for t in (0, 1)} for letter, layer in (("h", 1), ("h", 2), ("phi", 1), ("g", 2))
    )
    w, c0 = {t: s["w", 0, t, 0] for t in (0, 1)}, s["c", 0, 0, 0]
    A10 = reading.response[p[1], g[0]]
    Phi10 = network.kernels["Phi", 1, (1, 0), (0, 0)]
    second = {t: phi_second(H[t]) for t in (0, 1)}
    by_hand = {
        (g[0], p[0]): NU * SIGMA**2 * Mean(w[0] * second[0]),
        (p[1], g[0]): SIGMA**2 * c0 * Mean(phi_prime(h[0]) * phi_prime(h[1])),
        (g[1], p[1]): NU * SIGMA**2 * Mean(w[1] * second[1]),
        (g[1], p[0]): NU
        * SIGMA**2
        * (
            (A10 + c0 * Phi10) * Mean(w[1] * second[1] * w[0] * second[0])
            + c0 * Mean(phi_prime(H[0]) * phi_prime(H[1]))
        ),
    }
    assert {pair for pair in reading.response if pair[0] in (g[0], p[1], g[1])} == set(by_hand)
    for pair, expected in by_hand.items():
        assert expand(response(reading, *pair) - expected) == 0


def test_covariances_carry_the_ratio_backward_only():
    network, reading = training(steps=1)
    s = network.symbols
    u, r = reading.gaussian[s["chi", 2, 0, 0]], reading.gaussian[s["xi", 1, 0, 0]]
    assert reading.covariance[u, u] == SIGMA**2 * network.kernels["Phi", 1, (0, 0), (0, 0)]
    assert reading.covariance[r, r] == SIGMA**2 * network.kernels["G", 2, (0, 0), (0, 0)]
    assert reading.scalars[network.kernels["G", 2, (0, 0), (0, 0)]] == NU * Mean(s["g", 2, 0, 0] ** 2)
    assert (u, r) not in reading.covariance
    assert (r, u) not in reading.covariance


@pytest.mark.parametrize(("depth", "steps", "samples"), [(2, 3, 1), (3, 2, 2)])
def test_responses_are_causal(depth, steps, samples):
    """phi(t) responds to g(s < t); g_mu(t) to phi(s < t), and at equal time to its own sample alone."""
    network, reading = training(depth=depth, steps=steps, samples=samples)
    place = {symbol: key for key, symbol in network.symbols.items()}
    assert reading.response
    for vector, other in reading.response:
        (letter, _, t, mu), (_, _, s, nu) = place[vector], place[other]
        assert s < t or (letter == "g" and s == t and mu == nu), (vector, other)


def test_depth_three_has_two_matrices_that_share_no_field():
    network, reading = training(depth=3, steps=2)
    first, second = network.matrices
    place = {symbol: key for key, symbol in network.symbols.items()}
    for vector, other in reading.response:
        (letter, layer, *_), (_, near, *_) = place[vector], place[other]
        assert near == (layer + 1 if letter == "phi" else layer - 1)
    assert len(reading.products(first, False)) == len(reading.products(second, False)) == 3


@pytest.mark.parametrize("wrong", [{"depth": 1}, {"steps": -1}, {"samples": 0}])
def test_a_network_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match="depth >= 2"):
        Network(**wrong)


def test_every_equation_prints():
    _, reading = training(steps=2)
    rows = reading.latex().split("\n")
    assert len(rows) == len(list(reading.equations()))
    assert all(row.count("{") == row.count("}") and r"\text{" in row for row in rows)
    assert any(r"\phi^{\prime\prime}" in row for row in rows)


# ---------------------------------------------------------------------------------------------------- the box


@pytest.mark.parametrize(
    ("depth", "steps", "samples", "layer"),
    [(2, 1, 1, 1), (2, 2, 1, 1), (2, 3, 1, 1), (2, 2, 2, 1), (3, 2, 1, 1), (3, 2, 1, 2)],
)
def test_the_probe_leads_to_the_box(depth, steps, samples, layer):
    network, reading = training(depth=depth, steps=steps, samples=samples)
    probe = spectral_probe(reading, network.matrices[layer - 1], network.spikes[layer - 1])
    n = steps * samples
    blocks = [probe.blocks[name][:n, :n] for name in ("A", "B", "Phi", "G", "C")]
    assert blocks[2].is_symmetric()
    assert blocks[3].is_symmetric()
    assert blocks[4].is_diagonal()
    for derived, stated in zip(probe.halves(n), box(*blocks), strict=True):
        assert (derived - stated).applyfunc(expand) == zeros(2 * n)
    # Leaving out what was computed after the last spike is justified: it has no weight in the singular vector.
    assert [probe.equations[q] for q in probe.q[n:]] == [0] * (len(probe.columns) - n)


@cache
def one_spike():
    """The probe of one update, cut down to its spike."""
    network, reading = training(steps=1)
    return network, reading, spectral_probe(reading, network.matrices[0], network.spikes[0])


def test_the_homogeneous_system_is_singular_where_lambda_is_an_eigenvalue():
    _, _, probe = one_spike()
    keep = [
        i
        for i, x in enumerate([*probe.alpha, *probe.p, *probe.beta, *probe.q])
        if x not in (probe.alpha[1], probe.q[1])
    ]
    system = probe.system().extract(keep, keep)
    MA, MB = probe.halves(1)
    assert expand(system.det() - (eye(2) - M_A * M_B * MA * MB).det()) == 0


@pytest.mark.parametrize("nu", [1, 2])
def test_both_singular_vectors_have_one_norm(nu):
    """z a.a = a.M b = z b.b: q_a = q_b on a solution of the equations, whatever B, Phi, G, C."""
    network, reading, probe = one_spike()
    point = {NU: nu, SIGMA: Rational(1, 2)}
    for name, value in {"B": Rational(2, 7), "Phi": Rational(3, 5), "G": Rational(9, 4), "C": Rational(5, 3)}.items():
        entry = probe.blocks[name][0, 0]
        point[entry] = value
    MA, MB = (half.subs(point) for half in probe.halves(1))
    squared = MA * MB
    root = max(squared.eigenvals(), key=lambda each: each.evalf(30))
    z = sqrt(location(root).subs(point))
    m_a, m_b = (1 + SIGMA**2 / root).subs(point) / z, (1 + NU * SIGMA**2 / root).subs(point) / z
    alpha, P = squared[0, 1], root - squared[0, 0]
    beta, Q = m_a * MB * Matrix([alpha, P])
    C = probe.blocks["C"][0, 0].subs(point)
    solution = {M_A: m_a, M_B: m_b, probe.alpha[0]: alpha, probe.beta[0]: beta}
    solution |= {probe.p[0]: P - C * alpha, probe.q[0]: Q - C * beta, probe.alpha[1]: 0, probe.q[1]: 0}
    matrix = network.matrices[0]
    sizes = norms(probe, reading.mean, matrix.aspect, matrix.variance)
    left, right = (each.subs(point).subs(solution) for each in sizes)
    (found,) = solve((Q_A - left.evalf(40), Q_B - right.evalf(40)), (Q_A, Q_B), dict=True)
    assert abs(found[Q_A] - found[Q_B]) < 1e-25 * abs(found[Q_A])
    assert found[Q_A] > 0


# ---------------------------------------------------------------------------------------------- special cases 3.1


def test_an_independent_spike_is_the_classical_one():
    c, P, Q, theta = symbols("c Phi G theta", positive=True)
    none = zeros(1)
    MA, MB = box(none, none, Matrix([[P]]), Matrix([[Q]]), Matrix([[c]]))
    assert set((MA * MB).eigenvals()) == {0, c**2 * P * Q}
    square = location(theta**2)
    assert simplify(square.subs({SIGMA: 1, NU: 1}) - (theta + 1 / theta) ** 2) == 0
    assert simplify(square.subs(SIGMA, 1) - (theta**2 + 1) * (theta**2 + NU) / theta**2) == 0
    assert threshold().subs(SIGMA, 1) ** 2 == NU  # theta^4 > nu
    edge = location(threshold())
    assert simplify(edge - (SIGMA * (1 + sqrt(NU))) ** 2) == 0
    assert simplify(location(-threshold()) - (SIGMA * (1 - sqrt(NU))) ** 2) == 0


def test_a_multiplicative_spike_is_a_spiked_covariance():
    """g = W x with x fixed: M = W (1 + c x x'/N), ell = (1 + c)^2, straight from the engine."""
    program, rows, columns = Program(), Space("out", NU), Space("in")
    W = GaussianMatrix("W", rows, columns)
    x = program.input("x", columns)
    y = program.product("y", W, x)
    program.average("one", x**2)
    c = Symbol("c", positive=True)
    reading = Reading(program)
    probe = spectral_probe(reading, W, [Spike(c, y, x)])
    assert probe.blocks["A"] == zeros(1)
    B = probe.blocks["B"][0, 0]
    assert reading.responses[B] == NU
    # <x^2> = 1 fixes <y^2> = 1, and G = nu <y^2>.
    unit = {Mean(y**2): 1, program.lines[-1].symbol: 1, B: NU}
    MA, MB = (half.xreplace(unit) for half in probe.halves(1))
    ell = (1 + c) ** 2
    assert {expand(value) for value in (MA * MB).eigenvals()} == {0, expand(NU * (ell - 1))}
    square = location(NU * (ell - 1)).subs(SIGMA, 1)
    assert simplify(square - ell * (NU * (ell - 1) + 1) / (ell - 1)) == 0
    for nu, value in ((Rational(1, 2), 2.02240), (1, 2.64009), (2, 3.56792)):
        assert sqrt(square.subs({NU: nu, c: Rational(7, 5)})).evalf() == pytest.approx(value, abs=5e-6)
    low = location(NU * (ell - 1)).subs(SIGMA, 1).subs({NU: 4, c: -Rational(1, 2)})
    assert sqrt(low).evalf() == pytest.approx(0.8165, abs=5e-5)


class Linear:
    """A linear network's averages, by expanding every field in its Gaussian drivers: nothing is left open."""

    def __init__(self, network):
        self.reading = Reading(network.program)
        self.values: dict[Symbol, Expr] = {}
        self.vectors: dict[Symbol, Expr] = {}
        self.covariance: dict[frozenset, Expr] = {}
        for what, left, right in self.reading.equations():
            if what == "covariance":
                product = left.args[0]
                pair = [f.args[0] if f.is_Pow else f for f in Mul.make_args(product)]
                self.covariance[frozenset(pair)] = self.number(right)
            elif what == "field":
                self.vectors[left] = expand(right.xreplace(self.vectors).xreplace(self.values))
            else:
                self.values[left] = self.number(right)

    def number(self, expression):
        means = {mean: self.mean(mean.args[0]) for mean in expression.atoms(Mean)}
        return factor(expression.xreplace(means).xreplace(self.values))

    def mean(self, product):
        total = 0
        drivers = set().union(*self.covariance) if self.covariance else set()
        for term in Add.make_args(expand(product.xreplace(self.vectors).xreplace(self.values))):
            fields = [f for f in Mul.make_args(term) for _ in range(2 if f.is_Pow and f.base in drivers else 1)]
            fields = [f.base if f.is_Pow else f for f in fields if (f.base if f.is_Pow else f) in drivers]
            assert len(fields) in (0, 2)
            rest = term / Mul(*fields)
            total += rest * (self.covariance.get(frozenset(fields), 0) if fields else 1)
        return factor(total)


@cache
def linear(steps):
    y = Symbol("y", positive=True)
    network = Network(steps=steps, activation=lambda h: h, gram=lambda mu, nu: 1, targets=lambda mu: y)
    return network, Linear(network), y


UNIT = {NU: 1, SIGMA: 1}


def test_a_linear_network_after_one_update():
    network, solved, y = linear(2)
    s, k = network.symbols, network.kernels
    c0 = ETA0 * GAMMA0 * y
    at = {name: solved.values[symbol].subs(UNIT) for name, symbol in (("c0", s["c", 0, 0, 0]), ("f1", s["f", 0, 1, 0]))}
    assert expand(at["c0"] - c0) == 0
    assert expand(at["f1"] - 3 * ETA0 * y) == 0  # each of the three layers adds eta0 y
    times = (((0, 0), (0, 0)), ((1, 0), (0, 0)), ((1, 0), (1, 0)))
    for letter, layer in (("Phi", 1), ("G", 2)):
        block = [solved.values[k[letter, layer, *pair]].subs(UNIT) for pair in times]
        assert [expand(b - e) for b, e in zip(block, (1, 1, 1 + c0**2), strict=True)] == [0, 0, 0]
    A10 = solved.reading.response[s["phi", 1, 1, 0], s["g", 2, 0, 0]]
    B10 = solved.reading.response[s["g", 2, 1, 0], s["phi", 1, 0, 0]]
    assert expand(solved.values[A10].subs(UNIT) - c0) == 0
    assert expand(solved.values[B10].subs(UNIT) - c0) == 0
    assert (s["g", 2, 1, 0], s["phi", 1, 1, 0]) not in solved.reading.response


def test_a_linear_network_after_two_updates_has_the_cubic():
    c0, c1, root = symbols("c0 c1 lambda")
    A, Phi, C = Matrix([[0, 0], [c0, 0]]), Matrix([[1, 1], [1, 1 + c0**2]]), diag(c0, c1)
    MA, MB = box(A, A, Phi, Phi, C)
    assert MA == MB
    cubic = root**3 - (c0 + c1 + c0**2 * c1) * root**2 + (c0**3 * c1 - 2 * c0 * c1) * root - c0**2 * c1
    polynomial = MA.charpoly(root).as_expr()
    assert expand(polynomial - root * cubic) == 0
    values = cubic.subs({c0: Rational(9, 10), c1: Rational(1, 2)}).as_poly(root).nroots()
    assert max(values, key=lambda each: each.as_real_imag()[0]) == pytest.approx(2.14306, abs=5e-6)


def test_after_one_update_the_naive_answer_is_exact():
    """A = 0; B_00 = <w phi''(h)> with w centred and independent of h on the site."""
    network, reading, probe = one_spike()
    assert probe.blocks["A"][:1, :1] == zeros(1)
    B = reading.responses[probe.blocks["B"][0, 0]]
    w, H = network.symbols["w", 0, 0, 0], network.symbols["h", 2, 0, 0]
    assert Mean(w * phi_second(H)) * NU * SIGMA**2 == B
    assert reading.fields[H] == network.symbols["chi", 2, 0, 0]
    assert (
        reading.fields[reading.fields[H]] == reading.gaussian[reading.fields[H]]
    )  # H is Gaussian, and w another input
    assert w not in reading.fields


def generic(n):
    def block(name, keep=lambda i, j: True):
        return Matrix(n, n, lambda i, j: Symbol(f"{name}{i}{j}") if keep(i, j) else 0)

    Phi, G = (Matrix(n, n, lambda i, j, x=x: Symbol(f"{x}{min(i, j)}{max(i, j)}")) for x in "PG")
    return block("A", lambda i, j: j < i), block("B", lambda i, j: j <= i), Phi, G, diag(*symbols(f"c:{n}"))


def polynomial(A, B, Phi, G, C):
    MA, MB = box(A, B, Phi, G, C)
    return expand((MA * MB).charpoly(Lambda).as_expr())


def test_exchanging_the_sides_and_rescaling_leave_the_eigenvalues():
    A, B, Phi, G, C = generic(2)
    s = Symbol("s", positive=True)
    reference = polynomial(A, B, Phi, G, C)
    assert expand(reference - polynomial(B, A, G, Phi, C)) == 0
    assert expand(reference - polynomial(s * A, B / s, Phi, G / s**2, s * C)) == 0
    assert expand(reference - polynomial(s * A, B, Phi, G / s**2, s * C)) != 0
    assert expand(reference - polynomial(A.T, B, Phi, G, C)) != 0
