"""Outliers, overlaps and norms: second routes, classical special cases, and one actual matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics.mlp.outliers import halves, location, spectrum
from numerics.mlp.training import Matrices


def random_system(rng, n):
    """Strictly causal A, causal B, positive semidefinite Phi and G."""
    roots = rng.normal(size=(2, n, n + 1)) / np.sqrt(n)
    Phi, G = (root @ root.T for root in roots)
    A, B = np.tril(rng.normal(size=(n, n)), -1) * 0.5, np.tril(rng.normal(size=(n, n))) * 0.5
    return Matrices(Phi, G, A, B), rng.normal(size=n)


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 7])
def test_outliers_are_the_zeros_of_the_probes_own_determinant(seed):
    """Second route: m_a(z), m_b(z) from their quadratic, det of the 4n x 4n site equations, and a root search in z."""
    from scipy.optimize import brentq

    rng = np.random.default_rng(seed)
    n, nu, sigma = 3, rng.uniform(0.4, 3), rng.uniform(0.5, 1.5)
    m, c = random_system(rng, n)
    c *= 3
    found = spectrum(m, c, n, nu, sigma)
    C, zero, one = np.diag(c), np.zeros((n, n)), np.eye(n)

    def determinant(z):
        # m_b = 1/(z - nu s m_a) and m_a = 1/(z - s m_b), the root with z m_a -> 1
        s = sigma**2
        a, b = z * nu * s, z**2 + (nu - 1) * s
        m_a = (b - np.sqrt(b**2 - 4 * a * z)) / (2 * a)
        m_b = 1 / (z - nu * s * m_a)
        # alpha = m_b (A beta + Phi (q + C beta)), p = m_b A' (q + C beta), and the same on the other side
        system = np.block(
            [
                [one, zero, -m_b * (m.A + m.Phi @ C), -m_b * m.Phi],
                [zero, one, -m_b * m.A.T @ C, -m_b * m.A.T],
                [-m_a * (m.B + m.G @ C), -m_a * m.G, one, zero],
                [-m_a * m.B.T @ C, -m_a * m.B.T, zero, one],
            ]
        )
        return np.linalg.det(system)

    edge = sigma * (1 + np.sqrt(nu))
    grid = np.linspace(edge * (1 + 1e-9), 20 * edge, 4001)
    cells = np.flatnonzero(np.diff(np.sign([determinant(z) for z in grid])) != 0)
    roots = [brentq(determinant, *grid[i : i + 2], xtol=1e-13) for i in cells]
    stated = location(found.upper[found.upper > found.threshold], nu, sigma)
    assert len(stated) == len(roots) > 0
    for z in roots:
        assert np.min(np.abs(stated - z)) < 1e-9 * z
    for z in stated:
        assert determinant(z * (1 - 1e-7)) * determinant(z * (1 + 1e-7)) < 0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_level_2_symmetries(n):
    rng = np.random.default_rng(n)

    def polynomial(A, B, Phi, G, c):
        MA, MB = halves(A, B, Phi, G, c)
        return np.poly(MA @ MB)

    for _ in range(50):
        m, c = random_system(rng, n)
        s = rng.uniform(0.3, 3)
        reference = polynomial(m.A, m.B, m.Phi, m.G, c)
        for other in (
            polynomial(m.B, m.A, m.G, m.Phi, c),
            polynomial(s * m.A, m.B / s, m.Phi, m.G / s**2, s * c),
            polynomial(m.A / s, m.B * s, m.Phi / s**2, m.G, s * c),
        ):
            assert other == pytest.approx(reference, rel=1e-8, abs=1e-8 * np.abs(reference).max())


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    theta=st.floats(0.2, 6),
    nu=st.floats(0.2, 5),
    sigma=st.floats(0.4, 2),
)
def test_one_independent_spike_is_the_classical_spiked_matrix(theta, nu, sigma):
    """c g phi'/N_in with <phi^2> = 1, nu <g^2> = 1 has strength c = theta sigma; threshold theta^4 > nu."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    found = spectrum(Matrices(one, one, zero, zero), np.array([theta * sigma]), 1, nu, sigma)
    z = location(found.upper[found.upper > found.threshold], nu, sigma)
    if abs(theta**4 - nu) < 1e-6:
        return
    if theta**4 <= nu:
        assert len(z) == 0
        return
    assert z == pytest.approx([sigma * np.sqrt((theta**2 + 1) * (theta**2 + nu)) / theta], rel=1e-9)
    # Benaych-Georges and Nadakuditi: squared overlaps of both singular vectors with the spike's
    left = 1 - nu * (1 + theta**2) / (theta**2 * (theta**2 + nu))
    right = 1 - (nu + theta**2) / (theta**2 * (theta**2 + 1))
    assert found.left[0] ** 2 == pytest.approx(left, rel=1e-6, abs=1e-9)
    assert found.right[0] ** 2 == pytest.approx(right, rel=1e-6, abs=1e-9)
    assert found.norm_gap < 1e-9


def test_a_multiplicative_spike_is_a_spiked_covariance():
    for nu, z, naive in ((0.5, 2.02240, 1.729), (1, 2.64009, 2.114), (2, 3.56792, 2.726)):
        one = np.ones((1, 1))
        m = Matrices(one, nu * one, 0 * one, nu * one)
        found, blind = (spectrum(m, np.array([1.4]), 1, nu, 1, independent) for independent in (False, True))
        assert location(found.upper[0], nu, 1) == pytest.approx(z, abs=1e-5)
        assert location(blind.upper[0], nu, 1) == pytest.approx(naive, abs=1e-3)
        assert found.norm_gap < 1e-12


def test_the_spectrum_of_an_actual_matrix_with_a_dependent_spike():
    """z from the formula against the singular value of one drawn matrix: nothing of the theory is in it."""
    rng = np.random.default_rng(0)
    N, nu, c = 1200, 0.5, 1.4
    W = rng.normal(size=(int(nu * N), N)) / np.sqrt(N)
    x = rng.normal(size=N)
    g = W @ x
    top = np.linalg.norm(W + c / N * np.outer(g, x), 2)
    one = np.ones((1, 1))
    found = spectrum(Matrices(one, nu * one, 0 * one, nu * one), np.array([c]), 1, nu, 1)
    # fluctuations of the spike's strength are of relative order 1/sqrt(N)
    assert location(found.upper[0], nu, 1) == pytest.approx(top, abs=4 * top / np.sqrt(N))
    fresh = rng.normal(size=W.shape) / np.sqrt(N)
    blind = spectrum(Matrices(one, nu * one, 0 * one, nu * one), np.array([c]), 1, nu, 1, True)
    naive = location(blind.upper[0], nu, 1)
    assert naive == pytest.approx(np.linalg.norm(fresh + c / N * np.outer(g, x), 2), abs=4 * top / np.sqrt(N))


def test_the_edge_is_where_outliers_begin():
    for nu, sigma in ((1, 1), (0.3, 2), (4, 0.5)):
        threshold = sigma**2 * np.sqrt(nu)
        assert location(threshold, nu, sigma) == pytest.approx(sigma * (1 + np.sqrt(nu)), rel=1e-12)
        assert location(-threshold, nu, sigma) == pytest.approx(sigma * abs(1 - np.sqrt(nu)), rel=1e-6, abs=1e-7)


def test_both_norms_agree_on_random_systems():
    seen = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m, c = random_system(rng, 4)
        found = spectrum(m, c, 4, rng.uniform(0.4, 2.5), rng.uniform(0.5, 1.5))
        if found.left is not None and np.isfinite(found.norm_gap):
            assert found.norm_gap < 1e-9
            seen += 1
    assert seen > 20
