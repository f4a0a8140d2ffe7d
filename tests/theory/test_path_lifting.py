"""Path lifting, all paths written out: what is invariant, what flows, and which ranks the matrices have."""

from random import Random

import pytest
from sympy import QQ, Rational, Symbol, diff, prod, simplify, symbols
from sympy.polys.matrices import DomainMatrix

from theory import InputError
from theory.path.lifting import Edge, Graph, mlp


def w(name):
    return Symbol(name, real=True)


def residual():
    """x -> stream (2 units) -> + relu -> y: the skip ties each stream unit before and after the block."""
    edges = [Edge("x0", f"s{j}", w(f"a{j}")) for j in range(2)]
    edges += [Edge(None, f"s{j}", w(f"ab{j}")) for j in range(2)]
    edges += [Edge(f"s{k}", f"h{j}", w(f"m{j}{k}")) for j in range(3) for k in range(2)]
    edges += [Edge(f"h{k}", f"r{j}", w(f"c{j}{k}")) for j in range(2) for k in range(3)]
    edges += [Edge(f"s{j}", f"r{j}", 1) for j in range(2)]
    edges += [Edge(f"r{k}", "y0", w(f"d{k}")) for k in range(2)]
    labels = {"r0": "s0", "r1": "s1"}
    return Graph(("x0",), ("s0", "s1", "h0", "h1", "h2", "r0", "r1"), ("y0",), tuple(edges), labels)


def convolution():
    """Conv1d of one channel of 4 pixels to two channels, kernel 2, then a sum over each channel's pixels: shared weights."""
    edges, units = [], []
    for channel in range(2):
        for pixel in range(3):
            unit = f"c{channel}_{pixel}"
            units.append(unit)
            edges += [Edge(f"x{pixel + k}", unit, w(f"k{channel}{k}")) for k in range(2)]
            edges.append(Edge(None, unit, w(f"kb{channel}")))
            edges.append(Edge(unit, f"p{channel}", Rational(1, 3)))
    units += ["p0", "p1"]
    edges += [Edge(f"p{channel}", "y0", w(f"u{channel}")) for channel in range(2)]
    labels = {unit: f"c{unit[1]}" for unit in units}
    return Graph(tuple(f"x{k}" for k in range(4)), tuple(units), ("y0",), tuple(edges), labels)


GRAPHS = {"mlp": mlp([2, 2, 2, 2]), "bias free": mlp([2, 2, 3], "none"), "residual": residual(), "conv": convolution()}


def numbers(graph, seed=0):
    rng = Random(seed)
    return {each: Rational(rng.choice([-1, 1]) * rng.randint(2, 19), 8) for each in graph.parameters}


def rescaled(graph, theta, seed=1):
    """D theta with D = diag(e^(-Bz/2)), e^(z/2) rational, and e^(Bz)."""
    rng = Random(seed)
    roots = [Rational(rng.randint(2, 9), rng.randint(2, 9)) for _ in graph.free_labels]  # e^(z/2)
    factors = [prod(root ** -graph.rescalings[i, h] for h, root in enumerate(roots)) for i in range(len(theta))]
    return {each: theta[each] * factor for each, factor in zip(graph.parameters, factors, strict=True)}, factors


def test_the_paths_of_net_a():
    """Reference 1 of the notes counts 70 paths, 32 parameters, 6 hidden units, and a rank of 26."""
    net = mlp([3, 4, 2, 2])
    assert (len(net.paths), len(net.parameters), net.rescalings.shape[1]) == (70, 32, 6)


def at(matrix, theta):
    """A matrix of rationals; symbolic products of 40 x 40 entries take minutes."""
    return DomainMatrix.from_Matrix(matrix.subs(theta)).convert_to(QQ)


def column(values):
    return DomainMatrix([[QQ(each.p, each.q)] for each in map(Rational, values)], (len(values), 1), QQ)


def is_zero(matrix):
    return matrix.to_Matrix().is_zero_matrix


def test_incoming_parameters_have_minus_one_and_outgoing_ones_plus_one():
    """The sign by which theta' = theta e^(-Bz/2) multiplies incoming parameters, biases among them, by e^(+z/2)."""
    assert mlp([1, 1, 1]).rescalings.T.tolist() == [[-1, -1, 1, 0]]
    stream = GRAPHS["residual"]
    rows = dict(zip((each.name for each in stream.parameters), stream.rescalings.tolist(), strict=True))
    assert (rows["a0"], rows["m10"], rows["c02"]) == ([-1, 0, 0, 0, 0], [1, 0, 0, -1, 0], [-1, 0, 0, 0, 1])


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_lifting_and_function_are_invariant_and_G_transforms_by_congruence(graph):
    theta = numbers(graph)
    scaled, factors = rescaled(graph, theta)
    assert graph.lifting.subs(theta) == graph.lifting.subs(scaled)
    J, J_scaled = at(graph.jacobian, theta), at(graph.jacobian, scaled)
    inverse = DomainMatrix.diag([QQ(1) / QQ(f.p, f.q) for f in factors], QQ)
    assert J_scaled.transpose() * J_scaled == inverse * J.transpose() * J * inverse
    # Mutant: biases left out of the incoming set.
    wrong = {each: theta[each] if "b" in each.name else value for each, value in scaled.items()}
    if wrong != scaled:
        assert graph.lifting.subs(theta) != graph.lifting.subs(wrong)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_outputs_are_sums_over_paths(graph):
    theta, rng = numbers(graph), Random(2)
    slopes = {unit: Rational(rng.choice([0, 1, 2]), 2) for unit in graph.units}
    x = {name: Rational(rng.randint(-9, 9), 4) for name in graph.inputs}
    by_path = dict.fromkeys(graph.outputs, 0)
    for path, phi, a in zip(graph.paths, graph.lifting, graph.activity(slopes, x), strict=True):
        by_path[path.end] += phi.subs(theta) * a
    assert list(by_path.values()) == list(graph.outputs_of(slopes, x).subs(theta))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_flow_of_the_lifting_is_minus_the_path_kernel_times_the_gradient(graph):
    """dz/dt = J dtheta/dt = -J J' grad_z l: here l = c'z + |z|^2/2, its flow and J taken by differentiation."""
    theta = numbers(graph)
    c = [Rational(k % 7 - 3, 5) for k in range(len(graph.paths))]
    loss = sum(a * z + z**2 / 2 for a, z in zip(c, graph.lifting, strict=True))
    flow = column([-diff(loss, each).subs(theta) for each in graph.parameters])
    J = at(graph.lifting.jacobian(graph.parameters), theta)
    assert at(graph.jacobian, theta) == J
    slope = column([a + z.subs(theta) for a, z in zip(c, graph.lifting, strict=True)])
    kernel = J * J.transpose()
    assert J * flow == -(kernel * slope)
    if len(graph.paths) < 25:
        assert at(graph.kernel, theta) == kernel


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_kernel_and_gram_matrix_are_singular_of_one_rank(graph):
    """Rank p - H, where that is not more than q; G vanishes along theta o B_h, the tangent of the orbit."""
    theta = numbers(graph)
    J = at(graph.jacobian, theta)
    G = J.transpose() * J
    p, H = graph.rescalings.shape
    assert G.rank() == (J * J.transpose()).rank() == min(p - H, len(graph.paths))
    values = DomainMatrix.diag([QQ(each.p, each.q) for each in theta.values()], QQ)
    assert is_zero(G * values * at(graph.rescalings, {}))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_as_much_flows_into_a_label_as_out_of_it(graph):
    """f_i = g_i theta_i^2; the rival leaves the biases out of the incoming parameters."""
    theta = numbers(graph)
    J = at(graph.jacobian, theta).to_Matrix()
    flow = [sum(entry**2 for entry in J.col(i)) * value**2 for i, value in enumerate(theta.values())]
    B = at(graph.rescalings, {}).transpose()
    assert is_zero(B * column(flow))
    rival = [0 if "b" in each.name else f for each, f in zip(theta, flow, strict=True)]
    if rival != flow:
        assert not is_zero(B * column(rival))


def test_the_diagonal_is_the_derivative_of_the_squared_network():
    """N(s) = sum Phi^2 with s = theta^2 is multilinear, and G_ii = dN/ds_i."""
    graph = GRAPHS["conv"]
    s = symbols(f"s0:{len(graph.parameters)}", positive=True)
    N = sum(path.value**2 for path in graph.paths).subs(
        {each: each_s ** Rational(1, 2) for each, each_s in zip(graph.parameters, s, strict=True)}
    )
    back = {each_s: each**2 for each, each_s in zip(graph.parameters, s, strict=True)}
    for i, each in enumerate(s):
        assert simplify(N.diff(each).subs(back) - graph.gram[i, i]) == 0


def test_what_is_no_network_is_refused():
    with pytest.raises(InputError, match="runs backward"):
        Graph(("x",), ("h",), ("y",), (Edge("y", "h", w("a")),))
    with pytest.raises(InputError, match="does not have"):
        Graph(("x",), (), ("y",), (Edge("z", "y", w("a")),))
    tied = Graph(("x",), ("h",), ("y",), (Edge("x", "h", w("a")), Edge("h", "y", w("a"))))
    with pytest.raises(InputError, match="twice on a path"):
        _ = tied.paths
    untied = Graph(
        ("x",),
        ("h", "k"),
        ("y",),
        (Edge("x", "h", w("a")), Edge("x", "k", w("a")), Edge("h", "y", 1), Edge("k", "y", 1)),
    )
    with pytest.raises(InputError, match="different labels"):
        _ = untied.rescalings
