"""The sums over pairs of gradients, by two routes, and what deleting one sample makes of them.

Tiles of the Gram matrix take O(n^2 d) work and never more than a strip of it in memory; moments of q take O(n d^2) work
and can be merged across batches and machines. The tests hold one against the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theory import InputError

from .pair_estimates import BlockMeans, CrossSums, GramSums

__all__ = ["CrossRows", "GramRows", "Moments", "block_means", "cross_rows", "gram_rows", "tile_rows"]

TILE_BYTES = 2**26


@dataclass(frozen=True)
class Moments:
    """What one pass over gradients must keep, O(d^2), so that the sums of pairs can be had afterwards.

    `total` = sum q (d,), `second` = sum q q' (d, d), `cubic` = sum |q|^2 q (d,), `f1` = sum |q|^2, `f2` = sum |q|^4.
    Adding two is merging: batches, processes and machines in any order. Everything is kept in float64; entries of q
    below about 1e-77 would underflow in fourth powers.

    >>> import torch
    >>> half = Moments.of(torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    >>> (half + half).sums()
    GramSums(n=4, s1=14.0, s2=18.0, s3=50.0, f1=6.0)
    """

    n: int
    total: Tensor
    second: Tensor
    cubic: Tensor
    f1: float
    f2: float

    @classmethod
    def of(cls, q: Tensor) -> Moments:
        """The moments of gradients (n, d), n >= 1."""
        if q.dim() != 2 or not len(q):
            raise InputError(f"moments need gradients of shape (n, d), n >= 1; got {tuple(q.shape)}")
        q = q.to(torch.float64)
        squares = (q * q).sum(1)
        return cls(len(q), q.sum(0), q.T @ q, squares @ q, float(squares.sum()), float(squares @ squares))

    def __add__(self, other: Moments) -> Moments:
        if len(self.total) != len(other.total):
            raise InputError(f"moments of {len(self.total)} and {len(other.total)} dimensions cannot be merged")
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.second + other.second,
            self.cubic + other.cubic,
            self.f1 + other.f1,
            self.f2 + other.f2,
        )

    def sums(self) -> GramSums:
        """The Gram sums of everything merged so far; at least 4 samples."""
        if self.n < 4:
            raise InputError(f"the U-statistics need at least 4 samples, got {self.n}")
        s, W = self.total, self.second
        s3 = s @ W @ s - 2 * (s @ self.cubic) + self.f2
        return GramSums(self.n, float(s @ s) - self.f1, float((W * W).sum()) - self.f2, float(s3), self.f1)

    def cross(self, test: Moments) -> CrossSums:
        """The sums of train (self) against test gradients; at least 2 of each."""
        if min(self.n, test.n) < 2:
            raise InputError(f"the cross-sample form needs at least 2 samples on each side, got {self.n} and {test.n}")
        a, b = self.total, test.total
        rr, cc = float(b @ self.second @ b), float(a @ test.second @ a)
        return CrossSums(self.n, test.n, float(a @ b), rr, cc, float((self.second * test.second).sum()))


@dataclass(frozen=True)
class GramRows:
    """Row sums of the Gram matrix without its diagonal, each (n,): what deleting one sample changes.

    r_i = sum_j G_ij, t_i = sum_j G_ij^2, g_i = sum_j G_ij r_j, and f_i = |q_i|^2, the diagonal itself.
    """

    r: np.ndarray
    t: np.ndarray
    g: np.ndarray
    f: np.ndarray

    def sums(self) -> GramSums:
        """The sums over all n samples."""
        return GramSums(len(self.r), *(float(each.sum()) for each in (self.r, self.t, self.r**2, self.f)))

    def deleted(self) -> tuple[GramSums, ...]:
        """The sums without sample i, for every i at once; one entry, as there is one sample to delete from."""
        all_ = self.sums()
        s3 = all_.s3 - self.r**2 - 2 * self.g + self.t
        return (GramSums(all_.n - 1, all_.s1 - 2 * self.r, all_.s2 - 2 * self.t, s3, all_.f1 - self.f),)


@dataclass(frozen=True)
class CrossRows:
    """Row and column sums of H = Q P', entries of H summed and of H^2: over rows r, t (n,), over columns c, u (m,).

    g = H c (n,) and h = H' r (m,) say how deleting a row changes the column sums, and a column the row sums.
    """

    r: np.ndarray
    t: np.ndarray
    g: np.ndarray
    c: np.ndarray
    u: np.ndarray
    h: np.ndarray

    def sums(self) -> CrossSums:
        """The sums over all samples."""
        r, c = self.r, self.c
        return CrossSums(len(r), len(c), float(r.sum()), float(r @ r), float(c @ c), float(self.t.sum()))

    def deleted(self) -> tuple[CrossSums, ...]:
        """The sums without train sample i, for every i; and without test sample j, for every j."""
        a = self.sums()
        train = (a.s - self.r, a.rr - self.r**2, a.cc - 2 * self.g + self.t, a.ss - self.t)
        test = (a.s - self.c, a.rr - 2 * self.h + self.u, a.cc - self.c**2, a.ss - self.u)
        return CrossSums(a.n - 1, a.m, *train), CrossSums(a.n, a.m - 1, *test)


def tile_rows(n: int) -> int:
    """How many rows of a matrix with n columns fit into one tile of 64 MiB."""
    return max(1, TILE_BYTES // (8 * n))


def gram_rows(q: Tensor, route: str = "gram", tile: int | None = None) -> GramRows:
    """Row sums of the Gram matrix of q (n, d), float64, without ever storing n x n numbers.

    `route` "gram" forms `tile` rows of it at a time (as many as fit into 64 MiB); "moments" takes t_i from
    q_i' (sum q q') q_i, which costs less where d < n. g = G r follows from Q' r on either.

    >>> import torch
    >>> gram_rows(torch.eye(3, dtype=torch.float64) + 1).r.tolist()
    [10.0, 10.0, 10.0]
    """
    f = (q * q).sum(1)
    if route == "moments":
        r, t = q @ q.sum(0) - f, ((q @ (q.T @ q)) * q).sum(1) - f * f
    else:
        r, t = torch.empty_like(f), torch.empty_like(f)
        step = tile or tile_rows(len(q))
        for start in range(0, len(q), step):
            rows = slice(start, start + step)
            block = q[rows] @ q.T
            block.diagonal(start).zero_()
            r[rows], t[rows] = block.sum(1), (block * block).sum(1)
    g = q @ (r @ q) - f * r
    return GramRows(*(each.cpu().numpy() for each in (r, t, g, f)))


def cross_rows(q: Tensor, p: Tensor, route: str = "gram", tile: int | None = None) -> CrossRows:
    """Row and column sums of H = Q P' for q (n, d) and p (m, d), float64; routes as in `gram_rows`."""
    r, c = q @ p.sum(0), p @ q.sum(0)
    if route == "moments":
        t, u = ((q @ (p.T @ p)) * q).sum(1), ((p @ (q.T @ q)) * p).sum(1)
    else:
        t, u = torch.empty_like(r), torch.zeros_like(c)
        step = tile or tile_rows(len(p))
        for start in range(0, len(q), step):
            block = (q[start : start + step] @ p.T).square_()
            t[start : start + step] = block.sum(1)
            u += block.sum(0)
    return CrossRows(*(each.cpu().numpy() for each in (r, t, q @ (c @ p), c, u, p @ (r @ q))))


def block_means(q: Tensor, block: int) -> tuple[BlockMeans, BlockMeans]:
    """Averages over the blocks of `block` successive samples of q (n, d), and the same with one block deleted (arrays).

    A remainder that fills no block is left out.

    >>> import torch
    >>> block_means(torch.ones(10, 1, dtype=torch.float64), 4)[0].mean_squared
    1.0
    """
    count = len(q) // block
    step = max(1, TILE_BYTES // (8 * block * block))
    parts = []
    for blocks in q[: count * block].reshape(count, block, -1).split(step):
        G = blocks @ blocks.mT
        f1 = G.diagonal(dim1=1, dim2=2).sum(1)
        G.diagonal(dim1=1, dim2=2).zero_()
        r = G.sum(2)
        parts.append(torch.stack([r.sum(1), (G * G).sum((1, 2)), (r * r).sum(1), f1], 1))
    each = GramSums(block, *torch.cat(parts).cpu().numpy().T)
    estimates = (each.mean_squared, each.mean_fourth, each.quadratic, each.trace_squared, each.trace)
    variance = float(each.mean_squared.var(ddof=1)) / count
    deleted = ((e.sum() - e) / (count - 1) for e in estimates)
    return BlockMeans(*(float(e.mean()) for e in estimates), variance), BlockMeans(*deleted, variance)
