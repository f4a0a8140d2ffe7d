"""Expected diag G of a random network, and the rescaling that it calls for when all neurons of a layer are alike.

Without biases everything is in closed form; with them the mean-field criterion, convex in one unknown a hidden layer, is
minimised by Newton's method and the minimiser enclosed by an interval Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from theory import InputError

from ..certified import certified
from ..evaluate import evaluates
from ..number import to_ball
from ..value import Value
from .balls import TooCoarse, enclosed
from .criterion import Criterion
from .solver import solve

__all__ = ["expected_diagonal", "mean_field_gap", "mean_field_rescaling", "small_variance_gap"]


@dataclass(frozen=True)
class _Network:
    """Widths n_0..n_L, weight variances s_1..s_L, and the variance of each layer's bias, None for a layer without one."""

    widths: tuple[int, ...]
    weight: tuple[Any, ...]
    bias: tuple[Any, ...]

    @classmethod
    def of(cls, widths: Any, weight_variance: Any, bias_variance: Any, biases: str) -> _Network:
        """Admitted inputs, one number standing for every layer; lengths and integrality are checked here."""
        sizes = [each if isinstance(each, Fraction) else Fraction(float(each)) for each in widths]
        if len(sizes) < 2 or any(each.denominator != 1 for each in sizes):
            raise InputError("widths must be integers, from the inputs to the outputs, at least two")
        depth = len(sizes) - 1
        biased = {"none": 0, "hidden": depth - 1, "all": depth}[biases]
        if not biased and any(float(each) for each in bias_variance):
            raise InputError("bias_variance is not 0 but biases=none: say biases=hidden or biases=all")
        weight = cls._each("weight_variance", weight_variance, depth)
        bias = cls._each("bias_variance", bias_variance, biased) if biased else ()
        return cls(tuple(int(each) for each in sizes), weight, (*bias, *[None] * (depth - biased)))

    @staticmethod
    def _each(name: str, given: Any, count: int) -> tuple[Any, ...]:
        numbers = tuple(given) if len(given) != 1 else tuple(given) * count
        if len(numbers) != count:
            raise InputError(f"{name} takes one number, or one a layer, which are {count} here; got {len(numbers)}")
        return tuple(Fraction(each) if isinstance(each, float) else each for each in numbers)

    @property
    def depth(self) -> int:
        return len(self.weight)

    def entries(self, weight: Any, bias: Any) -> tuple[list[Any], list[Any]]:
        """(E g of a weight of each layer, E g of a bias of each layer that has one), over any field."""
        m, beta = [1 + 0 * weight[0]], [1 + 0 * weight[0]]
        for n, s, t in zip(self.widths[:-1], weight, bias, strict=True):
            m.append(n * s * m[-1] + (0 if t is None else t))
        for n, s in zip(self.widths[:1:-1], weight[:0:-1], strict=True):
            beta.insert(0, n * s * beta[0])
        of_weights = [b * a for b, a in zip(beta, m[:-1], strict=True)]
        return of_weights, [b for b, t in zip(beta, self.bias, strict=True) if t is not None]


@evaluates("path.expected_diagonal")
def expected_diagonal(widths: Any, weight_variance: Any, bias_variance: Any, biases: str, *, digits: int = 15) -> Value:
    """E g of a weight of each layer and of a bias of each layer that has one: beta_l m_(l-1) and beta_l.

    m_0 = 1, m_l = n_(l-1) s_l m_(l-1) + t_l; beta_L = 1, beta_(l-1) = n_l s_l beta_l, s and t the variances. Exact for
    every width. Returns the object `weights` (L numbers), `biases`; exact for rational input. Derived here; reference 12:

    >>> from numerics import predict
    >>> asked = {"widths": "6,9,4,7,3", "weight_variance": ".2,.1,.3,.15", "bias_variance": ".05,.02,.1,0", "biases": "all"}
    >>> predict("path.expected_diagonal", asked).value.to_dict()["value"]
    {'weights': ['0.378', '1.18125', '0.51525', '1.474'], 'biases': ['0.378', '0.945', '0.45', '1']}
    """
    network = _Network.of(widths, weight_variance, bias_variance, biases)
    parts = {
        name: certified(
            lambda weight, bias, part=part: network.entries(weight, bias)[part],
            network.weight,
            network.bias,
            digits=digits,
        )
        for part, name in enumerate(("weights", "biases"))
    }
    return Value.gather(parts)


@evaluates("path.mean_field_rescaling")
def mean_field_rescaling(
    widths: Any, weight_variance: Any, bias_variance: Any, biases: str, *, digits: int = 15
) -> Value:
    """The log-factors zeta_1..zeta_(L-1) of the hidden layers that minimise the mean-field criterion; a ball each.

    Layer l's incoming parameters are multiplied by e^(zeta_l/2), its outgoing ones by e^(-zeta_l/2). Without biases zeta_l
    = -(u_1 + ... + u_l), u_l = log(N_l s_l) - mean_k log(N_k s_k), N_l = n_l n_(l-1). Derived here; reference 10:

    >>> from numerics import predict
    >>> he = {"widths": "50,30,80,20,10", "weight_variance": "2/50,2/30,2/80,2/20"}
    >>> [round(float(each), 8) for each in predict("path.mean_field_rescaling", he).value.midpoint]
    [-0.13081204, -1.24245332, -0.96780025]
    """
    network = _Network.of(widths, weight_variance, bias_variance, biases)
    return Value.gather(enclosed(lambda: _minimiser(network), digits))


@evaluates("path.mean_field_gap")
def mean_field_gap(widths: Any, weight_variance: Any, bias_variance: Any, biases: str, *, digits: int = 15) -> Value:
    """log(AM/GM) of E diag G over all parameters, `before` and `after` the mean-field rescaling; a ball each.

    Without biases it is exactly 0 afterwards. Derived here; reference 11:

    >>> from numerics import predict
    >>> small = {"widths": "100,100,100,100,100", "weight_variance": "0.0001", "biases": "hidden"}
    >>> {name: round(float(each), 12) for name, each in predict("path.mean_field_gap", small).value.midpoint.items()}
    {'before': 3.226007543844, 'after': 1.655844979353}
    """
    network = _Network.of(widths, weight_variance, bias_variance, biases)
    before, after = enclosed(lambda: _gaps(network), digits)
    return Value.gather({"before": before, "after": after})


@evaluates("path.small_variance_gap")
def small_variance_gap(width: int, layers: int, scale: Any, *, digits: int = 15) -> Value:
    """The gap of E diag G for `layers` matrices of width x width, weight variance scale/width, hidden biases of value 0. A ball.

    Derived here; reference 11 once more:

    >>> from numerics import predict
    >>> round(float(predict("path.small_variance_gap", {"width": 100, "layers": 4, "scale": "0.01"}).value), 12)
    3.226007543844
    """
    weights, biases = layers * width**2, width

    def formula() -> list[flint.arb]:
        a = to_ball(scale)
        p = weights + (layers - 1) * biases
        mean = (weights * a ** (layers - 1) + biases * sum((a**k for k in range(1, layers)), flint.arb(0))) / p
        return [mean.log() - a.log() * (flint.arb(layers - 1) * (2 * weights + biases * layers) / (2 * p))]

    return enclosed(formula, digits)[0]


@dataclass(frozen=True)
class _MeanField:
    """The mean-field criterion in balls: entries (layer fed, layer read, summed E g, E g, count), 0 and L the ground."""

    layers: int
    entries: tuple[tuple[int, int, flint.arb, flint.arb, int], ...]

    @classmethod
    def of(cls, network: _Network) -> _MeanField:
        """At the working precision."""
        weight = [to_ball(each) for each in network.weight]
        bias = [None if each is None else to_ball(each) for each in network.bias]
        of_weights, of_biases = network.entries(weight, bias)
        ground = {network.depth: 0}
        entries = []
        for layer, g in enumerate(of_weights, 1):
            count = network.widths[layer] * network.widths[layer - 1]
            entries.append((ground.get(layer, layer), layer - 1, g * count, g, count))
        biased = [layer for layer, each in enumerate(network.bias, 1) if each is not None]
        for layer, g in zip(biased, of_biases, strict=True):
            entries.append((ground.get(layer, layer), 0, g * network.widths[layer], g, network.widths[layer]))
        return cls(network.depth - 1, tuple(entries))

    @property
    def parameters(self) -> int:
        return sum(count for *_, count in self.entries)

    def gradient(self, z: list[flint.arb]) -> tuple[flint.arb, list[flint.arb], flint.arb_mat]:
        """(sum of g', gradient, Hessian) of f at z (layers 1..L-1)."""
        at = [flint.arb(0), *z]
        shares = [mass * (at[into] - at[out]).exp() for out, into, mass, *_ in self.entries]
        total = sum(shares, flint.arb(0))
        size, p = self.layers, self.parameters
        slope, balance = [flint.arb(0)] * (size + 1), [flint.arb(0)] * (size + 1)
        T = [[flint.arb(0)] * (size + 1) for _ in range(size + 1)]
        for (out, into, *_, count), mass in zip(self.entries, shares, strict=True):
            share = mass / total
            for label, sign in ((into, 1), (out, -1)):
                slope[label] += sign * share
                balance[label] += sign * flint.arb(count) / p
                T[label][label] += share
            T[out][into] -= share
            T[into][out] -= share
        inner = range(1, size + 1)
        H = flint.arb_mat([[T[a][b] - slope[a] * slope[b] for b in inner] for a in inner])
        return total, [slope[a] - balance[a] for a in inner], H

    def gap(self, z: list[flint.arb]) -> flint.arb:
        """log(AM/GM) of g' at z."""
        at, p = [flint.arb(0), *z], self.parameters
        total, _, _ = self.gradient(z)
        logs = sum((count * (g.log() + at[into] - at[out]) for out, into, _, g, count in self.entries), flint.arb(0))
        return (total / p).log() - logs / p


def _gaps(network: _Network) -> list[flint.arb]:
    field = _MeanField.of(network)
    before = field.gap([flint.arb(0)] * field.layers)
    return [before, field.gap(_minimiser(network)) if any(each is not None for each in network.bias) else flint.arb(0)]


def _minimiser(network: _Network) -> list[flint.arb]:
    if all(each is None for each in network.bias):
        pairs = zip(network.weight, network.widths, network.widths[1:], strict=False)
        logs = [(to_ball(s) * below * above).log() for s, below, above in pairs]
        mean = sum(logs, flint.arb(0)) / len(logs)
        return [layer * mean - sum(logs[:layer], flint.arb(0)) for layer in range(1, len(logs))]
    return _interval_newton(_MeanField.of(network))


def _interval_newton(field: _MeanField) -> list[flint.arb]:
    """Enclosures of the one minimiser.

    f is convex, so its gradient has at most one zero. With A the Hessian over a box around z, z - A^(-1) grad(z) holds
    every zero in the box, and proves that there is one if it lies inside.
    """
    size = field.layers
    if not size:
        return []
    out, into, mass, count = zip(*[(o, i, float(m.log()), c) for o, i, m, _, c in field.entries], strict=True)
    z = [flint.arb(float(each)) for each in solve(Criterion.of(out, into, mass, count, labels=size)).z]
    smallest = flint.arb(2) ** (20 - flint.ctx.prec)
    for _ in range(8 + flint.ctx.prec.bit_length()):
        _, gradient, H = field.gradient(z)
        step = _solved(H, gradient)
        z = [(each - change).mid() for each, change in zip(z, step, strict=True)]
        if all(abs(change.mid()) < smallest for change in step):
            break
    _, gradient, _ = field.gradient(z)
    radius = 4 * smallest * (1 + max((abs(each) for each in z), key=float))
    box = [each + radius * flint.arb(0, 1) for each in z]
    _, _, A = field.gradient(box)
    narrower = [each - change for each, change in zip(z, _solved(A, gradient), strict=True)]
    if not all(outer.contains_interior(inner) for outer, inner in zip(box, narrower, strict=True)):
        raise TooCoarse
    return narrower


def _solved(H: flint.arb_mat, right: list[flint.arb]) -> list[flint.arb]:
    try:
        solution = H.solve(flint.arb_mat([[each] for each in right]))
    except ZeroDivisionError:
        raise TooCoarse from None
    return [solution[row, 0] for row in range(len(right))]
