"""Dynamical mean-field theory as a reading of a program: what its lines become when every space is wide.

The neurons of a space become independent copies of one site. A product by W leaves there a Gaussian field and, because
the argument may itself contain products by W^T, a response to each of those; averages become deterministic numbers:

    W x   = u + sum_g variance <dx/dr_g> g,            cov(u_x, u_x') = variance <x x'>
    W^T g = r + sum_x variance aspect <dg/du_x> x,     cov(r_g, r_g') = variance aspect <g g'>

u_x being the Gaussian part of W x, r_g that of W^T g; fields of different matrices, or of W and W^T, are independent.
This is the cavity (tensor program) argument, not a proof; `empirics.mlp` is what it is held against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, Function, Mul, S, Symbol, diff, expand, sympify

from ..program import Average, Input, Matrix, Pointwise, Product, Program, Scalar
from ..words import Word, latex_of

__all__ = ["Mean", "Reading", "Rules"]


class Mean(Function):
    """The average over one site's random fields; unevaluated."""

    nargs = 1

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = rf"\left\langle {printer._print(self.args[0])} \right\rangle"
        return body if exp is None else rf"{body}^{{{exp}}}"


def _forward(matrix: Matrix) -> Expr:
    return matrix.variance


def _backward(matrix: Matrix) -> Expr:
    return matrix.variance * matrix.aspect


@dataclass(frozen=True)
class Rules:
    """The two facts about a Gaussian matrix that the reading rests on, exchangeable so that derivations can break them.

    `forward(W)` and `backward(W)` multiply <x x'> and <g g'> in the covariances and <dx/dr>, <dg/du> in the responses;
    `responses` is False for the independent-spike approximation, in which W and its later products are unrelated.
    """

    forward: Callable[[Matrix], Expr] = _forward
    backward: Callable[[Matrix], Expr] = _backward
    responses: bool = True

    def factor(self, line: Product) -> Expr:
        """The rule that a product obeys."""
        return (self.backward if line.transposed else self.forward)(line.matrix)


class Reading:
    """The DMFT equations of a program.

    `fields[v]` is the site expression of a vector, in Gaussian fields, earlier vectors and numbers; `gaussian[v]` the
    Gaussian part of a product; `covariance[u, u']` (either order is stored once, later field first) and `responses[A]`
    are given as numbers; `scalars` holds the program's own averages; `tangents` the derivatives that responses average.

    >>> from sympy import Symbol
    >>> from theory.program import Matrix, Program, Space
    >>> program, N = Program(), Space("in")
    >>> W = Matrix("W", N, N, Symbol("v"))
    >>> x = program.input("x", N)
    >>> y = program.product("y", W, x)
    >>> z = program.product("z", W, program.point("g", y**3), transposed=True)
    >>> Reading(program).fields[z]
    A(g|x)*x + r(g)
    >>> list(Reading(program).responses.values())
    [3*v*Mean(y**2)]
    """

    def __init__(self, program: Program, rules: Rules | None = None) -> None:
        self.program, self.rules = program, rules or Rules()
        self.fields: dict[Symbol, Expr] = {}
        self.gaussian: dict[Symbol, Symbol] = {}
        self.covariance: dict[tuple[Symbol, Symbol], Expr] = {}
        self.responses: dict[Symbol, Expr] = {}
        self.response: dict[tuple[Symbol, Symbol], Symbol] = {}
        self.scalars: dict[Symbol, Expr] = {}
        self.tangents: dict[Symbol, Expr] = {}
        self._derivatives: dict[tuple[Symbol, Symbol], Expr] = {}
        self._named: dict[Any, Any] = {}
        self._site: set[Symbol] = set()
        for line in program.lines:
            if isinstance(line, Product):
                self._read_product(line)
            elif isinstance(line, Input):
                self._site.add(line.symbol)
                self.covariance |= {(line.symbol, other): value for other, value in line.covariance.items()}
            elif isinstance(line, Pointwise):
                self._site.add(line.symbol)
                self.fields[line.symbol] = line.expression
            elif isinstance(line, Average):
                body = self.mean(line.expression)
                self.scalars[line.symbol] = body
                factor, means = body.as_independent(Mean)
                if isinstance(means, Mean):  # nu <g g'> is declared as G: G/nu then stands for <g g'>
                    self._named[means] = line.symbol / factor
            elif isinstance(line, Scalar):
                self.scalars[line.symbol] = line.expression

    def mean(self, expression: Any) -> Expr:
        """The site average, linear: numbers are taken out, and a mean that the program has named is called by its name."""
        total: list[Expr] = []
        for term in Add.make_args(expand(sympify(expression))):
            inside = [f for f in Mul.make_args(term) if f.free_symbols & self._site]
            outside = [f for f in Mul.make_args(term) if not f.free_symbols & self._site]
            body = Mean(Mul(*inside)) if inside else S.One
            total.append(Mul(*outside) * self._named.get(body, body))
        return Add(*total)

    def derivative(self, vector: Symbol, field: Symbol) -> Expr:
        """d vector / d field on the site: 0, a number, or the name of an entry of `tangents`."""
        key = (vector, field)
        if key not in self._derivatives:
            self._derivatives[key] = self._chain_rule(vector, field)
        return self._derivatives[key]

    def expand(self, expression: Any) -> Expr:
        """The expression with every named tangent written out, down to pointwise maps."""
        body = sympify(expression)
        while names := body.free_symbols & self.tangents.keys():
            body = body.subs({name: self.tangents[name] for name in names})
        return body

    def products(self, matrix: Matrix, transposed: bool) -> list[Product]:
        """The lines that multiply by the matrix (by its transpose), in order."""
        lines = (line for line in self.program.lines if isinstance(line, Product))
        return [line for line in lines if line.matrix == matrix and line.transposed == transposed]

    def equations(self) -> Iterator[tuple[str, Any, Any]]:
        """(what it is, left, right) of every equation, in an order in which each can be evaluated."""
        for line in self.program.lines:
            v = line.symbol
            if isinstance(line, (Input, Product)):
                field = self.gaussian.get(v, v)
                for (one, other), value in self.covariance.items():
                    if one == field:
                        yield "covariance", Mean(one * other), value
            if isinstance(line, Product):
                for name, value in self.responses.items():
                    if self.fields[v].has(name):
                        yield "response", name, self.expand(value)
            if v in self.fields:
                yield "field", v, self.fields[v]
            if v in self.scalars:
                yield "number", v, self.scalars[v]

    def latex(self) -> str:
        """All equations as rows of an aligned environment."""
        rows = (
            rf"{latex_of(left)} &= {latex_of(right)} && \text{{{what}}} \\" for what, left, right in self.equations()
        )
        return "\n".join(rows)

    def _read_product(self, line: Product) -> None:
        letter, factor = ("r" if line.transposed else "u"), self.rules.factor(line)
        argument = line.argument
        field = Word(f"{letter}({argument})", f"{letter}_{{{latex_of(argument)}}}")
        self.gaussian[line.symbol] = field
        self._site |= {line.symbol, field}
        earlier = [each for each in self.products(line.matrix, line.transposed) if each.symbol in self.fields]
        for other in [*earlier, line]:
            value = factor * self.mean(argument * other.argument)
            self.covariance[field, self.gaussian[other.symbol]] = expand(value)
        body: Expr = field
        for other in self.products(line.matrix, not line.transposed):
            if self.rules.responses and other.symbol in self.fields:
                body += self.responding(argument, other, factor) * other.argument
        self.fields[line.symbol] = body

    def responding(self, argument: Symbol, other: Product, factor: Expr) -> Expr:
        """factor <d argument / d Gaussian part of the other product>, under a name unless it is structurally 0."""
        slope = self.derivative(argument, self.gaussian[other.symbol])
        if slope == 0:
            return S.Zero
        key = (argument, other.argument)
        if key not in self.response:
            name = Word(f"A({argument}|{other.argument})", f"A_{{{latex_of(argument)},{latex_of(other.argument)}}}")
            self.response[key] = name
            self.responses[name] = factor * self.mean(self.expand(slope))
        return self.response[key]

    def _chain_rule(self, vector: Symbol, field: Symbol) -> Expr:
        if vector == field:
            return S.One
        if vector not in self.fields:
            return S.Zero
        body = self.fields[vector]
        # The program's order is causal, so that the recursion ends.
        inner: list[Any] = sorted(body.free_symbols & self._site, key=str)
        total = Add(*(diff(body, each) * self.derivative(each, field) for each in inner))
        if total.is_Number or total.is_Symbol:
            return total
        name = Word(f"d{vector}/d{field}", rf"\partial_{{{latex_of(field)}}}{latex_of(vector)}")
        self.tangents[name] = total
        self._site.add(name)
        return name
