"""The exact update of one rescaling, all others fixed: the positive root of a quadratic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Symbol, diff, log, solve, sqrt

from ..formula import Axiom, Derivation, Domain, Formula, Parameter
from .criterion import SEED

__all__ = ["COORDINATE_UPDATE"]

_POSITIVE = Domain("real", low=0, open_low=True)
INCOMING = Parameter(
    "incoming", "sum of g over the parameters that enter the unit, bias included", _POSITIVE, (0.1, 4), latex="C"
)
OUTGOING = Parameter("outgoing", "sum of g over the parameters that leave the unit", _POSITIVE, (0.1, 4), latex="B")
REST = Parameter("rest", "sum of g over all other parameters", Domain("real", low=0), (0.1, 4), latex="R")
FAN_IN = Parameter("fan_in", "number of parameters that enter, bias included", Domain("integer", low=1), (1, 6))
FAN_OUT = Parameter("fan_out", "number of parameters that leave", Domain("integer", low=1), (1, 6))
PARAMETERS = Parameter(
    "parameters", "number of all parameters with g > 0", Domain("integer", low=2), (13, 40), latex="p"
)
C, B, R = INCOMING.symbol, OUTGOING.symbol, REST.symbol
n_in, n_out, p = FAN_IN.symbol, FAN_OUT.symbol, PARAMETERS.symbol
x = Symbol("x", positive=True)

SIGNS = Axiom(
    "direction of the rescaling",
    "with x = e^z, g of an outgoing parameter is multiplied by x, of an incoming one divided; the rival the other way round",
    lambda incoming, outgoing: outgoing * x + incoming / x,
    lambda incoming, outgoing: outgoing / x + incoming * x,
)
CRITERION = Axiom(
    "criterion",
    "F = p log S - sum (Bz)_i; the rival adds the linear term",
    lambda total, rows: p * log(total) - rows,
    lambda total, rows: p * log(total) + rows,
)


def _prove(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    A = Symbol("A", real=True)  # the surplus of incoming parameters: as one symbol, the quadratic is quickly solved
    total: Expr = d.step("the sum of g' as a function of x = e^z", Symbol("S"), R + known[SIGNS.name](C, B))
    F = d.step(
        "the criterion along z; sum (Bz)_i = -A z, A = fan_in - fan_out",
        Symbol("F"),
        known[CRITERION.name](total, -(A * log(x))),
    )
    slope = d.step("dF/dz, times S x, is a quadratic", 0, (diff(F, x) * total * x**2).expand())
    roots: list[Any] = [root for root in solve(slope, x) if root.subs({B: 2, C: 1, R: 1, A: 1, p: 9}) > 0]
    d.step("the logarithm of its positive root", Symbol("z"), log(roots[0].subs(A, n_in - n_out)))
    return d


def _update() -> Expr:
    A = n_in - n_out
    return log((sqrt((A * R) ** 2 + 4 * (p**2 - A**2) * B * C) - A * R) / (2 * (p + A) * B))


COORDINATE_UPDATE = Formula(
    id="path.coordinate_update",
    title="exact update of one unit's log-factor, the others fixed",
    symbol="z",
    parameters=(INCOMING, OUTGOING, REST, FAN_IN, FAN_OUT, PARAMETERS),
    assumptions=(),
    conventions=(
        "incoming parameters (the bias is one) are multiplied by e^(z/2), outgoing ones by e^(-z/2); sums of g before the "
        "update; fan_in + fan_out is at most the number of parameters"
    ),
    source=SEED,
    state=_update,
    prove=_prove,
    axioms=(SIGNS, CRITERION),
    example={"incoming": "4", "outgoing": "1", "rest": "0", "fan_in": "1", "fan_out": "1", "parameters": "2"},
)
