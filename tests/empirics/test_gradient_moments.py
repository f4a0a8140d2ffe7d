"""Two routes to the pair sums, merging, and the formulas of deletion against deletion itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from empirics.alignment import GramSums, Moments
from empirics.alignment.moments import TILE_BYTES, block_means, cross_rows, gram_rows, tile_rows
from theory import InputError

SHAPES = [(12, 3), (9, 40), (60, 7), (5, 1)]
ESTIMATES = ("mean_squared", "mean_fourth", "quadratic", "quadratic_test", "trace_squared")


def gradients(n, d, seed=0):
    draws = torch.Generator().manual_seed(seed)
    return 0.4 + torch.randn(n, d, generator=draws, dtype=torch.float64) * torch.linspace(0.5, 2, d)


def close(a, b, relative=1e-12):
    a, b = np.asarray(a, float), np.asarray(b, float)
    return np.all(np.abs(a - b) <= relative * np.abs(b).max())


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("tile", [1, 4, 100])
def test_rows_against_the_whole_gram_matrix(n, d, tile):
    q = gradients(n, d)
    G = (q @ q.T).numpy().copy()
    f = np.diag(G).copy()
    np.fill_diagonal(G, 0)
    r = G.sum(1)
    for rows in (gram_rows(q, "gram", tile), gram_rows(q, "moments")):
        assert close(rows.r, r)
        assert close(rows.t, (G * G).sum(1))
        assert close(rows.g, G @ r)
        assert close(rows.f, f)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_one_pass_moments_give_the_same_estimates(n, d):
    q = gradients(n, d)
    tiled, passed = gram_rows(q, "gram", 5).sums(), Moments.of(q).sums()
    for name in (*ESTIMATES, "trace"):
        scale = max(abs(getattr(tiled, each)) for each in ("mean_fourth", "trace_squared"))
        assert abs(getattr(passed, name) - getattr(tiled, name)) <= 1e-12 * max(scale, abs(getattr(tiled, name)))


@pytest.mark.parametrize(("n", "m", "d"), [(6, 9, 4), (30, 3, 8), (7, 7, 20)])
@pytest.mark.parametrize("tile", [1, 4, 100])
def test_cross_rows_against_the_whole_matrix(n, m, d, tile):
    q, p = gradients(n, d), gradients(m, d, seed=1)
    H = (q @ p.T).numpy()
    r, c = H.sum(1), H.sum(0)
    truth = (r, (H * H).sum(1), H @ c, c, (H * H).sum(0), H.T @ r)
    for rows in (cross_rows(q, p, "gram", tile), cross_rows(q, p, "moments")):
        assert all(close(a, b) for a, b in zip(vars(rows).values(), truth, strict=True))
    merged, tiled = Moments.of(q).cross(Moments.of(p)), cross_rows(q, p).sums()
    assert all(close(a, b) for a, b in zip(vars(merged).values(), vars(tiled).values(), strict=True))


@given(st.permutations(range(5)), st.lists(st.integers(1, 6), min_size=5, max_size=5), st.integers(0, 2**20))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_merging_in_any_order_and_grouping(order, sizes, seed):
    parts = [gradients(size, 4, seed + k) for k, size in enumerate(sizes)]
    whole = Moments.of(torch.cat(parts))
    left = right = None
    for k in order:
        left = Moments.of(parts[k]) if left is None else left + Moments.of(parts[k])
        right = Moments.of(parts[k]) if right is None else Moments.of(parts[k]) + right
    nested = (Moments.of(parts[0]) + Moments.of(parts[1])) + (
        Moments.of(parts[2]) + (Moments.of(parts[3]) + Moments.of(parts[4]))
    )
    for merged in (left, right, nested):
        assert merged.n == whole.n
        assert all(close(vars(merged)[name], vars(whole)[name]) for name in vars(whole))


def test_float32_gradients_are_added_up_in_float64():
    # 1 + 2^-30 is lost in float32: 10^4 such squares must not be.
    q = torch.full((10_000, 1), 1 + 2**-12, dtype=torch.float32)
    assert Moments.of(q).f1 == pytest.approx(10_000 * (1 + 2**-12) ** 2, rel=1e-14)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_deletion_formulas_against_deletion(n, d):
    q = gradients(n, d)
    (deleted,) = gram_rows(q).deleted()
    brute = [gram_rows(torch.cat([q[:i], q[i + 1 :]])).sums() for i in range(n)]
    assert deleted.n == n - 1
    for name in ("s1", "s2", "s3", "f1"):
        assert close(getattr(deleted, name), [getattr(s, name) for s in brute])


def test_cross_deletion_formulas_against_deletion():
    q, p = gradients(6, 3), gradients(8, 3, seed=1)
    train, test = cross_rows(q, p).deleted()
    fewer_train = [cross_rows(torch.cat([q[:i], q[i + 1 :]]), p).sums() for i in range(6)]
    fewer_test = [cross_rows(q, torch.cat([p[:j], p[j + 1 :]])).sums() for j in range(8)]
    for deleted, brute, sizes in ((train, fewer_train, (5, 8)), (test, fewer_test, (6, 7))):
        assert (deleted.n, deleted.m) == sizes
        for name in ("s", "rr", "cc", "ss"):
            assert close(getattr(deleted, name), [getattr(s, name) for s in brute])


def test_block_means():
    q = gradients(23, 5)
    mean, deleted = block_means(q, 7)
    blocks = [gram_rows(q[k : k + 7]).sums() for k in (0, 7, 14)]
    for name in (*ESTIMATES, "trace"):
        values = np.array([getattr(s, name) for s in blocks])
        assert close(getattr(mean, name), values.mean())
        assert close(getattr(deleted, name), [(values.sum() - v) / 2 for v in values])
    assert close(mean.mean_variance(), np.var([s.mean_squared for s in blocks], ddof=1) / 3)


def test_tiles_stay_small():
    for n in (10, 1000, 10**6, 10**8):
        assert tile_rows(n) == 1 or tile_rows(n) * n * 8 <= TILE_BYTES


def test_estimates_over_distinct_indices_by_brute_force():
    # A second algorithm for the four averages: loops over distinct index tuples.
    n = 6
    q = gradients(n, 3).numpy()
    G = q @ q.T
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    triples = [(i, j, k) for i, j in pairs for k in range(n) if k not in (i, j)]
    fours = [(i, j, k, m) for i, j, k in triples for m in range(n) if m not in (i, j, k)]
    shared = np.mean([G[i, j] * G[i, k] for i, j, k in triples])
    C = np.mean([G[i, j] * G[k, m] for i, j, k, m in fours])
    s = gram_rows(torch.from_numpy(q)).sums()
    assert s.mean_squared == pytest.approx(np.mean([G[i, j] for i, j in pairs]), rel=1e-13)
    assert s.mean_fourth == pytest.approx(C, rel=1e-12)
    assert s.quadratic == pytest.approx(shared - C, rel=1e-12)
    assert s.trace_squared == pytest.approx(np.mean([G[i, j] ** 2 for i, j in pairs]) - 2 * shared + C, rel=1e-12)


def test_refusals():
    one = Moments.of(torch.ones(1, 2))
    with pytest.raises(InputError, match="at least 4 samples, got 3"):
        (one + one + one).sums()
    with pytest.raises(InputError, match="at least 2 samples on each side, got 1 and 1"):
        one.cross(one)
    with pytest.raises(InputError, match="2 and 3 dimensions"):
        one + Moments.of(torch.ones(1, 3))
    with pytest.raises(InputError, match=r"shape \(n, d\)"):
        Moments.of(torch.ones(3))


def test_sums_take_arrays():
    s = GramSums(4, np.array([12.0, 0.0]), np.array([12.0, 0.0]), np.array([36.0, 0.0]), np.array([4.0, 0.0]))
    assert s.mean_fourth.tolist() == [1.0, 0.0]
