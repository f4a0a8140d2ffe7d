"""Measured misalignment against exact enumeration of the subsets of small pools."""

from itertools import combinations

import pytest
import torch

from empirics.alignment import resampled_misalignment
from empirics.alignment.resampling import _subsets
from theory import InputError

POOL = torch.tensor([[1.0, 2], [0, -3], [4, 1], [-2, 2], [1, 1], [3, -1], [0, 5]], dtype=torch.float64)
OTHERS = torch.tensor([[2.0, 1], [3, 1], [1, 0], [2, 0], [3, 2], [1, 1]], dtype=torch.float64)
RESAMPLES = 4000


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def disjoint(pool, M, K):
    for train in combinations(range(len(pool)), M):
        rest = [i for i in range(len(pool)) if i not in train]
        for test in combinations(rest, K):
            yield float(pool[list(train)].sum(0) @ pool[list(test)].sum(0)) / (M * K)


def across(pool, others, M, K):
    for train in combinations(range(len(pool)), M):
        for test in combinations(range(len(others)), K):
            yield float(pool[list(train)].sum(0) @ others[list(test)].sum(0)) / (M * K)


@pytest.mark.parametrize(("M", "K"), [(2, 3), (1, 1), (3, 4)])
def test_frequency_mean_and_variance_of_one_pool(M, K):
    products = torch.tensor(list(disjoint(POOL, M, K)), dtype=torch.float64)
    truth = float((products <= 0).double().mean())
    seen = resampled_misalignment(POOL, M, K, RESAMPLES, seed=0)
    assert abs(seen.z(truth)) < 3.5
    assert seen.interval[0] <= seen.estimate <= seen.interval[1]
    got = seen.settings
    assert got["pool_mean"] == pytest.approx(float(products.mean()), rel=1e-12)
    assert got["pool_variance"] == pytest.approx(float(products.var(correction=0)), rel=1e-12)
    spread = got["pool_variance"] ** 0.5
    assert abs(got["mean"] - got["pool_mean"]) < 3.5 * spread / RESAMPLES**0.5
    fourth = float((products - products.mean()).pow(4).mean())
    error = ((fourth - spread**4) / RESAMPLES) ** 0.5
    assert abs(got["variance"] - got["pool_variance"]) < 3.5 * error


def test_train_and_test_are_not_swapped():
    M, K = 1, 5
    products = torch.tensor(list(across(POOL, OTHERS, M, K)), dtype=torch.float64)
    swapped = torch.tensor(list(across(POOL, OTHERS, K, M)), dtype=torch.float64)
    truth, mutant = (float((x <= 0).double().mean()) for x in (products, swapped))
    seen = resampled_misalignment(POOL, M, K, RESAMPLES, seed=1, q_test=OTHERS)
    assert abs(seen.z(truth)) < 3.5
    assert abs(seen.z(mutant)) > 8
    assert seen.settings["pool_variance"] == pytest.approx(float(products.var(correction=0)), rel=1e-12)
    assert seen.settings["n_test"] == 6


def test_an_atom_at_zero_counts_as_misaligned():
    # X <= 0, integers: no tolerance. X is 1 for the pair {1, 1}, 0 otherwise: P(X <= 0) = 5/6, P(X < 0) = 0.
    q = torch.tensor([[1.0], [1.0], [0.0], [0.0]])
    seen = resampled_misalignment(q, 1, 1, RESAMPLES, seed=0)
    assert abs(seen.z(5 / 6)) < 3.5


def test_subsets_are_uniform_and_ordered():
    drawn = _subsets(4, 2, 12_000, torch.Generator().manual_seed(0))
    counts = torch.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=16)
    assert counts[[0, 5, 10, 15]].tolist() == [0, 0, 0, 0]
    others = counts[counts > 0].double()
    assert len(others) == 12
    chi_squared = float(((others - 1000) ** 2 / 1000).sum())
    assert chi_squared < 11 + 4 * 22**0.5


def test_no_hit_still_has_an_error():
    seen = resampled_misalignment(torch.ones(8, 2), 2, 2, 100, seed=0)
    assert seen.estimate == 0
    assert seen.standard_error > 0
    assert seen.interval == (0.0, pytest.approx(1 - 0.025 ** (1 / 100)))
    assert resampled_misalignment(-POOL[:, :1].abs() - 1, 1, 1, 50, 0, q_test=torch.ones(5, 1)).interval[1] == 1


def test_determined_by_the_seed_alone():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = resampled_misalignment(POOL, 2, 2, 500, seed=7)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert resampled_misalignment(POOL, 2, 2, 500, seed=7) == first
    assert resampled_misalignment(POOL, 2, 2, 500, seed=8).settings["mean"] != first.settings["mean"]
    assert first.seed == 7


def test_large_pools_are_drawn_in_chunks(monkeypatch):
    monkeypatch.setattr("empirics.alignment.resampling.CHUNK_BYTES", 8 * 7 * 300)
    products = torch.tensor(list(disjoint(POOL, 2, 3)), dtype=torch.float64)
    seen = resampled_misalignment(POOL, 2, 3, 1000, seed=0)
    assert seen.count == 1000
    assert abs(seen.z(float((products <= 0).double().mean()))) < 3.5


def test_refusals():
    for arguments, match in (
        ((POOL, 4, 4, 10, 0), "cannot draw M=4 and K=4 rows, 10 times, from 7"),
        ((POOL, 0, 4, 10, 0), "M=0"),
        ((POOL, 1, 1, 0, 0), "0 times"),
        ((POOL[:3], 1, 1, 10, 0), "at least 4 samples"),
        ((POOL[0], 1, 1, 10, 0), r"shape \(n, d\)"),
        ((POOL * float("inf"), 1, 1, 10, 0), "finite"),
    ):
        with pytest.raises(InputError, match=match):
            resampled_misalignment(*arguments)
    with pytest.raises(InputError, match="from 7 and 6"):
        resampled_misalignment(POOL, 2, 7, 10, 0, q_test=OTHERS)
    with pytest.raises(InputError, match="one d"):
        resampled_misalignment(POOL, 2, 2, 10, 0, q_test=OTHERS[:, :1])
