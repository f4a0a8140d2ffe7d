"""Guaranteed decrease and intervention ratio as numbers: two routes, edges, and what is refused."""

import numpy as np
import pytest

from numerics import predict
from numerics.inputs import admit
from numerics.statement import evaluate_statement
from theory import InputError, formula
from verify.cases import random_inputs


@pytest.mark.parametrize("id", ["alignment.expansion_decrease", "alignment.intervention_ratio"])
def test_two_routes_at_thirty_random_points(id):
    known, rng, worst = formula(id), np.random.default_rng(2), 0.0
    for _ in range(30):
        drawn = random_inputs(known, rng)
        one, other = float(predict(id, drawn)), float(evaluate_statement(known, admit(known, drawn)[0]))
        worst = max(worst, abs(one - other) / abs(other))
    assert worst < 1e-14


def test_the_decrease_is_that_of_a_simulated_quadratic_risk():
    """The lowest point of r - eta X + beta ||mu||^2 eta^2/2 on a fine grid, whose error is the square of its step."""
    x, beta, size = 1.5, 2.0, 0.75
    eta = np.linspace(0, 2, 200_001)
    fall = eta * x - beta * size * eta**2 / 2
    stated = float(predict("alignment.expansion_decrease", {"alignment": x, "curvature": beta, "mean_squared": size}))
    assert 0 <= stated - fall.max() <= beta * size * 1e-10 / 2
    assert eta[fall.argmax()] == pytest.approx(x / (beta * size), abs=1e-5)


@pytest.mark.parametrize(
    ("id", "given", "value"),
    [
        ("expansion_decrease", {"alignment": "0", "curvature": "2", "mean_squared": "1"}, "0"),
        ("expansion_decrease", {"alignment": "3", "curvature": "2", "mean_squared": "0.5"}, "4.5"),
        ("intervention_ratio", {"eta": "0", "eta_N": "1"}, "1"),
        ("intervention_ratio", {"eta": "1", "eta_N": "1"}, "0.5"),
        ("intervention_ratio", {"eta": "3", "eta_N": "inf"}, "1"),
        ("intervention_ratio", {"eta": "1", "eta_N": "-2"}, "1.25"),
        ("intervention_ratio", {"eta": "2", "eta_N": "1"}, "0"),
    ],
)
def test_values(id, given, value):
    shown = predict(f"alignment.{id}", given).to_dict()
    assert (shown["value"], shown["kind"]) == (value, "exact")


def test_fifty_digits_of_an_irrational_step():
    shown = predict("alignment.intervention_ratio", {"eta": "sqrt(2)/10", "eta_N": "sqrt(3)"}, digits=50)
    assert shown.kind == "ball"
    assert shown.to_dict()["value"].startswith("0.95917517")
    assert float(shown.radius) < 1e-49


@pytest.mark.parametrize(
    ("id", "given", "words"),
    [
        ("intervention_ratio", {"eta": "1", "eta_N": "0"}, ["eta_N = 0", "X = 0", "no ratio"]),
        ("intervention_ratio", {"eta": "-1", "eta_N": "1"}, ["eta", ">= 0", "-1"]),
        ("expansion_decrease", {"alignment": "-1", "curvature": "2", "mean_squared": "1"}, ["alignment", ">= 0"]),
        ("expansion_decrease", {"alignment": "1", "curvature": "0", "mean_squared": "1"}, ["curvature", "> 0"]),
        ("expansion_decrease", {"alignment": "1", "curvature": "2", "mean_squared": "0"}, ["mean_squared", "> 0"]),
    ],
)
def test_refusals(id, given, words):
    with pytest.raises(InputError) as refusal:
        predict(f"alignment.{id}", given)
    for word in words:
        assert word in str(refusal.value)
