"""Expected diag G of a random network, and the rescaling that it calls for when all units of a layer are alike.

Layer l has a matrix of n_l x n_(l-1) independent entries of mean 0 and variance v_l, and perhaps n_l biases of variance t_l.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Integer, Mul, Sum, Symbol, Tuple, diff, expand_log, log, simplify, solve

from ..formula import DERIVED_HERE, Assumption, Axiom, Derivation, Domain, Formula, InputError, Parameter
from ..words import Word

__all__ = [
    "EXPECTED_DIAGONAL",
    "MEAN_FIELD_GAP",
    "MEAN_FIELD_RESCALING",
    "SMALL_VARIANCE_GAP",
    "expected_g",
    "n",
    "t",
    "v",
]

SHOWN = 3
"""The statements show this many weight matrices; the functions here, and the evaluators, take any number."""

WIDTHS = Parameter(
    "widths", "units of each layer, n_0 (inputs) to n_L (outputs)", Domain("vector", low=1), typical=(1, 12)
)
WEIGHT_VARIANCE = Parameter(
    "weight_variance",
    "variance of a weight of each layer, v_1 to v_L; one number for all",
    Domain("vector", low=0, open_low=True),
    typical=(0.05, 2),
    latex="v",
)
BIAS_VARIANCE = Parameter(
    "bias_variance",
    "variance of a bias of each layer that has them, t_1, t_2...; one number for all",
    Domain("vector", low=0),
    typical=(0, 2),
    default=0,
    latex="t",
)
BIASES = Parameter(
    "biases", "which layers have biases", Domain("choice", choices=("none", "hidden", "all")), default="none"
)
NETWORK = (WIDTHS, WEIGHT_VARIANCE, BIAS_VARIANCE, BIASES)
INITIAL = Assumption(
    "independent_parameters",
    "weights and biases are independent of one another, of mean 0 and finite variance; any law",
)
ALIKE = Assumption(
    "mean_field", "every unit of a layer has the same rescaling and every g its mean: exact as the widths grow"
)


def n(layer: int) -> Word:
    """Width of a layer, 0 the inputs."""
    return Word(f"n_{layer}", f"n_{{{layer}}}", positive=True)


def v(layer: int) -> Word:
    """Variance of a weight of layer 1..L."""
    return Word(f"v_{layer}", f"v_{{{layer}}}", positive=True)


def t(layer: int) -> Word:
    """Variance of a bias of layer 1..L."""
    return Word(f"t_{layer}", f"t_{{{layer}}}", positive=True)


MOMENT = Axiom(
    "independent parameters of mean 0",
    "the mean squared product of different parameters is the product of their variances; the rival squares these",
    lambda variance: variance,
    lambda variance: variance**2,
)
LEFT_OUT = Axiom(
    "derivative of a path",
    "dPhi/dtheta_i leaves theta_i out of the product; the rival keeps it",
    True,
    False,
)
STARTS = Axiom(
    "starts of paths",
    "a path starts at an input, of value 1, or at a bias; the rival knows no biases",
    lambda start, variance: Integer(1) if start == 0 else variance,
    lambda start, variance: Integer(1) if start == 0 else variance * 0,
)


def _through(depth: int, layer: int, start: int, known: Mapping[str, Any], *, bias: bool) -> Expr:
    """Expected sum of squared products over the paths from layer `start` (0: inputs) through one weight, or bias, of a layer."""
    moment = known.get(MOMENT.name, MOMENT.value)
    through = {layer} if bias else {layer - 1, layer}  # the units that are given with the parameter
    count = Mul(*(n(k) for k in range(start, depth + 1) if k not in through))
    own = moment(t(layer) if bias else v(layer)) if not known.get(LEFT_OUT.name, LEFT_OUT.value) else Integer(1)
    others = [moment(v(k)) for k in range(start + 1, depth + 1) if bias or k != layer]
    begin = Integer(1) if bias else known.get(STARTS.name, STARTS.value)(start, moment(t(start)) if start else None)
    return count * own * Mul(*others) * begin


def expected_g(
    depth: int, biases: str = "all", known: Mapping[str, Any] | None = None
) -> tuple[list[Expr], list[Expr]]:
    """(E g of a weight of each layer, E g of a bias of each layer that has one) for `depth` matrices, path by path.

    >>> expected_g(2, "hidden")[0][1], expected_g(2, "hidden")[1]
    (n_0*v_1 + t_1, [n_2*v_2])
    """
    if biases not in ("none", "hidden", "all"):
        raise InputError(f"biases must be none, hidden or all; got {biases!r}")
    axioms = known or {}
    biased = {"none": 0, "hidden": depth - 1, "all": depth}[biases]
    weights = [
        sum((_through(depth, k, s, axioms, bias=False) for s in range(k) if s <= biased), Integer(0))
        for k in range(1, depth + 1)
    ]
    return weights, [_through(depth, k, k, axioms, bias=True) for k in range(1, biased + 1)]


def _prove_diagonal(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    for k in range(1, SHOWN + 1):
        for s in range(k):
            why = f"paths from {'an input' if s == 0 else f'a bias of layer {s}'} through one weight of layer {k}"
            d.step(why, Symbol(f"E g_W{k} from {s}"), _through(SHOWN, k, s, known, bias=False))
    weights, biases = expected_g(SHOWN, "all", known)
    d.step("sums over the starts; a bias is a start itself", Symbol("E g"), Tuple(*weights, *biases))
    return d


def _diagonal() -> tuple[Expr, ...]:
    forward: list[Expr] = [Integer(1)]
    backward: list[Expr] = [Integer(1)]
    for k in range(1, SHOWN + 1):
        forward.append(n(k - 1) * v(k) * forward[-1] + t(k))
    for k in range(SHOWN, 1, -1):
        backward.insert(0, n(k) * v(k) * backward[0])
    return (*(b * m for b, m in zip(backward, forward, strict=False)), *backward)


RESCALED = Axiom(
    "effect on g",
    "g of a weight from layer l-1 to layer l is multiplied by e^(zeta_(l-1) - zeta_l); the rival divides",
    lambda u: u,
    lambda u: -u,
)
ROWS = Axiom(
    "linear term",
    "F = p log sum g' - sum (Bz)_i; the rival leaves sum (Bz)_i out, which is ENorm's criterion of g",
    1,
    0,
)
EACH = Axiom(
    "means over parameters",
    "arithmetic and geometric mean count every parameter, n_l n_(l-1) of a layer; the rival counts layers",
    lambda k: n(k) * n(k - 1),
    lambda k: Integer(1),
)


def _prove_rescaling(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    g = d.step("expected g of a weight, no biases", Symbol("E g"), Tuple(*expected_g(SHOWN, "none")[0]))
    u = [Symbol(f"u_{k}", real=True) for k in range(1, SHOWN + 1)]
    # In the logarithms y_l of the layers' sums, F is smooth and its stationary point linear in u.
    counts = [n(k) * n(k - 1) for k in range(1, SHOWN + 1)]
    masses = [Symbol(f"S_{k}", positive=True) for k in range(1, SHOWN + 1)]
    total, p, multiplier = Symbol("S", positive=True), sum(counts), Symbol("lambda")
    sign = [known[RESCALED.name](each) for each in u]
    slopes = [
        p * mass / total * diff(s, each) - known[ROWS.name] * diff(s, each) * count - multiplier
        for mass, s, each, count in zip(masses, sign, u, counts, strict=True)
    ]
    found = solve([*slopes, sum(masses) - total], [*masses, multiplier], dict=True)[0]
    d.step(
        "u_l = zeta_(l-1) - zeta_l sum to 0: with a multiplier, the layers' sums",
        Symbol("S_l"),
        Tuple(*(found[m] for m in masses)),
    )
    level = Symbol("c")
    equations = [
        expand_log(log(count * each) + s - log(found[mass] / total) - level, force=True)
        for count, each, s, mass in zip(counts, g, sign, masses, strict=True)
    ]
    solved = solve([*equations, sum(u)], [*u, level], dict=True)[0]
    zeta = [-sum((solved[each] for each in u[:k]), Integer(0)) for k in range(1, SHOWN)]
    d.step(
        "S_l = n_l n_(l-1) E g e^u_l, solved; zeta_l = -(u_1 + ... + u_l)",
        Symbol("zeta"),
        Tuple(*(simplify(each) for each in zeta)),
    )
    return d


def _rescaling() -> tuple[Expr, ...]:
    logs = [log(n(k) * n(k - 1) * v(k)) for k in range(1, SHOWN + 1)]
    mean = sum(logs, Integer(0)) / SHOWN
    return tuple(k * mean - sum(logs[:k], Integer(0)) for k in range(1, SHOWN))


def _prove_gap(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    g = d.step("expected g of a weight, no biases", Symbol("E g"), Tuple(*expected_g(SHOWN, "none", known)[0]))
    counts = [known[EACH.name](k) for k in range(1, SHOWN + 1)]
    p = sum(counts)
    arithmetic = sum(count * each for count, each in zip(counts, g, strict=True)) / p
    geometric = sum(count * log(each) for count, each in zip(counts, g, strict=True)) / p
    d.step("log of arithmetic over geometric mean", Symbol("gap"), log(arithmetic) - geometric)
    return d


def _gap() -> Expr:
    counts = [n(k) * n(k - 1) for k in range(1, SHOWN + 1)]
    inverse = [1 / (count * v(k)) for k, count in enumerate(counts, 1)]  # E g of layer l is the same multiple of it
    p = sum(counts)
    mean = sum(count * each for count, each in zip(counts, inverse, strict=True)) / p
    return log(mean) + sum(count * log(1 / each) for count, each in zip(counts, inverse, strict=True)) / p


_CONVENTIONS = (
    f"shown for {SHOWN} weight matrices and evaluated for any number: n_l widths from the inputs n_0, v_l and t_l the variances "
    "of a weight and a bias of layer l, not multiplied by a width"
)

EXPECTED_DIAGONAL = Formula(
    id="path.expected_diagonal",
    title="expected diag G of a random network",
    symbol="E g",
    parameters=NETWORK,
    assumptions=(INITIAL,),
    conventions=_CONVENTIONS
    + "; E g of a weight of each layer, then of a bias of each layer; exact at every width, zero biases included",
    source=DERIVED_HERE,
    state=_diagonal,
    prove=_prove_diagonal,
    axioms=(MOMENT, LEFT_OUT, STARTS),
    example={"widths": "6,9,4,7,3", "weight_variance": "0.2,0.1,0.3,0.15"},
)
MEAN_FIELD_RESCALING = Formula(
    id="path.mean_field_rescaling",
    title="log-factors of the hidden layers that even out expected diag G",
    symbol="zeta",
    parameters=NETWORK,
    assumptions=(INITIAL, ALIKE),
    conventions=_CONVENTIONS
    + "; without biases: with them the minimiser of the same criterion, which has no closed form; incoming parameters of layer l "
    "are multiplied by e^(zeta_l/2), outgoing ones by e^(-zeta_l/2)",
    source=DERIVED_HERE,
    state=_rescaling,
    prove=_prove_rescaling,
    axioms=(RESCALED, ROWS),
    example={"widths": "50,30,80,20,10", "weight_variance": "1/25,1/15,1/40,1/10"},
)
MEAN_FIELD_GAP = Formula(
    id="path.mean_field_gap",
    title="gap of expected diag G before and after the mean-field rescaling",
    symbol="gap",
    parameters=NETWORK,
    assumptions=(INITIAL, ALIKE),
    conventions=_CONVENTIONS
    + "; log of arithmetic over geometric mean of E g over all parameters, shown before the rescaling and without biases: "
    "afterwards it is then exactly 0",
    source=DERIVED_HERE,
    state=_gap,
    prove=_prove_gap,
    axioms=(MOMENT, EACH),
    example={"widths": "50,30,80,20,10", "weight_variance": "1/25,1/15,1/40,1/10"},
)

WIDTH = Parameter("width", "units of every layer", Domain("integer", low=1), typical=(2, 100), latex="n")
LAYERS = Parameter("layers", "number of weight matrices", Domain("integer", low=2), typical=(2, 8), latex="L")
SCALE = Parameter(
    "scale",
    "a: the variance of a weight is a/width",
    Domain("real", low=0, open_low=True),
    typical=(0.05, 3),
    latex="a",
)
N, L, a = WIDTH.symbol, LAYERS.symbol, SCALE.symbol
k = Symbol("l", integer=True, positive=True)

FAN_IN = Axiom("fan-in scaling", "the variance of a weight is a/n; the rival takes a for it", lambda: a / N, lambda: a)
PRESENT = Axiom(
    "zero biases count", "a bias of value 0 is a parameter with g > 0; the rival counts weights alone", 1, 0
)


def _prove_small(known: Mapping[str, Any]) -> Derivation:
    d = Derivation()
    product = N * known[FAN_IN.name]()
    weight = d.step("a weight: n v for each of the L - 1 other layers", Symbol("E g_W"), product ** (L - 1))
    bias = d.step("a bias of layer l: n v for each layer above", Symbol("E g_b"), product ** (L - k))
    hidden = N * known[PRESENT.name]
    p = L * N**2 + (L - 1) * hidden
    total = L * N**2 * weight + hidden * Sum(bias, (k, 1, L - 1)).doit()
    logs = log(product) * (L * N**2 * (L - 1) + hidden * Sum(L - k, (k, 1, L - 1)).doit())
    d.step("log of arithmetic over geometric mean", Symbol("gap"), log(total / p) - logs / p)
    return d


def _small() -> Expr:
    p = L * N**2 + (L - 1) * N
    biases = N * Sum(a**k, (k, 1, L - 1)).doit()
    return log((L * N**2 * a ** (L - 1) + biases) / p) - log(a) * (L * N**2 * (L - 1) + N * L * (L - 1) / 2) / p


SMALL_VARIANCE_GAP = Formula(
    id="path.small_variance_gap",
    title="gap of expected diag G at constant width, hidden biases of value 0",
    symbol="gap",
    parameters=(WIDTH, LAYERS, SCALE),
    assumptions=(INITIAL,),
    conventions=(
        "variance of a weight a/width, biases in all layers but the last; spread between largest and smallest E g is "
        "a^-(L-2) for a < 1, and none without biases; of order 1 only for a below (L width)^(-1/(L-2))"
    ),
    source=DERIVED_HERE,
    state=_small,
    prove=_prove_small,
    axioms=(FAN_IN, PRESENT),
    example={"width": "100", "layers": "4", "scale": "0.01"},
)
