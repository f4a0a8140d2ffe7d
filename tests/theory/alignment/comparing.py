"""Two expressions as numbers at random admissible points, at two precisions; what has no number at a point is opened first."""

from random import Random

import mpmath
from sympy import Indexed, Integral, Rational, Sum, Symbol, lambdify, oo, sympify

from theory.alignment.gaussian import RANK, Infimum

DIGITS = (20, 45)


def opened(expression, coordinates=2):
    """Written out: an integral as its integrand and finite limits, an infimum as body and ends, sums term by term.

    Equal integrands over equal ranges are more than equal integrals, and what a derivation can be asked for. Finite sums
    are written from the outside in: SymPy's doit makes wrong numbers of inner ones with a symbolic end.
    """
    if isinstance(expression, (Sum, Integral)):
        (variable, low, high), *others = expression.limits
        body = expression.func(expression.function, *others) if others else expression.function
        if isinstance(expression, Integral):
            ends = [(2 * number + 3) * end for number, end in enumerate((low, high)) if not end.has(oo, -oo)]
            return opened(body, coordinates) * (1 + sum(ends))
        high = high.subs(RANK, coordinates)
        if high is oo:
            return opened(body, coordinates)
        return sum((opened(body.subs(variable, number), coordinates) for number in range(low, high + 1)), sympify(0))
    if isinstance(expression, Infimum):
        body, _, low, high = expression.args
        return opened(body, coordinates) + 3 * low + 5 * high
    if isinstance(expression, Indexed):
        return Symbol(f"{expression.base}_{expression.indices[0]}")
    return expression.func(*(opened(each, coordinates) for each in expression.args)) if expression.args else expression


def point(formula, symbols, rng):
    """A parameter within its typical range, everything else positive and at most 3; multiples of 1/64."""
    known = {each.name: each for each in formula.parameters}
    drawn = {}
    for symbol in sorted(symbols, key=str):
        low, high = (known[symbol.name].typical if symbol.name in known else None) or (0.1, 3)
        if symbol.is_integer or (symbol.name in known and known[symbol.name].domain.kind == "integer"):
            drawn[symbol] = Rational(rng.randint(max(1, int(low)), int(high)))
        else:
            drawn[symbol] = Rational(rng.randint(int(64 * low) + 1, int(64 * high) - 1), 64)
    return drawn


def gap(formula, one, other, count, seed=0):
    """The largest relative gap over `count` points at 45 digits; at 20 it must be the same up to rounding."""
    one, other = sympify(one), sympify(other)
    if one == other:
        return 0.0
    integers = {s: s.subs(s, 3) for e in (one, other) for s in e.free_symbols if s.name == "L"}  # an end of finite sums
    one, other = (opened(each.subs(integers)) for each in (one, other))
    names = sorted(one.free_symbols | other.free_symbols, key=str)
    functions = [lambdify(names, each, "mpmath") for each in (one, other)]
    rng, worst = Random(seed), [0.0 for _ in DIGITS]
    for _ in range(count):
        drawn = point(formula, names, rng)
        for number, digits in enumerate(DIGITS):
            with mpmath.workdps(digits + 10):
                values = [mpmath.mpf(drawn[name].p) / drawn[name].q for name in names]
                left, right = (mpmath.mpmathify(function(*values)) for function in functions)
                scale = max(abs(left), abs(right)) or 1
                worst[number] = max(worst[number], float(abs(left - right) / scale))
    assert abs(worst[0] - worst[1]) < 1e-12, f"{formula.id}: {worst} at {DIGITS} digits"
    return worst[-1]
