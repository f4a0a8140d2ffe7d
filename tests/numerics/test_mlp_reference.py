"""Reference rows of the derivation notes (infinite width), as smoke tests: tolerances are the notes' own."""

from dataclasses import replace

import numpy as np
import pytest

from numerics.mlp import Problem, solve, train
from numerics.mlp.outliers import location

K2 = np.array([[1, -0.175258], [-0.175258, 1]])
K4 = np.array(
    [
        [1, -0.175258, -0.096933, -0.411384],
        [-0.175258, 1, -0.088939, -0.686126],
        [-0.096933, -0.088939, 1, 0.291379],
        [-0.411384, -0.686126, 0.291379, 1],
    ]
)
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])

EXACT = {"tolerance": 1e-5, "loss_tolerance": 1e-5}
COARSE = {"tolerance": 0.003, "loss_tolerance": 4e-4}
ROWS = {
    "1 linear": (
        Problem("linear", 1.0, [1.0], 4, 0.02, 20),
        {"z": {12: [2.02379], 20: [2.04145]}, "loss": {5: 0.22316}, "escape": 8.817356, **EXACT},
    ),
    "2 linear P=4": (
        Problem("linear", K4, SIGNS, 4, 0.1, 20),
        {
            "z": {7: [2.249809], 8: [2.266252], 20: [2.50470]},
            "naive": {20: [2.10380]},
            "loss": {6: 0.08739},
            "escape": 3.602333,
            **EXACT,
        },
    ),
    "3 tanh": (
        Problem("tanh", 1.0, [1.0], 3, 0.3, 12),
        {"z": {6: [2.1839], 12: [2.3300]}, "naive": {12: [2.0911]}, "loss": {4: 0.09152}, "escape": 2.784},
    ),
    "4 tanh P=2": (
        Problem("tanh", K2, SIGNS[:2], 2, 0.5, 12),
        {"z": {6: [2.1473], 12: [2.2130]}, "naive": {12: [2.0246]}, "loss": {3: 0.1061}, "escape": 2.790, "loss_tolerance": 3e-4},
    ),
    "5 tanh P=2, richer": (
        Problem("tanh", K2, SIGNS[:2], 3, 0.5, 12),
        {"z": {4: [2.2922], 6: [2.4340]}, "naive": {6: [2.137]}, "loss": {3: 0.09197}, "escape": 1.772, "loss_tolerance": 3e-4},
    ),
    "6 tanh P=4": (
        Problem("tanh", K4, SIGNS, 3, 0.6, 8),
        {"z": {4: [2.4269], 8: [2.8332]}, "naive": {8: [2.3648]}, "loss": {4: 0.0801}, **COARSE},
    ),
    "7 erf": (
        Problem("erf", K2, SIGNS[:2], 3, 0.5, 12),
        {"z": {6: [2.5666], 12: [2.6605]}, "naive": {12: [2.2687]}, "loss": {4: 0.0543}, "loss_tolerance": 3e-4},
    ),
    "8 depth 3, second matrix": (
        Problem("tanh", K2, SIGNS[:2], 3, 0.4, 10, depth=3),
        {
            "layer": 2,
            "z": {5: [2.2748], 10: [2.4580]},
            "naive": {10: [2.1215]},
            "loss": {5: 0.0359},
            "tolerance": 0.003,
            "loss_tolerance": 3e-4,
        },
    ),
    "8 depth 3, first matrix": (
        Problem("tanh", K2, SIGNS[:2], 3, 0.4, 10, depth=3),
        {"z": {10: [2.095]}, "naive": {10: []}, "tolerance": 0.003},
    ),
    "9 nu=2": (
        Problem("tanh", K2, SIGNS[:2], 3, 0.4, 10, nu=2),
        {"z": {5: [2.9985], 10: [3.2608]}, "naive": {10: [2.824]}, "loss": {4: 0.0694}, **COARSE},
    ),
    "10 relu": (
        Problem("relu", 1.0, [1.0], 4, 0.1, 8),
        {"z": {4: [2.0617], 5: [2.1501]}, "loss": {3: 0.1980, 4: 0.01726}, "tolerance": 0.001, "loss_tolerance": 3e-4},
    ),
    "rectangular the other way": (
        Problem("tanh", K2, SIGNS[:2], 3, 0.4, 10, nu=0.5),
        {"z": {10: [1.9318]}, "naive": {10: [1.7395]}},
    ),
    "sigma=.5": (Problem("tanh", K2, SIGNS[:2], 3, 0.4, 8, sigma=0.5), {"z": {8: [2.2007]}, "naive": {8: [2.011]}}),
    "sigma=1.4": (Problem("tanh", K2, SIGNS[:2], 3, 0.4, 8, sigma=1.4), {"z": {8: [2.865]}, "naive": {8: []}}),
    "sigma=.7, nu=2, erf": (
        Problem("erf", K2, SIGNS[:2], 3, 0.4, 8, sigma=0.7, nu=2),
        {"z": {8: [3.249]}, "naive": {8: [2.859]}},
    ),
    "two outliers, relu": (Problem("relu", np.eye(2), SIGNS[:2], 6, 0.12, 9), {"z": {9: [2.3723, 2.0655]}, "tolerance": 0.003}),
    "minibatches of one": (
        Problem("tanh", K2, SIGNS[:2], 3, 0.3, 10, batch=1),
        {"z": {10: [2.4200]}, "naive": {10: [2.129]}, "loss": {4: 0.1375, 8: 0.0154}, "loss_tolerance": 3e-4},
    ),
    "three outputs": (
        Problem("tanh", 0.8 * np.eye(3) + 0.2, np.eye(3), 5, 0.8, 10),
        {
            "z": {10: [2.744, 2.744, 2.645]},
            "naive": {10: [2.362, 2.360, 2.300]},
            "loss": {4: 0.1073},
            "tolerance": 0.004,
            "loss_tolerance": 3e-4,
        },
    ),
    "a rate beyond stability, linear": (Problem("linear", K2, SIGNS[:2], 8, 0.1, 20), {"z": {20: [2.50329]}, "tolerance": 1e-5}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_reference_row(name):
    problem, row = ROWS[name]
    solution, layer = solve(problem), row.get("layer", 1)
    for independent, key in ((False, "z"), (True, "naive")):
        for t, expected in row.get(key, {}).items():
            z, error = solution.outliers(t, layer, independent)
            assert z == pytest.approx(expected, abs=row.get("tolerance", 0.002)), (key, t)
            assert (error < row.get("tolerance", 0.002)).all()
    for t, expected in row.get("loss", {}).items():
        assert solution.losses[0][t] == pytest.approx(expected, abs=row.get("loss_tolerance", 2e-4))
    if "escape" in row:
        tolerance = 1e-6 if problem.activation.linear else 0.003
        assert solution.escape_time(layer)[0] == pytest.approx(row["escape"], abs=tolerance)


def test_responses_and_overlaps_of_the_rows():
    third, fifth = (solve(ROWS[name][0]) for name in ("3 tanh", "5 tanh P=2, richer"))
    blocks = solve(replace(third.problem, steps=2), 2**16).kernels(2)
    assert blocks["A"][0][1, 0] == pytest.approx(0.34683, abs=5e-4)
    assert blocks["B"][0][1, 0] == pytest.approx(0.5290, abs=5e-4)
    (left, _), (right, _) = fifth.overlaps(6)
    assert left[[0, 2, 4]] == pytest.approx([0.665, 0.773, 0.818], abs=1.5e-3)
    assert right[[0, 2, 4]] == pytest.approx([0.534, 0.715, 0.796], abs=1.5e-3)
    (left, _), _ = solve(ROWS["1 linear"][0]).overlaps(20)
    assert left[0] == pytest.approx(0.45663, abs=1e-5)


def test_the_responses_of_a_kink_are_those_of_a_quadrature():
    """Row 10, P = 1, K = 1: both layers integrated by hand, deltas included. (The notes print B10 = .369, a sampled value.)"""
    from scipy.integrate import quad
    from scipy.special import ndtr

    def density(x, s):
        return np.exp(-((x / s) ** 2) / 2) / (s * np.sqrt(2 * np.pi))

    def half_line(f, s):
        return quad(lambda x: f(x) * density(x, s), 0, 12, epsabs=1e-13)[0]

    c = 0.1 * 4
    s = c * np.sqrt(0.5)  # h(1) = h(0) + c r for h(0) > 0, <r^2> = <w^2 1(u > 0)> = 1/2; h(1) = h(0) else
    kernel = np.array([[0.5, 0], [0, 0]])
    kernel[0, 1] = kernel[1, 0] = half_line(lambda h: h * (h * ndtr(h / s) + s**2 * density(h, s)), 1)
    kernel[1, 1] = half_line(lambda h: (h**2 + s**2) * ndtr(h / s) + h * s**2 * density(h, s), 1)
    A10 = c * half_line(lambda h: ndtr(h / s), 1)
    # g(1) = (w + c u_0) 1(u_1 + a w > 0) for u_0 > 0 and 0 on average else; <g(1) | u_0> and <g(1) u_1 | u_0> in closed form
    a, slope = A10 + c * kernel[0, 1], kernel[0, 1] / kernel[0, 0]
    v = kernel[1, 1] - slope * kernel[0, 1]
    width = np.hypot(np.sqrt(v), a)

    def given(u):
        return a * density(slope * u, width) + c * u * ndtr(slope * u / width)

    def given_with_next(u):
        m = slope * u
        return m * given(u) + v * density(m, width) * (c * u - a * m / width**2)

    moments = [half_line(f, np.sqrt(0.5)) for f in (lambda u: u * given(u), given_with_next)]
    B10, B11 = np.linalg.solve(kernel, moments)
    blocks = solve(Problem("relu", 1.0, [1.0], 4, 0.1, 2), 2**16).kernels(2)
    for name, entry, value in (("A", (1, 0), A10), ("B", (1, 0), B10), ("B", (1, 1), B11)):
        mean, error = blocks[name]
        assert abs(mean[entry] - value) < 5 * error[entry] + 2e-4, name
    assert abs(B10 - 0.36755) < 1e-5


def test_dropping_the_responses_in_level_1_is_another_theory():
    problem = ROWS["5 tanh P=2, richer"][0]
    dropped = np.mean([train(problem, 2**14, seed, responses=False).losses for seed in range(4)], axis=0)
    assert dropped[1:6] == pytest.approx([0.3834, 0.2446, 0.1229, 0.0510, 0.0187], abs=3e-4)
    assert solve(problem).losses[0][1:6] == pytest.approx([0.3427, 0.1999, 0.0920, 0.0355, 0.0123], abs=3e-4)


def test_no_outlier_where_training_is_lazy():
    for gamma0 in (0.5, 1):
        problem = Problem("tanh", K2, SIGNS[:2], gamma0, 0.5, 12)
        assert len(solve(problem).outliers(12)[0]) == 0
        assert solve(problem).escape_time() == (np.inf, 0.0)
        assert not solve(problem).overlaps(12)[0][0].any()


def test_a_lower_outlier_in_the_gap_of_a_tall_matrix():
    solution = solve(Problem("erf", K2, SIGNS[:2], 7, 0.5, 6, nu=9))
    z, error = solution.lower_outliers(6)
    assert z == pytest.approx([1.379], abs=0.005)
    assert error < 0.005
    lower = [each.lower for each in solution.spectra(6)]
    assert np.mean(lower) == pytest.approx(-6.77, abs=0.02)
    assert location(np.mean(lower), 9, 1) == pytest.approx(z[0], abs=2e-3)
    assert len(solve(ROWS["5 tanh P=2, richer"][0]).lower_outliers(6)[0]) == 0


def test_health_is_clean_on_stable_rows_and_alarmed_beyond_stability():
    for name in ("3 tanh", "5 tanh P=2, richer", "9 nu=2"):
        health = solve(ROWS[name][0]).health
        assert health.sound, (name, health)
        assert health.norm_gap < 1e-12
    # Twice the rate at which the two-sample row is stable: scrambles part, and the solution says from when on.
    wild = solve(Problem("tanh", K2, SIGNS[:2], 3, 6.0, 12), 2**11).health
    assert wild.unstable_from is not None
    assert not wild.sound
