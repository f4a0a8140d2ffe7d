"""Admission and the JSON contract: what is refused, with which words, and what comes out."""

import json

import numpy as np
import pytest

from numerics import predict
from theory import InputError, catalogue

LAW = {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": "4", "K": "9"}


def test_the_object_has_the_keys_of_the_contract():
    shown = json.loads(json.dumps(predict("alignment.bound_exact", LAW).to_dict()))
    assert list(shown) == ["id", "value", "radius", "kind", "digits", "inputs", "assumptions", "source"]
    assert shown["id"] == "alignment.bound_exact"
    assert shown["inputs"] == {"mu": ["1", "0.5", "0"], "Sigma": ["1", "3", "0.25"], "M": "4", "K": "9"}
    assert float(shown["radius"]) < 1e-15


@pytest.mark.parametrize(
    ("id", "inputs", "words"),
    [
        ("alignment.bound", {**LAW, "M": "0"}, ["M", "integer >= 1", "0"]),
        ("alignment.bound", {**LAW, "M": "-3"}, ["M", "-3"]),
        ("alignment.bound", {**LAW, "M": "2.5"}, ["M", "not an integer"]),
        ("alignment.bound", {**LAW, "K": "nan"}, ["K", "nan"]),
        ("alignment.bound", {**LAW, "mu": "1,nan,0"}, ["mu", "nan"]),
        ("alignment.bound", {**LAW, "mu": "1,inf,0"}, ["mu", "finite"]),
        ("alignment.bound", {**LAW, "mu": ""}, ["mu"]),
        ("alignment.bound", {**LAW, "Sigma": "1,-3,2"}, ["Sigma", "negative"]),
        ("alignment.bound", {**LAW, "Sigma": "1,2,0;2,1,0;0,0,1"}, ["Sigma", "smallest eigenvalue is -1"]),
        ("alignment.bound", {**LAW, "Sigma": "1,2;3,4"}, ["Sigma", "not symmetric"]),
        ("alignment.bound", {**LAW, "Sigma": "1,2;3"}, ["Sigma", "unequal"]),
        ("alignment.bound", {**LAW, "Sigma": "1,2,3;2,5,6"}, ["Sigma", "2 rows and 3 columns"]),
        ("alignment.bound", {**LAW, "Sigma": "1,2"}, ["dimension", "mu has 3", "Sigma has 2"]),
        ("alignment.bound", {**LAW, "Kk": "1"}, ["Kk", "Did you mean K?"]),
        ("alignment.bound", {**LAW, "sigma": "1"}, ["sigma", "Did you mean Sigma?"]),
        ("alignment.bound", {"mu": "1,2", "Sigma": "2,1"}, ["M, K", "quotes"]),
        ("alignment.bound", {**LAW, "mu": "@nowhere.npy"}, ["nowhere.npy"]),
        ("alignment.bound", {**LAW, "M": "1,2", "K": "3,4"}, ["only one scalar may be a list"]),
        ("alignment.bond", LAW, ["alignment.bond", "Did you mean alignment.bound?"]),
        ("nothing", {}, ["nothing"]),
        ("alignment.samples_needed", {"d_align": "1", "delta": "1"}, ["delta", "< 1"]),
        ("alignment.samples_needed", {"d_align": "1", "delta": "0"}, ["delta", "> 0"]),
        ("alignment.samples_needed", {"d_align": "-1", "delta": "0.5"}, ["d_align", ">= 0"]),
    ],
)
def test_bad_input_is_named_with_its_domain(id, inputs, words):
    with pytest.raises(InputError) as refusal:
        predict(id, inputs)
    for word in words:
        assert word in str(refusal.value), str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("digits", [0, -1, 10**6, 2.5, True])
def test_digits_beyond_the_routes_are_refused(digits):
    with pytest.raises(InputError, match="digits"):
        predict("alignment.n_eff", {"M": 1, "K": 1}, digits=digits)


def test_one_scalar_may_be_a_list():
    curve = predict("alignment.n_eff", {"M": [1, 2, 3], "K": "inf"})
    assert curve.to_dict()["value"] == ["1", "2", "3"]
    assert curve.to_dict()["radius"] == ["0", "0", "0"]
    assert curve.to_dict()["inputs"]["M"] == ["1", "2", "3"]


def test_an_assumption_that_fails_is_said_and_the_bound_is_one():
    shown = predict("alignment.bound_exact", {**LAW, "mu": "0,0,0"}).to_dict()
    assert shown["value"] == "1"
    states = {each["name"]: each["holds"] for each in shown["assumptions"]}
    assert states == {"independent_draws": None, "finite_second_moments": None, "positive_expected_alignment": False}


def test_arrays_files_and_text_are_one_input(tmp_path):
    mu, Sigma = np.array([1.0, 0.5, 0.0]), np.diag([1.0, 3.0, 0.25])
    np.save(tmp_path / "mu.npy", mu)
    np.savetxt(tmp_path / "Sigma.csv", Sigma, delimiter=",")
    text = predict("alignment.variance", LAW).value
    arrays = predict("alignment.variance", {"mu": mu, "Sigma": Sigma, "M": 4, "K": 9}).value
    files = predict(
        "alignment.variance", {**LAW, "mu": f"@{tmp_path / 'mu.npy'}", "Sigma": f"@{tmp_path / 'Sigma.csv'}"}
    ).value
    assert text == arrays == files


def test_a_pickle_in_npy_clothes_is_not_executed(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (print, ("executed",))

    np.save(tmp_path / "bad.npy", np.array([Hostile()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot read"):
        predict("alignment.mean", {**LAW, "mu": f"@{tmp_path / 'bad.npy'}"})


def test_one_number_holds_for_every_entry():
    wide = predict("alignment.d_align", {"mu": "1,1,1", "Sigma": "2"}).value
    assert wide == predict("alignment.d_align", {"mu": "1,1,1", "Sigma": "2,0,0;0,2,0;0,0,2"}).value


@pytest.mark.parametrize("id", list(catalogue()))
def test_every_example_of_the_catalogue_evaluates(id):
    formula = catalogue()[id]
    assert formula.example, "every formula shows how it is called"
    shown = predict(id, formula.example).to_dict()
    assert json.loads(json.dumps(shown)) == shown
    # What a receipt stores as inputs asks the same question again.
    assert predict(id, shown["inputs"]).value == predict(id, formula.example).value


def test_none_leaves_an_optional_parameter_out():
    assert predict("alignment.mean", {**LAW, "mu_test": "none"}).inputs.get("mu_test") is None
    with pytest.raises(InputError, match="M must be"):
        predict("alignment.mean", {**LAW, "M": "none"})
