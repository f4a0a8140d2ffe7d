"""Finite networks: the exact identities of any width, then the theory of infinite width against them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from empirics.mlp import on_fresh_bulk, top_singular, train_perceptron, train_perceptrons
from numerics.mlp import Activation, Problem, solve
from theory import InputError

K2 = np.array([[1, -0.175258], [-0.175258, 1]])
RICH = Problem("tanh", K2, [1.0, -1.0], 3, 0.5, 6)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


EXACT = {
    "one output": Problem("tanh", K2, [1.0, -0.7], 2, 0.3, 3),
    "tall, deep, scaled": Problem("erf", K2, [1.0, -0.7], 2, 0.3, 3, depth=3, nu=1.5, sigma=0.7),
    "flat": Problem("gelu", K2, [1.0, -0.7], 2, 0.3, 3, nu=0.5),
    "three outputs": Problem("tanh", 0.8 * np.eye(3) + 0.2, np.eye(3), 2, 0.3, 3),
    "batches": Problem("relu", K2, [1.0, -0.7], 2, 0.3, 4, batch=1),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_update_is_a_sum_of_spikes_at_any_width(name):
    """W(t)/sqrt(N_in) = W(0)/sqrt(N_in) + (1/N_in) sum c g phi': its squared norm through the kernels, exactly."""
    problem = EXACT[name]
    run = train_perceptron(problem, 30, 1)
    c = np.concatenate([problem.eta0 * problem.gamma0 * problem.weights(t) for t in range(problem.steps)])
    if problem.outputs == 1:
        c = c * (problem.targets[:, 0] - run.outputs[:-1, :, 0]).ravel()
    for layer in range(problem.depth - 1):
        update = (run.final[layer] - run.initial[layer]).numpy()
        assert update.shape == (round(30 * problem.nu ** (layer + 1)), round(30 * problem.nu**layer))
        # |sum c g phi'/N_in|^2 = sum c c' (g.g'/N_in) (phi.phi'/N_in)
        expected = c @ (run.G[layer] * run.Phi[layer]) @ c
        assert (update**2).sum() == pytest.approx(expected, rel=1e-10)
        assert np.linalg.matrix_rank(update, tol=1e-10) <= problem.steps * problem.P


def test_singular_values_are_those_of_the_matrix_over_the_root_of_its_columns():
    run = train_perceptron(replace(RICH, nu=2.0, sigma=1.5), 40, 0)
    for matrix, t in ((run.initial[0], 0), (run.final[0], 6)):
        values = torch.linalg.svdvals(matrix)[:2].numpy()
        assert run.singular_values[0][t] == pytest.approx(values, rel=1e-12)
    assert run.initial[0].std() * np.sqrt(40) == pytest.approx(1.5, rel=0.05)


def test_overlaps_are_cosines_with_the_spikes_and_none_with_those_to_come():
    run = train_perceptron(RICH, 40, 0)
    assert run.left[0].shape == run.right[0].shape == (7, 12)
    for cosines in (run.left[0], run.right[0]):
        assert ((cosines >= 0) & (cosines <= 1 + 1e-12)).all()
        for t in range(7):
            assert not cosines[t, 2 * t :].any()
            assert (cosines[t, : 2 * t] > 0).all()
    # M phi = z a (b.phi) + ...: a large spike turns both vectors towards itself.
    assert run.left[0][6, 2:].mean() > 0.5


def test_both_ways_to_singular_values_agree():
    matrix = np.random.default_rng(0).normal(size=(420, 310)) / np.sqrt(310)
    u, s, v = top_singular(matrix, 3)
    dense_u, dense_s, dense_vh = np.linalg.svd(matrix)
    assert s == pytest.approx(dense_s[:3], rel=1e-9)
    assert abs(u @ dense_u[:, 0]) == pytest.approx(1, abs=1e-6)
    assert abs(v @ dense_vh[0]) == pytest.approx(1, abs=1e-6)
    small = top_singular(matrix[:50], 2)
    assert small[1] == pytest.approx(np.linalg.svd(matrix[:50], compute_uv=False)[:2], rel=1e-12)


def test_runs_come_from_their_seed_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, two, other = (train_perceptron(RICH, 30, seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(one.losses, two.losses)
    assert not np.allclose(one.losses[1:], other.losses[1:])


def test_centring_starts_at_zero_output():
    assert not train_perceptron(RICH, 30, 0).outputs[0].any()
    assert train_perceptron(RICH, 30, 0, centred=False).outputs[0].any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: train_perceptron(replace(RICH, activation=Activation("mine", np.tanh, np.tanh)), 30), "mine"),
        (lambda: train_perceptron(RICH, 2), "larger width"),
        (lambda: train_perceptron(RICH, 30, top=0), "top=0"),
        (lambda: train_perceptrons(RICH, 30, 1), "at least 2"),
        (lambda: train_perceptrons(RICH, 30, [1, 1]), "different"),
        (lambda: on_fresh_bulk(train_perceptron(replace(RICH, steps=1), 30), layer=2), "layer=2"),
        (lambda: train_perceptrons(RICH, 30, 2).overlap("top", 1, 0), "left or right"),
        (lambda: train_perceptrons(RICH, 30, 2).kernel("A", 1, 0), "Phi or G"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


# --------------------------------------------------------------------------------------- against infinite width

THEORY = {
    "tanh": RICH,
    "erf, nu=2, sigma=.7": Problem("erf", K2, [1.0, -1.0], 3, 0.4, 6, nu=2, sigma=0.7),
    "linear": Problem("linear", K2, [1.0, -1.0], 5, 0.08, 6),
    "depth 3": Problem("tanh", K2, [1.0, -1.0], 3, 0.4, 8, depth=3),
    "batches of one": Problem("tanh", K2, [1.0, -1.0], 3, 0.3, 8, batch=1),
}


@cache
def eight(name):
    return train_perceptrons(THEORY[name], 400, 8)


@pytest.mark.parametrize("name", THEORY)
def test_networks_do_what_the_theory_says(name):
    """Eight networks of width 400. The mean lies within 4.5 standard errors (t of 7 degrees: one in 400) and a bias of 4/N."""
    problem = THEORY[name]
    networks, solution, t = eight(name), solve(problem, 2**13), problem.steps
    for s in range(1, t + 1):
        seen = networks.loss(s)
        assert abs(seen.estimate - solution.losses[0][s]) < 4.5 * seen.standard_error + 4 / 400 * solution.losses[0][s]
    checked = 0
    for layer in range(1, problem.depth):
        edge = problem.sigma * (1 + np.sqrt(problem.nu))
        z, blind = solution.outliers(t, layer)[0], solution.outliers(t, layer, True)[0]
        seen = networks.singular_value(t, layer)
        if len(z) and z[0] > edge + 0.1 * problem.sigma:
            assert abs(seen.estimate - z[0]) < 4.5 * seen.standard_error + 4 / 400 * z[0]
            # The naive answer lies far outside: the networks tell the two apart.
            naive = blind[0] if len(blind) else edge
            assert abs(seen.estimate - naive) > 6 * seen.standard_error
            checked += 1
        for kernel in ("Phi", "G"):
            entry = networks.kernel(kernel, len(solution.kernels(t, layer)[kernel][0]) - 1, 0, layer)
            value = solution.kernels(t, layer)[kernel][0][-1, 0]
            assert abs(entry.estimate - value) < 4.5 * entry.standard_error + 4 / 400 * abs(value)
    assert checked


def test_overlaps_are_those_of_the_theory():
    networks, ((left, _), (right, _)) = eight("tanh"), solve(RICH).overlaps(6)
    for k in (0, 3, 4):
        for side, value in (("left", left[k]), ("right", right[k])):
            seen = networks.overlap(side, 6, k)
            assert abs(seen.estimate - value) < 4.5 * seen.standard_error + 0.01
    assert abs(left[0] - right[0]) > 0.1, "the two sides differ, so that a swap would be seen"


def test_on_a_fresh_bulk_the_naive_answer_is_right():
    """The dependence of spikes on the bulk is all that the naive answer misses: .43 above the edge against .14."""
    networks, solution = eight("tanh"), solve(RICH)
    fresh = networks.of(lambda run: on_fresh_bulk(run, seed=11))
    naive, true = solution.outliers(6, 1, True)[0][0], solution.outliers(6)[0][0]
    assert abs(fresh.estimate - naive) < 4.5 * fresh.standard_error + 0.01
    assert abs(fresh.estimate - true) > 10 * fresh.standard_error
    seen = networks.singular_value(6)
    assert seen.unit == "network"
    assert seen.count == 8
    assert abs(seen.estimate - true) < 4.5 * seen.standard_error + 0.01
