"""Every number of the wide networks by a second route, on random admissible inputs, and each convention pinned."""

from dataclasses import replace

import numpy as np
import pytest

from numerics.mlp import Activation, Problem, solve, train
from numerics.mlp.activation import ACTIVATIONS
from numerics.mlp.program import evaluate_reading
from numerics.mlp.site import Coefficients, Sampled, gaussian_points
from theory import InputError

SECH2 = lambda h: 1 - np.tanh(h) ** 2  # noqa: E731
OPEN = {
    "tanh": {"phi": np.tanh, "dphi": SECH2, "d2phi": lambda h: -2 * np.tanh(h) * SECH2(h)},
    "erf": {
        "phi": ACTIVATIONS["erf"].value,
        "dphi": ACTIVATIONS["erf"].slope,
        "d2phi": lambda h: -h * ACTIVATIONS["erf"].slope(h),
    },
    "gelu": {
        "phi": ACTIVATIONS["gelu"].value,
        "dphi": ACTIVATIONS["gelu"].slope,
        "d2phi": lambda h: (2 - h**2) * np.exp(-(h**2) / 2) / np.sqrt(2 * np.pi),
    },
    "linear": {"phi": lambda h: h, "dphi": np.ones_like, "d2phi": np.zeros_like},
}
SAMPLED_LINEAR = Activation("linear by sampling", lambda h: h, np.ones_like)


def random_problem(rng, activation, samples, steps, depth):
    inputs = rng.normal(size=(samples, 5))
    return Problem(
        activation,
        inputs @ inputs.T / 5,
        rng.normal(size=samples),
        gamma0=rng.uniform(1, 3),
        eta0=rng.uniform(0.05, 0.3) / np.trace(inputs @ inputs.T / 5) * samples,
        steps=steps,
        depth=depth,
        nu=rng.uniform(0.4, 2.5),
        sigma=rng.uniform(0.5, 1.5),
    )


# ------------------------------------------------------------------------------------------------- ingredients


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slopes_are_derivatives_and_scales_are_the_stated_ones(name):
    phi, h, step = ACTIVATIONS[name], np.array([-2.1, -0.7, 0.3, 1.9]), 1e-6
    assert phi.slope(h) == pytest.approx((phi.value(h + step) - phi.value(h - step)) / (2 * step), abs=1e-8)
    values = {"linear": 0.3, "tanh": 0.2913126, "erf": 0.2358228, "relu": 0.3, "gelu": 0.1853734}
    assert phi.value(h)[2] == pytest.approx(values[name], abs=1e-7)
    if name == "gelu":
        second = OPEN["gelu"]["d2phi"]
        assert second(h) == pytest.approx((phi.slope(h + step) - phi.slope(h - step)) / (2 * step), abs=1e-8)


def test_points_are_whitened_normal_and_reproducible():
    points = gaussian_points(7, 1024, np.random.SeedSequence(1))
    assert points @ points.T / 1024 == pytest.approx(np.eye(7), abs=1e-12)
    assert np.mean(points**4, axis=1) == pytest.approx(np.full(7, 3.0), abs=0.15)
    assert np.array_equal(points, gaussian_points(7, 1024, np.random.SeedSequence(1)))
    assert not np.allclose(points, gaussian_points(7, 1024, np.random.SeedSequence(2)))
    for wrong in (1000, 4):
        with pytest.raises(InputError, match="power of 2 above"):
            gaussian_points(7, wrong, np.random.SeedSequence(0))


@pytest.mark.parametrize("kind", [Sampled, Coefficients])
def test_fields_have_the_covariances_they_were_drawn_with(kind):
    """Grown in two blocks, the fifth field a combination of the others: the factor must skip it and go on."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    root[4] = root[0] - 2 * root[1]
    covariance = root @ root.T
    site = kind(gaussian_points(9, 256, np.random.SeedSequence(0))) if kind is Sampled else kind(9)
    first = site.draw("u", covariance[:2, :2])
    other = site.draw("r", np.array([[2.0]]))
    rest = site.draw("u", covariance[2:, :])
    fields = np.vstack([first, rest])
    assert site.mean(fields, fields) == pytest.approx(covariance, rel=1e-9, abs=1e-9)
    assert site.mean(fields, other) == pytest.approx(np.zeros((6, 1)), abs=1e-9)
    # x = 3 u_0 - u_3 + r: its slopes are these coefficients, whatever the covariance.
    x = 3 * fields[:1] - fields[3:4] + other
    assert site.slope(x, "u", np.arange(4)) == pytest.approx(np.array([[3, 0, 0, -1]]), abs=1e-7)
    assert site.slope(x, "r", np.arange(1)) == pytest.approx(np.ones((1, 1)), abs=1e-9)


def test_steins_slope_is_the_mean_derivative():
    site = Sampled(gaussian_points(3, 2**14, np.random.SeedSequence(4)))
    covariance = np.array([[1.5, 0.4, 0.2], [0.4, 0.8, -0.3], [0.2, -0.3, 2.0]])
    u = site.draw("u", covariance)
    x = np.tanh(u[:1] + 0.5 * u[1:2])
    slope = np.mean(SECH2(u[0] + 0.5 * u[1]))
    assert site.slope(x, "u", np.arange(3)) == pytest.approx(np.array([[slope, slope / 2, 0]]), abs=2e-3)


# ---------------------------------------------------------------------------------------------------- level 1


@pytest.mark.parametrize(
    ("activation", "samples", "steps", "depth"),
    [
        ("tanh", 1, 2, 2),
        ("erf", 1, 2, 2),
        ("gelu", 1, 2, 2),
        ("linear", 1, 3, 2),
        ("linear", 2, 2, 3),
        ("tanh", 2, 2, 2),
        ("erf", 2, 1, 3),
        ("tanh", 1, 2, 3),
    ],
)
def test_the_solver_and_the_engine_agree(activation, samples, steps, depth):
    """Stein quotients in a hand-written sweep against averaged derivatives of the program's symbolic equations."""
    from theory.mlp import Network, Reading

    rng = np.random.default_rng([len(activation), samples, steps, depth])
    problem = random_problem(rng, activation, samples, steps, depth)
    network = Network(depth=depth, steps=steps, samples=samples)
    reading, s = Reading(network.program), network.symbols
    numbers = {f"K_{i + 1}{j + 1}": problem.gram[i, j] for i in range(samples) for j in range(i, samples)}
    numbers |= {f"y_{i + 1}": problem.targets[i, 0] for i in range(samples)}
    numbers |= {name: getattr(problem, name) for name in ("gamma0", "eta0", "nu", "sigma")}
    runs = [evaluate_reading(reading, numbers, OPEN[activation], 2**12, seed) for seed in range(4)]
    solution = solve(problem, 2**12)
    pairs = []
    for t in range(steps + 1):
        for mu in range(samples):
            pairs.append((s["f", 0, t, mu].name, *(each[t, mu, 0] for each in solution.outputs)))
    index = [(t, mu) for t in range(steps) for mu in range(samples)]
    for layer in range(1, depth):
        blocks = solution.kernels(steps, layer)
        for (i, k), (j, m) in ((a, b) for a in enumerate(index) for b in enumerate(index)):
            names = {
                "Phi": network.kernels["Phi", layer, k, m].name,
                "G": network.kernels["G", layer + 1, k, m].name,
                "A": getattr(reading.response.get((s["phi", layer, *k], s["g", layer + 1, *m])), "name", None),
                "B": getattr(reading.response.get((s["g", layer + 1, *k], s["phi", layer, *m])), "name", None),
            }
            for block, name in names.items():
                pairs.append((name, blocks[block][0][i, j], blocks[block][1][i, j]))
    assert len(pairs) > 4 * len(index) ** 2
    for name, value, error in pairs:
        if name is None:
            assert value == 0, "what the engine finds structurally zero is zero in the sweep"
            continue
        seen = [run[name] for run in runs]
        spread = np.hypot(error, np.std(seen, ddof=1) / 2)
        # Sobol points at 2^12 have a bias of the order of their spread; nothing that is wrong by a factor passes.
        assert abs(value - np.mean(seen)) < 6 * spread + 1e-3 * max(abs(value), 0.1), (name, value, seen)


@pytest.mark.parametrize("depth", [2, 3])
def test_exact_coefficients_and_sampling_agree_for_a_linear_network(depth):
    problem = random_problem(np.random.default_rng(5), "linear", 2, 4, depth)
    problem = replace(problem, eta0=problem.eta0 / 3)
    sampled = solve(replace(problem, activation=SAMPLED_LINEAR), 2**14)
    exact = solve(problem)
    mean, error = sampled.losses
    assert (np.abs(mean - exact.losses[0]) < 6 * error + 1e-4).all()
    assert (exact.losses[1] < 1e-9).all()
    for layer in range(1, depth):
        ours, theirs = exact.kernels(4, layer), sampled.kernels(4, layer)
        # A and B alone are undetermined where kernels are nearly singular; A G and B Phi are what enters.
        for response, kernel in (("A", "G"), ("B", "Phi")):
            assert theirs[response][0] @ theirs[kernel][0] == pytest.approx(
                ours[response][0] @ ours[kernel][0], abs=0.02
            )


def test_a_linear_network_learns_3_eta0_y_in_its_first_step():
    problem = Problem("linear", 1.0, [0.8], 2, 0.07, 1)
    assert solve(problem).outputs[0][1, 0, 0] == pytest.approx(3 * 0.07 * 0.8, rel=1e-12)
    wide = Problem("linear", 1.0, [0.8], 2, 0.07, 1, sigma=0.5)
    # first layer and readout are damped by sigma^2, the hidden matrix is not
    assert solve(wide).outputs[0][1, 0, 0] == pytest.approx((1 + 2 * 0.25) * 0.07 * 0.8, rel=1e-12)


def test_the_zeroth_kernels_are_gaussian_integrals():
    """phi of one Gaussian, by quadrature: pins the variance of h^1 and h^2, and nu in G alone."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    nu, sigma, k = 1.7, 0.8, 1.3
    solution = solve(Problem("tanh", k, [1.0], 2, 0.2, 1, nu=nu, sigma=sigma), 2**13)
    Phi = weights @ np.tanh(np.sqrt(k) * nodes) ** 2
    slope = weights @ SECH2(sigma * np.sqrt(Phi) * nodes) ** 2
    blocks = solution.kernels(1)
    assert blocks["Phi"][0][0, 0] == pytest.approx(Phi, abs=3e-4)
    assert blocks["G"][0][0, 0] == pytest.approx(nu * slope, abs=3e-3)


@pytest.mark.parametrize("activation", ["tanh", "relu", "linear"])
def test_responses_are_causal_and_kernels_are_covariances(activation):
    problem = random_problem(np.random.default_rng(8), activation, 2, 4, 3)
    for matrix in train(problem, 2**10, 1).matrices:
        step = np.arange(8) // 2
        same = np.arange(8)
        assert not matrix.A[:8][step[:, None] <= step[None, :]].any()
        later = (step[:, None] < step[None, :]) | ((step[:, None] == step[None, :]) & (same[:, None] != same[None, :]))
        assert not matrix.B[later].any()
        for kernel in (matrix.Phi, matrix.G):
            kernel = kernel[:8, :8]
            assert kernel == pytest.approx(kernel.T, rel=1e-13, abs=1e-13)
            assert np.linalg.eigvalsh(kernel)[0] > -1e-9 * np.trace(kernel)


def test_what_was_trained_does_not_depend_on_how_long_it_goes_on():
    problem = random_problem(np.random.default_rng(2), "linear", 3, 6, 2)
    short = Problem(
        "linear", problem.gram, problem.targets, problem.gamma0, problem.eta0, 3, nu=problem.nu, sigma=problem.sigma
    )
    assert solve(problem).losses[0][:4] == pytest.approx(solve(short).losses[0], rel=1e-12)
    assert solve(problem).outliers(3)[0] == pytest.approx(solve(short).outliers(3)[0], rel=1e-9)


def test_a_second_output_without_a_target_changes_nothing():
    """Several outputs put the error into g, one puts it into c: the same training and the same outliers."""
    one = Problem("linear", np.array([[1, 0.3], [0.3, 0.8]]), [1.0, -0.5], 3, 0.1, 5, nu=1.5)
    two = Problem("linear", one.gram, [[1.0, 0.0], [-0.5, 0.0]], 3, 0.1, 5, nu=1.5)
    assert solve(two).losses[0] == pytest.approx(solve(one).losses[0], rel=1e-10)
    assert solve(two).outputs[0][:, :, 1] == pytest.approx(np.zeros((6, 2)), abs=1e-12)
    assert len(solve(one).outliers(5)[0]) == 1
    assert solve(two).outliers(5)[0] == pytest.approx(solve(one).outliers(5)[0], rel=1e-7)
    for of_two, of_one in zip(solve(two).overlaps(5), solve(one).overlaps(5), strict=True):
        assert of_two[0] == pytest.approx(of_one[0], rel=1e-6)


def test_rotated_outputs_and_permuted_samples_are_the_same_problem():
    rng = np.random.default_rng(6)
    gram, targets = 0.7 * np.eye(3) + 0.3, rng.normal(size=(3, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    order = [2, 0, 1]
    base = solve(Problem("linear", gram, targets, 3, 0.15, 4))
    for changed in ((gram, targets @ turn), (gram[order][:, order], targets[order])):
        other = solve(Problem("linear", *changed, 3, 0.15, 4))
        assert other.losses[0] == pytest.approx(base.losses[0], rel=1e-10)
        assert other.outliers(4)[0] == pytest.approx(base.outliers(4)[0], rel=1e-7)


def test_batches_are_taken_in_turn_and_divided_by_their_size():
    problem = Problem("tanh", np.eye(3), [1.0, 1.0, 1.0], 1, 0.1, 3, batch=2)
    assert [problem.weights(s).tolist() for s in range(3)] == [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]
    assert Problem("tanh", np.eye(3), [1.0, 1.0, 1.0], 1, 0.1, 3).weights(7) == pytest.approx(np.full(3, 1 / 3))
    whole = [solve(Problem("linear", np.eye(3), [1.0, 2.0, 3.0], 1, 0.1, 3, batch=b)).losses[0] for b in (None, 3)]
    assert whole[0] == pytest.approx(whole[1], rel=1e-12)


def test_the_radius_covers_the_error():
    """Coarse solutions from eight seeds against a fine one: the standard error of 4 scrambles, not a decoration."""
    settings_ = ("tanh", np.array([[1, -0.2], [-0.2, 1]]), [1.0, -1.0], 3, 0.5, 5)
    fine = solve(Problem(*settings_), 2**15, seed=99)
    misses = []
    for seed in range(8):
        coarse = solve(Problem(*settings_), 2**11, seed=seed)
        for (a, e), (b, _) in ((coarse.losses, fine.losses), (coarse.outliers(5), fine.outliers(5))):
            misses += list(np.abs(a[1:] - b[1:]) / e[1:] if len(a) > 1 else np.abs(a - b) / e)
    # Student's t of 3 degrees of freedom: |t| < 5.84 with probability .99
    assert np.mean(np.array(misses) < 5.84) > 0.9
    assert np.median(misses) > 0.2, "an error that is always far too large is no error either"
