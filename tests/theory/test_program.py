"""A program keeps its spaces apart, its names single, and its divisions where they are declared."""

import pytest
from sympy import Integer, Symbol, symbols

from theory import InputError
from theory.program import Average, Input, Matrix, Pointwise, Product, Program, Scalar, Space

IN, OUT = Space("in"), Space("out", Integer(3))
W = Matrix("W", OUT, IN, Symbol("v"))


@pytest.fixture
def program():
    return Program()


def test_aspect_is_rows_over_columns():
    assert W.aspect == 3
    assert Matrix("V", IN, OUT).aspect == Integer(1) / 3


def test_lines_come_in_order_and_know_their_space(program):
    x = program.input("x", IN)
    y = program.product("y", W, x)
    g = program.point("g", y**2 * Symbol("k"))
    back = program.product("back", W, g, transposed=True)
    m = program.average("m", x * back)
    s = program.scalar("s", 2 * m)
    kinds = [Input, Product, Pointwise, Product, Average, Scalar]
    assert [type(line) for line in program.lines] == kinds
    assert [program.space(v) for v in (x, y, g, back)] == [IN, OUT, OUT, IN]
    assert program.line(s).expression == 2 * m
    assert program.vectors(x * back + m) == [x, back]


def test_an_average_is_a_number(program):
    x = program.input("x", IN)
    m = program.average("m", x**2)
    with pytest.raises(InputError, match="scalar"):
        program.space(m)
    y = program.input("y", OUT)
    assert program.space(program.point("scaled", m * y)) == OUT


def test_inputs_may_be_correlated_within_a_space(program):
    x = program.input("x", IN, variance=2)
    y = program.input("y", IN, variance=3, covariance={x: Symbol("c")})
    assert program.line(y).covariance == {x: Symbol("c"), y: 3}
    with pytest.raises(InputError, match="only an input of out"):
        program.input("z", OUT, covariance={x: 1})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda p, x, y: p.point("z", x * y), "in.*out.*one space"),
        (lambda p, x, y: p.average("z", x + y), "in.*out"),
        (lambda p, x, y: p.product("z", W, y), "W acts on in"),
        (lambda p, x, y: p.product("z", W, x, transposed=True), r"W\^T acts on out"),
        (lambda p, x, y: p.scalar("z", 2 * x), "average"),
        (lambda p, x, y: p.point("z", Symbol("free")), "no vector"),
        (lambda p, x, y: p.product("z", W, Symbol("free")), "not defined|scalar"),
        (lambda p, x, y: p.input("x", IN), "twice"),
        (lambda p, x, y: p.line(Symbol("nowhere")), "not defined"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_names(program, wrong, words):
    x = program.input("x", IN)
    y = program.product("y", W, x)
    with pytest.raises(InputError, match=words):
        wrong(program, x, y)
    assert len(program.lines) == 2


def test_latex_has_a_row_a_line(program):
    a, b = symbols("a b")
    x = program.input("x", IN, variance=a)
    program.product("y", W, program.point("g", b * x, latex=r"\gamma"), latex=r"\eta")
    program.average("m", x**2)
    rows = program.latex().split("\n")
    assert len(rows) == 4
    assert rows[2] == r"\eta &= W \gamma \\"
    assert r"\left\langle x^{2}" in rows[3]
