"""The width exponent as a number: two routes, exactness, and ties of irrational inputs."""

import numpy as np
import pytest

from numerics import predict
from numerics.inputs import admit
from numerics.statement import evaluate_statement
from theory import InputError, formula

WIDTH = formula("alignment.width_exponent")


def test_two_routes_at_thirty_random_points_far_beyond_the_typical_range():
    rng = np.random.default_rng(11)
    for _ in range(30):
        given = {name: f"{rng.integers(-64, 65)}/16" for name in "ap"}
        one = predict(WIDTH.id, given)
        assert one.kind == "exact"
        assert float(one) == float(evaluate_statement(WIDTH, admit(WIDTH, given)[0])), given


@pytest.mark.parametrize(
    ("a", "p", "value"),
    [
        ("1", "0", "1"),
        ("1", "0.5", "0.5"),
        ("1", "1", "0"),
        ("0.5", "0", "0"),
        ("1", "-3", "1"),
        ("0", "2", "-4"),
        ("1/3", "1/3", "-0.333333333333333"),
    ],
)
def test_values(a, p, value):
    assert predict(WIDTH.id, {"a": a, "p": p}).to_dict()["value"] == value


def test_irrational_ties_need_no_decision():
    """At p = sqrt(1/4 + 1/4)^2 = 1/2 both branches are equal, which no precision shows."""
    tied = predict(WIDTH.id, {"a": "1", "p": "sqrt(2)*sqrt(2)/4"}, digits=30)
    assert tied.kind == "ball"
    assert tied.value.contains(0.5)
    assert float(tied.radius) < 1e-29


@pytest.mark.parametrize("given", [{"a": "inf", "p": "0"}, {"a": "nan", "p": "0"}, {"a": "1"}])
def test_refusals(given):
    with pytest.raises(InputError):
        predict(WIDTH.id, given)
