"""A program: what a wide network computes, written in vectors of named spaces, and in nothing that depends on the width.

Five kinds of line: an input vector, a pointwise map of vectors of one space, a product by a Gaussian matrix or its
transpose, an average over the neurons of a space, and a scalar made of scalars. What the lines become when every space
is large is for a reading to say (`theory.mlp.dmft` is one), what they are in numbers is for numerics/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, S, Symbol, sympify

from .formula import InputError
from .words import Word, latex_of

__all__ = ["Average", "Input", "Line", "Matrix", "Pointwise", "Product", "Program", "Scalar", "Space"]


@dataclass(frozen=True)
class Space:
    """The neurons of one layer. `ratio` is their number over the reference width N; it stays fixed while N grows."""

    name: str
    ratio: Expr = S.One


@dataclass(frozen=True)
class Matrix:
    """A matrix (rows x columns) of independent entries N(0, variance / number of columns).

    The division is part of the matrix: with W_ij ~ N(0, sigma^2) it stands for W/sqrt(N_in). Hence a product W x has
    variance times the mean square of x in each entry, and W^T y has variance x `aspect` times that of y.

    >>> from sympy import Integer
    >>> Matrix("W", Space("out", Integer(2)), Space("in")).aspect
    2
    """

    name: str
    rows: Space
    columns: Space
    variance: Expr = S.One

    @property
    def aspect(self) -> Expr:
        """Number of rows over number of columns."""
        return self.rows.ratio / self.columns.ratio


@dataclass(frozen=True)
class Line:
    """One line of a program: the symbol it defines."""

    symbol: Symbol


@dataclass(frozen=True)
class Input(Line):
    """A Gaussian vector, its entries independent of each other; `covariance` with itself and with earlier inputs."""

    space: Space
    covariance: Mapping[Symbol, Expr]


@dataclass(frozen=True)
class Pointwise(Line):
    """A vector whose i-th entry is the expression in the i-th entries of others."""

    space: Space
    expression: Expr


@dataclass(frozen=True)
class Product(Line):
    """`matrix @ argument`, or `matrix.T @ argument` if transposed."""

    matrix: Matrix
    argument: Symbol
    transposed: bool

    @property
    def space(self) -> Space:
        """The space of the result."""
        return self.matrix.columns if self.transposed else self.matrix.rows


@dataclass(frozen=True)
class Average(Line):
    """The mean of the expression over the neurons of its space: divided by the number of these neurons, no other."""

    space: Space
    expression: Expr


@dataclass(frozen=True)
class Scalar(Line):
    """A number made of other numbers."""

    expression: Expr


class Program:
    """Lines in the order in which they are computed. Each method adds one and returns the symbol that it defines.

    Raises InputError for a name used twice, a symbol not yet defined, or vectors of two spaces in one expression.

    >>> from sympy import Integer
    >>> program = Program()
    >>> N, M = Space("in"), Space("out", Integer(2))
    >>> W = Matrix("W", M, N)
    >>> x = program.input("x", N)
    >>> y = program.product("y", W, x)
    >>> back = program.product("back", W, program.point("g", y**3), transposed=True)
    >>> program.average("overlap", x * back)
    overlap
    >>> [type(line).__name__ for line in program.lines]
    ['Input', 'Product', 'Pointwise', 'Product', 'Average']
    >>> program.point("mixed", x * y)
    Traceback (most recent call last):
        ...
    theory.formula.InputError: mixed: x lives on in, y on out; a pointwise map needs vectors of one space
    """

    def __init__(self) -> None:
        self._lines: dict[Symbol, Line] = {}
        self._names: set[str] = set()

    @property
    def lines(self) -> tuple[Line, ...]:
        """Every line, in order."""
        return tuple(self._lines.values())

    def line(self, symbol: Symbol) -> Line:
        """The line that defines a symbol."""
        if symbol not in self._lines:
            raise InputError(f"{symbol} is not defined by this program")
        return self._lines[symbol]

    def space(self, vector: Symbol) -> Space:
        """The space that a vector lives on; InputError for a scalar."""
        space = self._space_or_none(vector)
        if space is None:
            raise InputError(f"{vector} is a scalar; a vector is needed here")
        return space

    def vectors(self, expression: Any) -> list[Symbol]:
        """The vectors in an expression, in the program's order."""
        free = sympify(expression).free_symbols
        return [each for each in self._lines if each in free and self._space_or_none(each) is not None]

    def input(
        self,
        name: str,
        space: Space,
        variance: Any = 1,
        covariance: Mapping[Symbol, Any] | None = None,
        latex: str | None = None,
    ) -> Symbol:
        """A Gaussian vector of independent entries N(0, variance); `covariance` maps earlier inputs of its space."""
        symbol = self._new(name, latex)
        for other in covariance or {}:
            if not isinstance(self.line(other), Input) or self.space(other) != space:
                raise InputError(f"{name}: only an input of {space.name} can be correlated with it; {other} is not one")
        entries = {other: sympify(value) for other, value in (covariance or {}).items()}
        return self._add(Input(symbol, space, entries | {symbol: sympify(variance)}))

    def point(self, name: str, expression: Any, latex: str | None = None) -> Symbol:
        """A pointwise map of vectors of one space (scalars may occur in it)."""
        space, body = self._on_one_space(name, expression)
        return self._add(Pointwise(self._new(name, latex), space, body))

    def product(
        self, name: str, matrix: Matrix, argument: Symbol, transposed: bool = False, latex: str | None = None
    ) -> Symbol:
        """W x, or W^T x: the division by sqrt(number of columns) is part of the matrix, see `Matrix`."""
        needed = matrix.rows if transposed else matrix.columns
        if self.space(argument) != needed:
            way = "^T" if transposed else ""
            raise InputError(
                f"{name}: {matrix.name}{way} acts on {needed.name}; {argument} lives on {self.space(argument).name}"
            )
        return self._add(Product(self._new(name, latex), matrix, argument, transposed))

    def average(self, name: str, expression: Any, latex: str | None = None) -> Symbol:
        """The mean over the neurons of the one space that the expression's vectors live on."""
        space, body = self._on_one_space(name, expression)
        return self._add(Average(self._new(name, latex), space, body))

    def scalar(self, name: str, expression: Any, latex: str | None = None) -> Symbol:
        """A number made of earlier scalars and of symbols from outside."""
        body = sympify(expression)
        if self.vectors(body):
            raise InputError(f"{name}: {self.vectors(body)[0]} is a vector; take an average of it first")
        return self._add(Scalar(self._new(name, latex), body))

    def latex(self) -> str:
        """The lines as rows of an aligned environment; products show W, averages an angle bracket."""
        return "\n".join(rf"{latex_of(line.symbol)} &= {_right(line)} \\" for line in self.lines)

    def _add(self, line: Line) -> Symbol:
        self._lines[line.symbol] = line
        return line.symbol

    def _new(self, name: str, latex: str | None) -> Symbol:
        if name in self._names:
            raise InputError(f"{name} is defined twice")
        self._names.add(name)
        return Word(name, latex)

    def _space_or_none(self, symbol: Symbol) -> Space | None:
        return getattr(self._lines.get(symbol), "space", None) if not self._is_average(symbol) else None

    def _is_average(self, symbol: Symbol) -> bool:
        return isinstance(self._lines.get(symbol), Average)

    def _on_one_space(self, name: str, expression: Any) -> tuple[Space, Expr]:
        body = sympify(expression)
        vectors = self.vectors(body)
        if not vectors:
            raise InputError(f"{name}: there is no vector in {body}")
        for other in vectors[1:]:
            if self.space(other) != self.space(vectors[0]):
                spaces = f"{vectors[0]} lives on {self.space(vectors[0]).name}, {other} on {self.space(other).name}"
                raise InputError(f"{name}: {spaces}; a pointwise map needs vectors of one space")
        return self.space(vectors[0]), body


def _right(line: Line) -> str:
    if isinstance(line, Product):
        transposition = r"^{\top}" if line.transposed else ""
        return f"{line.matrix.name}{transposition} {latex_of(line.argument)}"
    if isinstance(line, Average):
        return rf"\left\langle {latex_of(line.expression)} \right\rangle"
    if isinstance(line, Input):
        pairs = [rf"\operatorname{{cov}}({latex_of(other)}) = {latex_of(c)}" for other, c in line.covariance.items()]
        return r"\mathcal N,\quad " + ",\\ ".join(pairs)
    return latex_of(line.expression)  # type: ignore[attr-defined]
