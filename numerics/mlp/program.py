"""A program's DMFT equations in numbers: the engine's own route, which knows of no network.

Walking the equations in order is the sweep: a covariance row is one more row of a Cholesky factor, a field one more
row of samples, a number one average. Responses are averages of derivatives, as the reading writes them, and not
Stein quotients: what `training` finds is found here in another way, from the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from theory import InputError

from .site import Sampled, gaussian_points

if TYPE_CHECKING:
    from theory.mlp import Reading

__all__ = ["evaluate_reading"]

Array = NDArray[np.float64]


def evaluate_reading(
    reading: Reading,
    numbers: Mapping[str, float],
    functions: Mapping[str, Callable[[Array], Array]] | None = None,
    samples: int = 2**14,
    seed: int = 0,
) -> dict[str, float]:
    """Every number of a reading (averages, scalars, responses) by its name, from `samples` points a space.

    `numbers` gives the free symbols, `functions` the open ones (phi, dphi, d2phi): a response to a kink needs a delta
    function, which averages of samples cannot see, so that relu is for `training` alone. Raises InputError for a symbol
    or function without a value.

    >>> from theory.mlp import Network, Reading
    >>> network = Network(steps=1, activation=lambda h: h, gram=lambda mu, nu: 1, targets=lambda mu: 1)
    >>> values = {"eta0": 0.02, "gamma0": 4, "nu": 1, "sigma": 1}
    >>> round(evaluate_reading(Reading(network.program), values)["f(1)"], 12)
    0.06
    """
    return _Walk(reading, numbers, functions or {}, samples, seed).numbers


class _Walk:
    def __init__(
        self,
        reading: Reading,
        numbers: Mapping[str, float],
        functions: Mapping[str, Callable[[Array], Array]],
        samples: int,
        seed: int,
    ) -> None:
        self.reading, self.functions = reading, functions
        self.given = dict(numbers)
        self.numbers: dict[str, float] = {}
        self.fields: dict[Any, Array] = {}
        self.families: dict[str, list[Any]] = {}
        spaces = self._fields_of_spaces()
        seeds = np.random.SeedSequence(seed).spawn(len(spaces))
        self.sites = {
            space: Sampled(gaussian_points(count, samples, each))
            for (space, count), each in zip(spaces.items(), seeds, strict=True)
        }
        for line in reading.program.lines:
            self._line(line)

    def _fields_of_spaces(self) -> dict[str, int]:
        from theory.program import Input, Product

        counts: dict[str, int] = {}
        for line in self.reading.program.lines:
            if isinstance(line, (Input, Product)):
                counts[line.space.name] = counts.get(line.space.name, 0) + 1
        return counts

    def _line(self, line: Any) -> None:
        from theory.program import Input, Product

        reading, symbol = self.reading, line.symbol
        if isinstance(line, Input):
            self.fields[symbol] = self._draw(symbol, line.space.name, "inputs")
        if isinstance(line, Product):
            family = line.matrix.name + ("^T" if line.transposed else "")
            field = reading.gaussian[symbol]
            self.fields[field] = self._draw(field, line.space.name, family)
            for name, value in reading.responses.items():
                if reading.fields[symbol].has(name):
                    self.numbers[name.name] = self._number(value)
        if symbol in reading.fields:
            self.fields[symbol] = self._array(reading.fields[symbol])
        if symbol in reading.scalars:
            self.numbers[symbol.name] = self._number(reading.scalars[symbol])

    def _draw(self, field: Any, space: str, family: str) -> Array:
        members = self.families.setdefault(f"{space}:{family}", [])
        members.append(field)
        covariance = self.reading.covariance
        row = [self._number(covariance.get((field, other), covariance.get((other, field), 0))) for other in members]
        return self.sites[space].draw(family, np.array([row]))[0]

    def _number(self, expression: Any) -> float:
        from sympy import sympify

        from theory.mlp import Mean

        body = sympify(expression)
        means = {each: float(np.mean(self._array(each.args[0]))) for each in body.atoms(Mean)}
        return float(self._lambdified(sympify(body.xreplace(means))))

    def _array(self, expression: Any) -> Array:
        return np.asarray(self._lambdified(self.reading.expand(expression)))

    def _lambdified(self, body: Any) -> Any:
        from sympy import lambdify
        from sympy.core.function import AppliedUndef, Function

        symbols = sorted(body.free_symbols, key=str)
        values = [self._value(each) for each in symbols]
        unknown = {f.func.__name__ for f in body.atoms(AppliedUndef)}
        ours = {f.func.__name__ for f in body.atoms(Function) if f.func.__module__.startswith("theory.")}
        missing = sorted((unknown | ours) - self.functions.keys())
        if missing:
            raise InputError(f"functions must define {', '.join(missing)}; got {', '.join(self.functions) or 'none'}")
        return lambdify(symbols, body, modules=[dict(self.functions), "scipy", "numpy"])(*values)

    def _value(self, symbol: Any) -> Any:
        if symbol in self.fields:
            return self.fields[symbol]
        for known in (self.numbers, self.given):
            if symbol.name in known:
                return known[symbol.name]
        raise InputError(f"numbers must give {symbol.name}; got {', '.join(self.given) or 'none'}")
