"""Pr(X <= 0) in closed form, for Gaussian gradients of one isotropic law: Sigma = sigma^2 I_d, training and test alike.

Four forms, certified in ball arithmetic; they depend on theta = ||mu||^2/sigma^2 of one draw alone. With A, B the two
sample means over their standard deviations, 4 A'B = |A + B|^2 - |A - B|^2 is a difference of independent noncentral
chi-squares, and X <= 0 where the first is at most the second. Derived here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint

from theory import InputError

from ..number import Surd, scalar, to_ball, working_precision
from ..value import Value

__all__ = ["even_dimension", "isotropic", "line", "plane"]

GUARD_BITS = 40
MOST_BITS = 20_000


def isotropic(theta: Any, d: int, M: int, K: int, *, digits: int = 15) -> Value:
    """sum_{j,k} Pois(j; A) Pois(k; B) I_{1/2}(d/2 + j, d/2 + k), A, B = theta (sqrt(M) +- sqrt(K))^2/4.

    The doubly noncentral F distribution at 1; any dimension d >= 1 and finite M, K >= 1. A ball: the Poisson masses that
    are left out are part of its radius. Time grows with A and with 1 + B. R11 of the notes:

    >>> isotropic(2, 64, 8, 32, digits=18)
    Value(0.00287735759617451221 +/- 1.28e-21, ball)
    """
    t = _admit(theta, d=d, M=M, K=K)

    def series() -> Any:
        mean, root = to_ball(t) * (M + K) / 4, to_ball(t) * flint.arb(M * K).sqrt() / 2
        (first, rest), (second, more) = _poisson(mean + root), _poisson(mean - root)
        a, shapes = flint.arb(d) / 2 + len(first), [flint.arb(d) / 2 + k for k in range(len(second))]
        half = flint.arb(1) / 2
        # I(a, b) = I(a + 1, b) + step(a, b): downwards in j, where it adds and loses nothing.
        row = [half.beta_lower(a, b, regularized=True) for b in shapes]
        steps = [((a + b).lgamma() - (a + 1).lgamma() - b.lgamma()).exp() * half ** (a + b) for b in shapes]
        total = flint.arb(0)
        for weight in reversed(first):
            steps = [2 * a / (a + b - 1) * step for step, b in zip(steps, shapes, strict=True)]
            row, a = [x + step for x, step in zip(row, steps, strict=True)], a - 1
            total += weight * sum((x * y for x, y in zip(row, second, strict=True)), flint.arb(0))
        return total + (rest + more) * flint.arb(0.5, 0.5)  # the masses left out count between 0 and 1 times

    return _certified(series, digits)


def even_dimension(theta: Any, d: int, M: int, *, digits: int = 15) -> Value:
    """2^(1-d) exp(-g) sum_{k < d/2} g^k/k! sum_{n < d/2 - k} binomial(d - 1, n), g = M theta/2: for K = M and even d.

    exp(-M theta/2)/2 in two dimensions. A ball. R9 of the notes:

    >>> even_dimension("0.7", 2, 3, digits=18)
    Value(0.174968874555577677 +/- 3.37e-19, ball)
    """
    t = _admit(theta, d=d, M=M)
    if d % 2:
        raise InputError(f"the finite sum needs an even dimension; got d = {d}. `isotropic` takes any")

    def finite_sum() -> Any:
        g, size = to_ball(t) * M / 2, d // 2
        counts = [sum(math.comb(d - 1, n) for n in range(size - k)) for k in range(size)]
        return sum((g**k / math.factorial(k) * count for k, count in enumerate(counts)), flint.arb(0)) * (
            (-g).exp() / 2 ** (d - 1)
        )

    return _certified(finite_sum, digits)


def plane(theta: Any, M: int, K: int, *, digits: int = 15) -> Value:
    """Q_1(x, y) - exp(-(x^2 + y^2)/2) I_0(x y)/2, x, y = sqrt(theta) abs(sqrt(M) -+ sqrt(K))/2: for d = 2.

    Q_1 is Marcum's function, exp(-(x^2 + y^2)/2) sum_{n >= 0} (x/y)^n I_n(x y). A ball.

    >>> plane("0.7", 3, 3, digits=18)
    Value(0.174968874555577677 +/- 3.39e-19, ball)
    """
    t = _admit(theta, M=M, K=K)

    def marcum() -> Any:
        scale, m, k = to_ball(t).sqrt() / 2, flint.arb(M).sqrt(), flint.arb(K).sqrt()
        x, y = scale * abs(m - k), scale * (m + k)
        ratio, power, product = abs(m - k) / (m + k), flint.arb(1), x * y
        total, n = -product.bessel_i(0) / 2, 0
        while True:
            term = power * product.bessel_i(n)
            total += term
            # I_n decreases with n: what is left is at most a geometric series.
            rest = term * ratio / (1 - ratio)
            if rest.abs_upper() <= total.abs_lower() * flint.arb(2) ** -flint.ctx.prec:
                return (total + rest * flint.arb(0.5, 0.5)) * (-(x * x + y * y) / 2).exp()
            power, n = power * ratio, n + 1

    return _certified(marcum, digits)


def line(theta: Any, M: int, K: int, *, digits: int = 15) -> Value:
    """Phi(x) Phi(-y) + Phi(-x) Phi(y), x, y = sqrt(M theta), sqrt(K theta): for d = 1, where one mean must change sign.

    A ball. R10 of the notes:

    >>> line("0.36", 3, 5, digits=18)
    Value(0.212365183935927077 +/- 2.32e-19, ball)
    """
    t = _admit(theta, M=M, K=K)

    def normal() -> Any:
        x, y = ((to_ball(t) * count / 2).sqrt() for count in (M, K))
        return ((-x).erfc() * y.erfc() + x.erfc() * (-y).erfc()) / 4

    return _certified(normal, digits)


def _admit(theta: Any, **counts: int) -> Fraction | Surd:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{name} must be a finite integer >= 1 for a closed form; got {count!r}")
    number = scalar(theta)
    if not isinstance(number, (Fraction, Surd)) or number < 0:
        raise InputError(f"theta = ||mu||^2/sigma^2 must be a finite real number >= 0; got {theta}")
    return number


def _poisson(mean: Any) -> tuple[list[Any], Any]:
    """The weights from 0 on, and a bound on the mass beyond them, of 2^-precision or less."""
    weights = [(-mean).exp()]
    while True:
        count = len(weights)
        weights.append(weights[-1] * mean / count)
        ratio = mean / (count + 1)
        if ratio < 0.5 and weights[-1] < flint.arb(2) ** -flint.ctx.prec:
            return weights, weights[-1] * ratio / (1 - ratio)


def _certified(compute: Callable[[], Any], digits: int) -> Value:
    bits = math.ceil(digits * math.log2(10)) + GUARD_BITS
    while bits <= MOST_BITS:
        with working_precision(bits):
            ball = compute()
            if ball.rad() < ball.abs_lower() * flint.arb(10) ** -digits / 10:
                return Value.ball(ball, digits)
        bits *= 2
    raise ArithmeticError(f"the closed form cancels: its value is not known to {digits} digits at {MOST_BITS} bits")
