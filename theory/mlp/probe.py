"""The spectral probe: singular vectors of a trained matrix as one more pair of products, and the box they lead to.

z a = M b, z b = M^T a with M = W + (1/N_in) sum_k c_k g_k phi_k^T, W the initial matrix. Outside the bulk a and b are a
linear program in W and W^T acting on the training fields (expand the resolvent in 1/z), so the rules of `dmft` hold for
training fields and probe jointly; the training fields never depend on the probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Expr, Matrix, S, Symbol, diag, expand, eye, zeros

from ..program import Matrix as GaussianMatrix
from ..words import Word
from .dmft import Mean, Reading
from .network import Spike

__all__ = ["Probe", "box", "spectral_probe"]

M_A, M_B = Word("m_a"), Word("m_b")


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
    p_j, q_j the responses of W b to W^T rows_j, and of W^T a to W columns_j. `equations` maps each unknown to its value.
    `left`, `right` are a and b on their sites. `blocks` holds A, B, Phi, G, C over columns and rows.
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
    blocks: dict[str, Matrix]
    self_responses: tuple[Expr, Expr]

    def system(self) -> Matrix:
        """The matrix of the homogeneous system in (alpha, p, beta, q): an outlier is where it is singular."""
        unknowns = [*self.alpha, *self.p, *self.beta, *self.q]
        rows = [[expand(x - self.equations[x]).coeff(y) for y in unknowns] for x in unknowns]
        return Matrix(rows)


def spectral_probe(reading: Reading, matrix: GaussianMatrix, spikes: Sequence[Spike]) -> Probe:
    """Write and solve the site equations of the probe; m_a and m_b stand for the diagonal resolvents of its two sides.

    Each p, q, alpha, beta comes out of the reading's own derivatives and averages, by linearity and by Stein's identity
    <phi r_a> = sum_s cov(r_a, r_s) <d phi/d r_s>. Spikes may be any vectors of the program; a product's argument that
    is no spike takes part as well, since W b responds to it.
    """
    program, rules = reading.program, reading.rules
    forward, backward = reading.products(matrix, False), reading.products(matrix, True)
    columns = _unique([s.phi for s in spikes] + [line.argument for line in forward])
    rows = _unique([s.g for s in spikes] + [line.argument for line in backward])
    alpha = [Word(f"alpha({x})", rf"\alpha_{{{x}}}") for x in columns]
    beta = [Word(f"beta({g})", rf"\beta_{{{g}}}") for g in rows]
    p = [Word(f"p({g})") for g in rows]
    q = [Word(f"q({x})") for x in columns]
    u_b, r_a = Word("u_b"), Word("r_a")
    c = zeros(len(rows), len(columns))
    for spike in spikes:
        c[rows.index(spike.g), columns.index(spike.phi)] += spike.c
    # z a - R_ba a = u_b + ..., with m_a = 1/(z - R_ba): the resolvent's own response is the only one to a itself.
    P_hat = Matrix(p) + c * Matrix(alpha)
    Q_hat = Matrix(q) + c.T * Matrix(beta)
    left = M_A * (u_b + sum((P * g for P, g in zip(P_hat, rows, strict=True)), S.Zero))
    right = M_B * (r_a + sum((Q * x for Q, x in zip(Q_hat, columns, strict=True)), S.Zero))
    ahead, back = rules.forward(matrix), rules.backward(matrix)
    A = _responses(reading, columns, backward, rows, ahead)
    B = _responses(reading, rows, forward, columns, back)
    Phi = Matrix([[reading.mean(x * y) for y in columns] for x in columns])
    # beta and G are divided by the number of columns; <.> by that of their own neurons, so it comes with the aspect.
    G = matrix.aspect * Matrix([[reading.mean(g * h) for h in rows] for g in rows])
    equations = dict(zip(p, M_B * A.T * Q_hat, strict=True)) | dict(zip(q, M_A * B.T * P_hat, strict=True))
    equations |= dict(zip(alpha, M_B * (A * Matrix(beta) + Phi * Q_hat), strict=True))
    equations |= dict(zip(beta, M_A * (B * Matrix(alpha) + G * P_hat), strict=True))
    blocks = {"A": A, "B": B, "Phi": Phi, "G": G, "C": c}
    vectors = (tuple(columns), tuple(rows), tuple(alpha), tuple(beta), tuple(p), tuple(q))
    return Probe(*vectors, equations, left, right, blocks, (ahead * M_B, back * M_A))
