"""Cumulants of a product of two independent means, X = mu_M . g_K, to any order.

Leonov and Shiryaev: give X^p one edge per factor, joining a training slot to a test slot. Then kappa_p(X) is the sum over
pairs of set partitions of the edges, one for the training slots and one for the test slots, whose join is a single block,
of the contraction of the blocks' cumulants. A block of size 1 is a mean, of size 2 a covariance; if no block is larger
the contraction is a path (b'ST...a) or a cycle (tr STST...). At p = 2 no block can be larger: the variance holds for any
law with second moments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

from sympy import Expr, Integer, Symbol, binomial, expand, ff
from sympy.utilities.iterables import multiset_partitions

from .words import Word

__all__ = [
    "contraction",
    "cumulant_of_mean",
    "cumulant_pairs",
    "cycle_word",
    "kappa",
    "path_word",
    "second_moment_by_coincidences",
]

Partition = list[list[int]]


def cumulant_of_mean(order: int, count: Expr) -> Expr:
    """kappa_r of the mean of `count` independent copies, in the single draw's cumulant `k_r`, from moments alone.

    E[(sum q)^s] is expanded over index coincidences (a partition of the s factors into j groups of equal index has
    count (count-1) ... (count-j+1) placements), moments are written in cumulants, and the moments of the mean are turned
    back into a cumulant. Nothing here knows that cumulants of independent sums add: the result proves it.

    >>> from sympy import symbols
    >>> M = symbols("M", positive=True)
    >>> cumulant_of_mean(3, M)
    k_3/M**2
    """
    single = [Integer(1)] + [_moment(s, lambda r: Symbol(f"k_{r}")) for s in range(1, order + 1)]
    means: list[Expr] = [Integer(1)]
    for s in range(1, order + 1):
        total: Expr = Integer(0)
        for blocks in multiset_partitions(list(range(s))):
            placements = expand(ff(count, len(blocks)), func=True)
            term: Expr = placements
            for block in blocks:
                term *= single[len(block)]
            total += term
        means.append(total / count**s)
    cumulants: list[Expr] = [Integer(0)]
    for s in range(1, order + 1):  # k_s = m_s - sum_{r<s} C(s-1, r-1) k_r m_{s-r}
        lower = sum((binomial(s - 1, r - 1) * cumulants[r] * means[s - r] for r in range(1, s)), Integer(0))
        cumulants.append(expand(means[s] - lower))
    return cumulants[order]


def _moment(order: int, cumulant: Callable[[int], Expr]) -> Expr:
    total: Expr = Integer(0)
    for blocks in multiset_partitions(list(range(order))):
        term: Expr = Integer(1)
        for block in blocks:
            term *= cumulant(len(block))
        total += term
    return total


def cumulant_pairs(order: int, connected: bool = True) -> list[tuple[Partition, Partition]]:
    """All pairs of set partitions of the `order` edges, or only those whose join is one block."""
    partitions: list[Partition] = [
        [[int(e) for e in block] for block in p] for p in multiset_partitions(list(range(order)))
    ]
    return [pair for pair in product(partitions, partitions) if not connected or _is_connected(order, *pair)]


def _is_connected(order: int, left: Partition, right: Partition) -> bool:
    reached, frontier = {0}, [0]
    while frontier:
        edge = frontier.pop()
        for block in [b for b in left + right if edge in b]:
            frontier += [e for e in block if e not in reached]
            reached |= set(block)
    return len(reached) == order


def contraction(left: Partition, right: Partition) -> Expr:
    """The scalar that a pair of partitions contracts to, as a word in a, b (means), S, T (covariances), k (cumulants).

    A word and its reversal are one: b'STa = a'TSb. Connected pairs only; a block of size 3 is supported at order 3.

    >>> contraction([[0, 1]], [[0], [1]]), contraction([[0, 1]], [[0, 1]]), contraction([[0], [1]], [[0, 1]])
    (b'Sb, tr[ST], a'Ta)
    """
    if max(map(len, left + right)) > 2:
        return _third_order_word(left, right)
    sides = [{e: block for block in side for e in block} for side in (left, right)]
    start = next(((side, block) for side, part in enumerate((left, right)) for block in part if len(block) == 1), None)
    side, edge = (0, left[0][0]) if start is None else (start[0], start[1][0])
    letters = []
    if start is not None:  # a path: begin at an end, alternate sides until the other end
        letters.append("ab"[side])
        side = 1 - side
        while len(block := sides[side][edge]) == 2:
            letters.append("ST"[side])
            edge = next(e for e in block if e != edge)
            side = 1 - side
        letters.append("ab"[side])
        return path_word(letters)
    first = edge
    while True:  # a cycle: alternate until the first edge returns on the first side
        letters.append("ST"[side])
        edge = next(e for e in sides[side][edge] if e != edge)
        side = 1 - side
        if edge == first and side == 0:
            return cycle_word(letters)


def path_word(letters: list[str]) -> Expr:
    """b'Sb and its like; the smaller of the word and its reversal."""
    ends, middle = (letters[0], letters[-1]), letters[1:-1]
    forward, backward = [ends[0], *middle, ends[1]], [ends[1], *middle[::-1], ends[0]]
    # Read from b where the ends differ, as the notes write it: b'STa.
    chosen = max(forward, backward) if middle and ends[0] != ends[1] else min(forward, backward)
    head, tail = chosen[0], "".join(chosen[1:])
    return Word(f"{head}'{tail}", rf"{head}^{{\top}}{' '.join(chosen[1:])}")


def cycle_word(letters: list[str]) -> Expr:
    """tr[ST] and its like, letters alternating from S."""
    pairs = len(letters) // 2
    body, power = ("ST", "") if pairs == 1 else ("(ST)", f"^{pairs}")
    tex = "ST" if pairs == 1 else rf"(ST)^{{{pairs}}}"
    return Word(f"tr[{body}{power}]", rf"\operatorname{{tr}}\left({tex}\right)")


def _third_order_word(left: Partition, right: Partition) -> Expr:
    if len(left) == 1 and len(right) == 1 and len(left[0]) == 3:
        return Word("<k3,k3'>", r"\langle\kappa_3,\kappa_3'\rangle")
    big, other = (0, right) if len(left) == 1 else (1, left)
    if sum(map(len, other)) != 3:
        raise ValueError("blocks larger than a covariance are supported at order 3 only")
    mean, covariance, prime = ("b", "T", "") if big == 0 else ("a", "S", "'")
    arguments = [mean if len(block) == 1 else covariance for block in sorted(other, key=len, reverse=True)]
    return Word(f"k3{prime}[{','.join(arguments)}]", rf"\kappa_3{prime}[{','.join(arguments)}]")


def kappa(
    order: int,
    M: Expr,
    K: Expr,
    gaussian: bool = True,
    divisor: Callable[[int], int] = lambda size: size - 1,
    connected: bool = True,
) -> Expr:
    """kappa_order(mu_M . g_K) for training law (a, S) and test law (b, T).

    `gaussian` drops blocks larger than 2 (at orders 1 and 2 there are none). `divisor` is the exponent of the sample size
    in the cumulant of a mean and `connected` the restriction to connected pairs: the two axioms, open to be broken.

    >>> from sympy import symbols
    >>> M, K = symbols("M K", positive=True)
    >>> kappa(3, M, K)
    6*(b'STa)/(K*M)
    """
    words: Counter[Expr] = Counter()
    for left, right in cumulant_pairs(order, connected):
        if gaussian and max(map(len, left + right)) > 2:
            continue
        term = _disconnected(left, right, order) if not connected else contraction(left, right)
        for block in left:
            term *= M ** -divisor(len(block))
        for block in right:
            term *= K ** -divisor(len(block))
        words[term] += 1
    return expand(sum((count * term for term, count in words.items()), Integer(0)))


def _disconnected(left: Partition, right: Partition, order: int) -> Expr:
    """The contraction of a pair that may fall apart: the product over the components of its join."""
    remaining, result = set(range(order)), Integer(1)
    while remaining:
        component = {min(remaining)}
        while grown := {e for b in left + right if component & set(b) for e in b} - component:
            component |= grown
        relabel = {edge: i for i, edge in enumerate(sorted(component))}
        parts = [[[relabel[e] for e in b] for b in side if b[0] in component] for side in (left, right)]
        result *= contraction(*parts)
        remaining -= component
    return result


def second_moment_by_coincidences(M: Expr, K: Expr) -> Expr:
    """E[X^2] by the other route: (MK)^-2 times the sum over indices i, j (training) and k, l (test).

    E[q_i q_j'] = aa' + [i=j] S and E[r_k r_l'] = bb' + [k=l] T. Each of the four patterns of coincidence has
    a falling-factorial number of placements and contributes tr of the product of these two matrices.

    >>> from sympy import symbols
    >>> M, K = symbols("M K", positive=True)
    >>> second_moment_by_coincidences(M, K)
    (a'b)**2 + (b'Sb)/M + (a'Ta)/K + tr[ST]/(K*M)
    """
    ab, bSb, aTa, trST = (
        contraction(*p) for p in ([[[0]], [[0]]], [[[0, 1]], [[0], [1]]], [[[0], [1]], [[0, 1]]], [[[0, 1]]] * 2)
    )
    total: Any = Integer(0)
    for same_train, same_test in product((False, True), repeat=2):
        i, k = int(same_train), int(same_test)
        placements = (M if i else M * (M - 1)) * (K if k else K * (K - 1))
        total += placements * (ab**2 + i * bSb + k * aTa + i * k * trST)
    return expand(total / (M * K) ** 2)
