"""The spectral probe: singular vectors of a trained matrix as one more pair of products, and the box they lead to.

z a = M b, z b = M^T a with M = W + (1/N_in) sum_k c_k g_k phi_k^T, W the initial matrix. Outside the bulk a and b are a
linear program in W and W^T acting on the training fields (expand the resolvent in 1/z), so the rules of `dmft` hold for
training fields and probe jointly; the training fields never depend on the probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sympy import Add, Expr, Matrix, S, Symbol, expand, eye, zeros

from ..program import Matrix as GaussianMatrix
from ..program import Product
from ..words import Word, latex_of
from .dmft import Reading
from .network import Spike

__all__ = ["Probe", "box", "spectral_probe"]

M_A, M_B = Word("m_a"), Word("m_b")
U_B, R_A = Word("u_b"), Word("r_a")


def box(A: Matrix, B: Matrix, Phi: Matrix, G: Matrix, C: Matrix) -> tuple[Matrix, Matrix]:
    """(MA, MB): [[I, 0], [C, I]] [[A, Phi], [0, A']] and [[I, 0], [C, I]] [[B, G], [0, B']], each 2n x 2n.

    With X = (alpha, p + C alpha) and Y = (beta, q + C beta): X = m_b MA Y and Y = m_a MB X, so that outliers are the
    eigenvalues Lambda = 1/(m_a m_b) of MA MB.

    >>> one, zero, c = Matrix([[1]]), Matrix([[0]]), Matrix([[3]])
    >>> MA, MB = box(zero, zero, one, one, c)
    >>> sorted((MA * MB).eigenvals())
    [0, 9]
    """
    n = A.rows
    updates = Matrix.vstack(Matrix.hstack(eye(n), zeros(n)), Matrix.hstack(C, eye(n)))

    def half(response: Matrix, kernel: Matrix) -> Matrix:
        return updates * Matrix.vstack(Matrix.hstack(response, kernel), Matrix.hstack(zeros(n), response.T))

    return half(A, Phi), half(B, G)


@dataclass(frozen=True)
class Probe:
    """The level-2 equations of one trained matrix.

    `columns`, `rows` are the vectors that M acts on and produces; alpha_j = columns_j.b/N_in, beta_j = rows_j.a/N_in;
    p_j, q_j the responses of W b to W^T rows_j, and of W^T a to W columns_j. `equations` maps each of these unknowns to
    its value. `left`, `right` are a and b on their sites, `loops` the responses R_ba, R_ab of the probe to itself:
    m_a = 1/(z - R_ba), m_b = 1/(z - R_ab). `blocks` holds A, B, Phi, G, C over columns and rows.
    """

    columns: tuple[Symbol, ...]
    rows: tuple[Symbol, ...]
    alpha: tuple[Symbol, ...]
    beta: tuple[Symbol, ...]
    p: tuple[Symbol, ...]
    q: tuple[Symbol, ...]
    equations: dict[Symbol, Expr]
    left: Expr
    right: Expr
    loops: tuple[Expr, Expr]
    blocks: dict[str, Any]

    def system(self) -> Matrix:
        """The matrix of the homogeneous system in (alpha, p, beta, q): an outlier is where it is singular."""
        unknowns = [*self.alpha, *self.p, *self.beta, *self.q]
        return Matrix([[expand(x - self.equations[x]).coeff(y) for y in unknowns] for x in unknowns])

    def halves(self, count: int) -> tuple[Matrix, Matrix]:
        """(MA, MB), read off the equations of the first `count` columns and rows: X = m_b MA Y and Y = m_a MB X.

        X = (alpha, p + C alpha), Y = (beta, q + C' beta). What lies beyond `count` is left out: a field computed after
        the last spike has q = 0, since no spike responds to it.
        """
        C = self.blocks["C"][:count, :count]
        X, Y = ([Word(f"{letter}_{i}") for i in range(2 * count)] for letter in "XY")
        sides = []
        for direct, other, change, pair, factor in (
            ((self.alpha, self.p), (self.beta, self.q), C, Y, M_B),
            ((self.beta, self.q), (self.alpha, self.p), C.T, X, M_A),
        ):
            hat = Matrix(pair[count:]) - (C.T if change is C else C) * Matrix(pair[:count])
            inserted = dict(zip([*other[0][:count], *other[1][:count]], [*pair[:count], *hat], strict=True))
            inserted |= dict.fromkeys([*other[0][count:], *other[1][count:]], S.Zero)
            first, second = (Matrix([self.equations[x].xreplace(inserted) for x in each[:count]]) for each in direct)
            values = [*first, *(second + change * first)]
            sides.append(Matrix([[expand(value).coeff(y) / factor for y in pair] for value in values]))
        return sides[0], sides[1]

    def short_names(self) -> dict[Symbol, Symbol]:
        """Every symbol of the equations as a letter and an index: alpha_0, A_10, c_0."""
        names: dict[Symbol, Symbol] = {}
        families = {
            "phi": self.columns,
            "g": self.rows,
            "p": self.p,
            "q": self.q,
            "alpha": self.alpha,
            "beta": self.beta,
        }
        greek = {"phi": r"\varphi", "alpha": r"\alpha", "beta": r"\beta", "Phi": r"\Phi", "C": "c"}
        for letter, family in families.items():
            for i, symbol in enumerate(family):
                names[symbol] = Word(f"{letter}_{i}", f"{greek.get(letter, letter)}_{{{i}}}")
        for letter, block in self.blocks.items():
            # Below the diagonal first: a symmetric kernel's entry is called by the later time first.
            for i, j in sorted(product(range(block.rows), range(block.cols)), key=lambda ij: ij[1] > ij[0]):
                if block[i, j].is_Symbol and block[i, j] not in names:
                    index = f"{i}" if letter == "C" else f"{i}{j}"
                    name = Word(
                        f"{greek['C'] if letter == 'C' else letter}_{index}", f"{greek.get(letter, letter)}_{{{index}}}"
                    )
                    names[block[i, j]] = name
        return names


def spectral_probe(reading: Reading, matrix: GaussianMatrix, spikes: Sequence[Spike]) -> Probe:
    """Write the site equations of the probe and solve them; nothing but the rules of the reading is used.

    A response of a or b is the derivative of its site expression, by linearity a sum of the training fields' responses;
    an overlap with the probe's Gaussian part follows by Stein's identity <x r_a> = sum_s cov(r_a, r_s) <dx/dr_s>.
    Spikes may be any vectors of the program; arguments of products that are no spikes take part as well, since W b and
    W^T a respond to those.

    >>> from .network import Network
    >>> network = Network(steps=1)
    >>> probe = spectral_probe(Reading(network.program), network.matrices[0], network.spikes[0])
    >>> probe.loops
    (m_b*sigma**2, m_a*nu*sigma**2)
    >>> short = probe.short_names()
    >>> probe.equations[probe.q[0]].xreplace(short)
    B_00*(alpha_0*c_0*m_a + m_a*p_0)
    """
    ahead, back = reading.rules.forward(matrix), reading.rules.backward(matrix)
    forward, backward = reading.products(matrix, False), reading.products(matrix, True)
    columns = _unique([s.phi for s in spikes] + [line.argument for line in forward])
    rows = _unique([s.g for s in spikes] + [line.argument for line in backward])
    alpha = [Word(f"alpha({x})", rf"\alpha_{{{latex_of(x)}}}") for x in columns]
    beta = [Word(f"beta({g})", rf"\beta_{{{latex_of(g)}}}") for g in rows]
    p = [Word(f"p({g})", f"p_{{{latex_of(g)}}}") for g in rows]
    q = [Word(f"q({x})", f"q_{{{latex_of(x)}}}") for x in columns]
    # z a = W b + sum c alpha g with W b = u_b + R_ba a + sum p g, solved for a; likewise b.
    left: Any = M_A * U_B
    right: Any = M_B * R_A
    for one, each in zip(p, rows, strict=True):
        left += M_A * one * each
    for one, each in zip(q, columns, strict=True):
        right += M_B * one * each
    for spike in spikes:
        left += M_A * spike.c * alpha[columns.index(spike.phi)] * spike.g
        right += M_B * spike.c * beta[rows.index(spike.g)] * spike.phi
    of_column = {(x, line.argument): _response(reading, x, line, ahead) for x in columns for line in backward}
    of_row = {(g, line.argument): _response(reading, g, line, back) for g in rows for line in forward}
    equations: dict[Symbol, Expr] = {}
    for one, g in zip(p, rows, strict=True):
        equations[one] = Add(*(right.coeff(x) * of_column.get((x, g), 0) for x in columns))
    for one, x in zip(q, columns, strict=True):
        equations[one] = Add(*(left.coeff(g) * of_row.get((g, x), 0) for g in rows))
    for one, x in zip(alpha, columns, strict=True):
        # cov(r_a, r_g) = back <a g>, and <a g> = beta_g / aspect
        stein = (back / matrix.aspect * b * of_column.get((x, g), 0) / ahead for b, g in zip(beta, rows, strict=True))
        kernel = (right.coeff(y) * reading.mean(x * y) for y in columns)
        equations[one] = right.coeff(R_A) * Add(*stein) + Add(*kernel)
    for one, g in zip(beta, rows, strict=True):
        stein = (ahead * a * of_row.get((g, x), 0) / back for a, x in zip(alpha, columns, strict=True))
        kernel = (left.coeff(h) * reading.mean(g * h) for h in rows)
        equations[one] = matrix.aspect * (left.coeff(U_B) * Add(*stein) + Add(*kernel))
    C = zeros(len(rows), len(columns))
    for spike in spikes:
        C[rows.index(spike.g), columns.index(spike.phi)] += spike.c
    blocks: dict[str, Any] = {
        "A": Matrix(len(columns), len(rows), lambda i, j: of_column.get((columns[i], rows[j]), 0)),
        "B": Matrix(len(rows), len(columns), lambda i, j: of_row.get((rows[i], columns[j]), 0)),
        "Phi": Matrix(len(columns), len(columns), lambda i, j: reading.mean(columns[i] * columns[j])),
        "G": Matrix(len(rows), len(rows), lambda i, j: matrix.aspect * reading.mean(rows[i] * rows[j])),
        "C": C,
    }
    loops = (ahead * right.coeff(R_A), back * left.coeff(U_B))
    names = (tuple(columns), tuple(rows), tuple(alpha), tuple(beta), tuple(p), tuple(q))
    return Probe(*names, equations, left, right, loops, blocks)


def _response(reading: Reading, vector: Symbol, line: Product, factor: Expr) -> Expr:
    return reading.responding(vector, line, factor) if reading.rules.responses else S.Zero


def _unique(symbols: Sequence[Symbol]) -> list[Symbol]:
    return list(dict.fromkeys(symbols))
