"""Random admissible inputs of a formula, exactly representable and free of accidental symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np

from theory import Formula, Parameter

__all__ = ["random_inputs"]


def random_inputs(formula: Formula, rng: np.random.Generator) -> dict[str, Any]:
    """One admissible point: scalars within the typical range, vectors and covariances of one common dimension.

    Every number is a multiple of 1/16, so that text, float and rational agree. A covariance is A A'/16 with integer A,
    full or by its diagonal, now and then singular; optional parameters are given half of the time.
    """
    dimension = int(rng.integers(1, 6))
    return {
        each.name: _draw(each, dimension, rng)
        for each in formula.parameters
        if each.required or (each.optional and rng.random() < 0.5)
    }


def _draw(parameter: Parameter, dimension: int, rng: np.random.Generator) -> Any:
    domain, (low, high) = parameter.domain, parameter.typical or (0.0, 1.0)
    if domain.kind == "integer":
        return str(int(rng.integers(max(int(low), int(domain.low)), int(high) + 1)))
    if domain.kind == "choice":
        return str(rng.choice(domain.choices))
    if domain.kind == "vector":
        return ",".join(_sixteenth(rng.uniform(low, high)) for _ in range(dimension))
    if domain.kind == "covariance":
        if rng.random() < 0.4:
            return ",".join(f"{rng.integers(1, 33)}/16" for _ in range(dimension))
        # Below three dimensions a singular covariance may annihilate a mean, and dimensions become infinite: tested apart.
        rank = dimension - 1 if dimension >= 3 and rng.random() < 0.4 else dimension
        factor = np.tril(rng.integers(-4, 5, (dimension, rank)), -1) + np.eye(
            dimension, rank, dtype=int
        ) * rng.integers(1, 5)
        return ";".join(",".join(f"{entry}/16" for entry in row) for row in factor @ factor.T)
    if domain.kind == "complex":
        return f"{round(16 * rng.uniform(low, high)) / 16}+{round(16 * rng.uniform(0.1, 1)) / 16}j"
    number = _sixteenth(rng.uniform(low, high))
    inside = (float(_value(number)) > domain.low or not domain.open_low) and (
        float(_value(number)) < domain.high or not domain.open_high
    )
    return number if inside else repr(0.5 * (low + high))


def _sixteenth(number: float) -> str:
    return f"{round(16 * number)}/16"


def _value(text: str) -> float:
    above, below = text.split("/")
    return int(above) / int(below)
