"""Path lifting, all paths written out: what is invariant, what flows, and which ranks the matrices have."""

from random import Random

import pytest
from sympy import Matrix, Rational, Symbol, diag, eye, prod, simplify, symbols, zeros

from theory import InputError
from theory.path.lifting import Edge, Graph, mlp


def w(name):
    return Symbol(name, real=True)


def residual():
    """x -> stream (2 units) -> + relu -> y: the skip ties each stream unit before and after the block."""
    edges = [Edge("x0", f"s{j}", w(f"a{j}")) for j in range(2)]
    edges += [Edge(None, f"s{j}", w(f"ab{j}")) for j in range(2)]
    edges += [Edge(f"s{k}", f"h{j}", w(f"b{j}{k}")) for j in range(3) for k in range(2)]
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


GRAPHS = {"mlp": mlp([2, 3, 2, 2]), "bias free": mlp([2, 2, 3], "none"), "residual": residual(), "conv": convolution()}


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


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_lifting_and_function_are_invariant_and_G_transforms_by_congruence(graph):
    theta = numbers(graph)
    scaled, factors = rescaled(graph, theta)
    assert graph.lifting.subs(theta) == graph.lifting.subs(scaled)
    D = diag(*factors)
    assert graph.gram.subs(scaled) == D.inv() * graph.gram.subs(theta) * D.inv()
    # Mutant: factors the other way round are not an invariance.
    assert graph.lifting.subs(theta) != graph.lifting.subs({k: theta[k] / f for (k, f) in zip(theta, [x**3 for x in factors], strict=True)})


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_outputs_are_sums_over_paths(graph):
    theta, rng = numbers(graph), Random(2)
    slopes = {unit: Rational(rng.choice([0, 1, 2]), 2) for unit in graph.units}
    x = {name: Rational(rng.randint(-9, 9), 4) for name in graph.inputs}
    A = graph.activity(slopes, x)
    by_path = {name: 0 for name in graph.outputs}
    for path, phi, a in zip(graph.paths, graph.lifting, A, strict=True):
        by_path[path.end] += phi * a
    assert Matrix(list(by_path.values())).subs(theta) == graph.outputs_of(slopes, x).subs(theta)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_flow_of_the_lifting_is_minus_the_path_kernel_times_the_gradient(graph):
    """dz/dt = J dtheta/dt = -J J' grad_z l for any loss l of z; and J is the derivative of Phi."""
    c = Matrix([Rational(k % 7 - 3, 5) for k in range(len(graph.paths))])
    theta = numbers(graph)
    loss = (c.T * graph.lifting)[0] + (graph.lifting.T * graph.lifting)[0] / 2
    flow = -Matrix([loss]).jacobian(graph.parameters).T
    speed = graph.lifting.jacobian(graph.parameters) * flow
    slope = c + graph.lifting
    assert (speed + graph.kernel * slope).subs(theta) == zeros(len(graph.paths), 1)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_kernel_and_gram_matrix_share_rank_and_trace(graph):
    """Rank p - H: both are singular wherever there is a unit to rescale, G along theta o B_h."""
    theta = numbers(graph)
    G, P = graph.gram.subs(theta), graph.kernel.subs(theta)
    p, H = graph.rescalings.shape
    assert G.trace() == P.trace()
    assert G.rank() == P.rank() == min(p - H, len(graph.paths))
    tangent = diag(*theta.values()) * graph.rescalings
    assert G * tangent == zeros(p, H)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_squared_paths_flow_through_every_label(graph):
    """f_i = g_i theta_i^2: as much enters a label as leaves it. Without the bias among the incoming it fails."""
    theta = numbers(graph)
    G = graph.gram.subs(theta)
    flow = Matrix([G[i, i] * value**2 for i, value in enumerate(theta.values())])
    if graph is not GRAPHS["residual"]:
        assert graph.rescalings.T * flow == zeros(graph.rescalings.shape[1], 1)
    biases = [i for i, each in enumerate(graph.parameters) if "b" in each.name and each.name[0] != "b" or each.name.startswith("b1")]
    if graph is GRAPHS["mlp"]:
        without = flow.copy()
        for i in biases:
            without[i] = 0
        assert graph.rescalings.T * without != zeros(graph.rescalings.shape[1], 1)


def test_the_diagonal_is_the_derivative_of_the_squared_network():
    """N(s) = sum Phi^2 with s = theta^2 is multilinear, and G_ii = dN/ds_i."""
    graph = GRAPHS["conv"]
    s = symbols(f"s0:{len(graph.parameters)}", positive=True)
    N = sum(path.value**2 for path in graph.paths).subs({each: each_s**Rational(1, 2) for each, each_s in zip(graph.parameters, s, strict=True)})
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
    untied = Graph(("x",), ("h", "k"), ("y",), (Edge("x", "h", w("a")), Edge("x", "k", w("a")), Edge("h", "y", 1), Edge("k", "y", 1)))
    with pytest.raises(InputError, match="different labels"):
        _ = untied.rescalings
    assert eye(1) == Matrix([[1]])
