"""Reference numbers of the notes, two routes at random laws, and the limits of every algebraic id."""

import numpy as np
import pytest

from numerics import predict
from numerics.inputs import admit
from numerics.statement import evaluate_statement
from theory import formula
from verify.cases import random_inputs

THREE = {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": "4", "K": "9"}
TWO_LAWS = {"mu": "1,2", "mu_test": "2,1", "Sigma": "2,1;1,3", "Sigma_test": "1,-1/2;-1/2,2", "M": "3", "K": "7"}
POWER = {
    "mu": ",".join(f"0.7/sqrt({j})" for j in range(1, 65)),
    "Sigma": ",".join(f"1/{j}" for j in range(1, 65)),
}


@pytest.mark.parametrize(
    ("id", "inputs", "reference"),
    [
        ("alignment.variance", THREE, "0.911458333333333333"),
        ("alignment.bound_exact", THREE, "0.368421052631578947"),
        ("alignment.bound", THREE, "0.714648065948002536"),
        ("alignment.fourth_cumulant", THREE, "1.31251808449074074"),
        ("alignment.variance", TWO_LAWS, "6.33333333333333333"),
    ],
)
def test_references(id, inputs, reference):
    assert predict(id, inputs, digits=18).to_dict()["value"] == reference


def test_reference_13():
    inverse = 1 / predict("alignment.d_parallel", POWER, digits=25).value.midpoint
    assert f"{inverse:.18f}" == "0.147764590917760260"


def test_fifty_digits_are_a_ball():
    for id in ("alignment.bound_exact", "alignment.bound", "alignment.variance"):
        shown = predict(id, {**POWER, "M": "3", "K": "7"}, digits=50).to_dict()
        assert shown["kind"] == "ball"
        assert 0 < float(shown["radius"]) < 1e-45


ALGEBRAIC = [
    "mean", "variance", "third_cumulant", "fourth_cumulant", "bound_exact", "bound", "n_eff", "d_parallel", "d_2",
    "d_align", "bound_from_dimension", "samples_needed", "test_samples_needed", "dimension_needed",
]  # fmt: skip


@pytest.mark.parametrize("name", ALGEBRAIC)
def test_two_routes_at_thirty_random_laws(name):
    """Exact rationals against the SymPy statement in mpmath; the worst relative gap is shown on failure."""
    known, rng, worst = formula(f"alignment.{name}"), np.random.default_rng(7), (0.0, {}, "", "")
    for _ in range(30):
        drawn = random_inputs(known, rng)
        shown = predict(known.id, drawn)
        if any(each["holds"] is False for each in shown.assumptions):
            assert shown.to_dict()["value"] == "1"
            continue
        other = evaluate_statement(known, admit(known, drawn)[0])
        one = shown.to_dict()["value"]
        gap = (
            0.0
            if str(other) in ("oo", "inf") and one == "inf"
            else abs(float(one) - float(other)) / (abs(float(other)) or 1)
        )
        worst = max(worst, (gap, drawn, one, str(other)), key=lambda each: each[0])
    assert worst[0] < 1e-14, worst


@pytest.mark.parametrize(
    ("id", "inputs", "value"),
    [
        ("alignment.d_align", {"mu": "1,0", "Sigma": "0,0"}, "inf"),
        ("alignment.d_align", {"mu": "0,0", "Sigma": "1,1"}, "0"),
        ("alignment.d_align", {"mu": "0,0", "Sigma": "0,0"}, "0"),
        ("alignment.d_parallel", {"mu": "1,0", "Sigma": "0,1"}, "inf"),
        ("alignment.d_2", {"mu": "1,0", "Sigma": "0,1"}, "1"),
        ("alignment.bound_exact", {"mu": "1,0", "Sigma": "0,0", "M": 1, "K": 1}, "0"),
        ("alignment.bound", {"mu": "1,0", "Sigma": "0,0", "M": 1, "K": 1}, "0"),
        ("alignment.bound_exact", {"mu": "1", "mu_test": "-1", "Sigma": "1", "M": 5, "K": 5}, "1"),
        ("alignment.bound", {"mu": "1", "mu_test": "-1", "Sigma": "1", "M": 5, "K": 5}, "1"),
        ("alignment.n_eff", {"M": "inf", "K": "7"}, "7"),
        ("alignment.n_eff", {"M": "inf", "K": "inf"}, "inf"),
        ("alignment.bound_exact", {"mu": "1", "Sigma": "1", "M": 3, "K": "inf"}, "0.25"),
        ("alignment.bound_exact", {"mu": "1", "Sigma": "1", "M": "inf", "K": "inf"}, "0"),
        ("alignment.bound_from_dimension", {"d_align": "inf", "M": 1, "K": 1}, "0"),
        ("alignment.bound_from_dimension", {"d_align": "0", "M": "inf", "K": "inf"}, "1"),
        ("alignment.samples_needed", {"d_align": "inf", "delta": "0.5"}, "1"),
        ("alignment.samples_needed", {"d_align": "0", "delta": "0.5"}, "inf"),
        ("alignment.test_samples_needed", {"d_align": "1", "delta": "0.5", "M": 1}, "inf"),
        ("alignment.test_samples_needed", {"d_align": "1", "delta": "0.5", "M": "inf"}, "1"),
        ("alignment.dimension_needed", {"delta": "0.5", "M": "inf", "K": "inf"}, "0"),
        ("alignment.samples_needed", {"d_align": "1e-30", "delta": "0.5"}, str(2 * 10**30 + 1)),
    ],
)
def test_limits(id, inputs, value):
    assert predict(id, inputs, digits=40).to_dict()["value"] == value


def test_irrational_inputs_decide_their_signs():
    """sqrt(2)*sqrt(2) - 2 is 0: no precision decides its sign, and the error says so instead of guessing."""
    shown = predict("alignment.bound", {"mu": "sqrt(2),1", "Sigma": "sqrt(3)", "M": 2, "K": 3}, digits=30).to_dict()
    assert shown["kind"] == "ball"
    with pytest.raises(ArithmeticError, match="tie"):
        predict("alignment.bound", {"mu": "sqrt(2),1", "mu_test": "sqrt(2),-2", "Sigma": "1", "M": 2, "K": 3})


def test_three_hundred_dimensions_in_full_agree_with_floats():
    rng = np.random.default_rng(0)
    mu, factor = rng.standard_normal(300), rng.standard_normal((300, 300))
    Sigma = factor @ factor.T
    Sigma = (Sigma + Sigma.T) / 2
    variance = 0.2 * (mu @ Sigma @ mu) + np.sum(Sigma * Sigma) / 100
    expected = variance / (variance + (mu @ mu) ** 2)
    assert float(predict("alignment.bound_exact", {"mu": mu, "Sigma": Sigma, "M": 10, "K": 10})) == pytest.approx(
        expected, rel=1e-12
    )
