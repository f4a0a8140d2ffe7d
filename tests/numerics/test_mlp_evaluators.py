"""The `mlp.*` ids: the JSON contract, what is refused and in which words, and that no NaN ever comes out."""

import json
import math
import warnings

import numpy as np
import pytest

from numerics import predict
from numerics.mlp import Problem, solve
from theory import InputError, topic

DATA = {"activation": "tanh", "gram": "1,-0.175258;-0.175258,1", "targets": "1,-1", "gamma0": "3", "eta0": "0.5"}
COARSE = DATA | {"samples": "1024"}


@pytest.mark.parametrize("id", [each.id for each in topic("mlp")])
def test_every_example_evaluates(id):
    example = next(each for each in topic("mlp") if each.id == id).example
    shown = predict(id, example).to_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["kind"] == "estimate"
    # What a receipt stores as inputs asks the same question again.
    assert predict(id, shown["inputs"]).to_dict() == shown


def test_lists_and_objects_have_the_shapes_of_the_contract():
    kernels = predict("mlp.kernels", COARSE | {"t": "3"}).to_dict()
    assert list(kernels["value"]) == ["Phi", "G", "A", "B"]
    assert all(np.array(block).shape == (6, 6) for part in ("value", "radius") for block in kernels[part].values())
    overlaps = predict("mlp.overlaps", COARSE | {"t": "6"}).to_dict()
    assert [len(overlaps["value"][side]) for side in ("left", "right")] == [12, 12]
    outliers = predict("mlp.outliers", COARSE | {"t": "6"}).to_dict()
    assert len(outliers["value"]) == len(outliers["radius"]) == 1
    assert predict("mlp.outliers", COARSE | {"t": "1"}).to_dict()["value"] == []
    for id in ("mlp.outliers", "mlp.lower_outliers"):
        assert predict(id, COARSE | {"t": "0"}).to_dict()["value"] == []
    assert predict("mlp.kernels", COARSE | {"t": "0"}).to_dict()["value"] == {"Phi": [], "G": [], "A": [], "B": []}
    assert predict("mlp.escape_time", COARSE | {"t_max": "1"}).to_dict()["value"] == "inf"
    curve = predict("mlp.loss", COARSE | {"t": [0, 1, 2]}).to_dict()["value"]
    assert [float(each) for each in curve] == pytest.approx([0.5, 0.3427, 0.1999], abs=2e-3)


@pytest.mark.filterwarnings("ignore:mlp.*unstable")  # 1024 samples are few, as the warning says
def test_the_ids_say_what_the_solution_says():
    problem = Problem("tanh", [[1, -0.175258], [-0.175258, 1]], [1, -1], 3, 0.3, 6, depth=3, nu=1.5, sigma=0.8)
    solution = solve(problem, 1024, 5)
    inputs = COARSE | {"eta0": "0.3", "depth": 3, "nu": "1.5", "sigma": "0.8", "seed": 5}
    assert float(predict("mlp.loss", inputs | {"t": 6})) == solution.losses[0][6]
    for layer in (1, 2):
        for independent in ("false", "true"):
            asked = inputs | {"layer": layer, "independent": independent}
            z = [float(each) for each in predict("mlp.outliers", asked | {"t": 6}).value.midpoint]
            assert z == solution.outliers(6, layer, independent == "true")[0].tolist()
            time = float(predict("mlp.escape_time", asked | {"t_max": 6}))
            assert time == solution.escape_time(layer, independent == "true")[0]
    assert solution.outliers(6, 1)[0].tolist() != solution.outliers(6, 2)[0].tolist()


def test_targets_in_one_row_are_one_a_sample_and_in_rows_are_outputs():
    one = float(predict("mlp.loss", COARSE | {"t": 2}))
    assert float(predict("mlp.loss", COARSE | {"t": 2, "targets": np.array([1.0, -1.0])})) == one
    assert float(predict("mlp.loss", COARSE | {"t": 2, "targets": np.array([[1.0], [-1.0]])})) == one
    two = predict("mlp.loss", COARSE | {"t": 0, "targets": "1,0;0,2"})
    assert float(two) == pytest.approx((1 + 4) / 4, abs=1e-3)
    single = predict("mlp.loss", COARSE | {"t": 0, "gram": "1", "targets": "1,2"})
    assert float(single) == pytest.approx((1 + 4) / 2, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"momentum": "0.5"}, ["momentum", "issue 7", "momentum=0"]),
        ({"nesterov": "true"}, ["nesterov", "issue 7"]),
        ({"weight_decay": "0.1"}, ["weight_decay", "issue 7"]),
        ({"residual": "1"}, ["residual", "issue 7"]),
        ({"bias_rate": "1"}, ["bias_rate", "issue 7"]),
        ({"bias_std": "0.5"}, ["bias_std", "issue 7"]),
        ({"loss": "cross_entropy", "labels": "0,1", "classes": "2"}, ["issue 7"]),
        ({"loss": "cross_entropy"}, ["loss=cross_entropy", "issue 7"]),
        ({"loss": "hinge"}, ["squared", "hinge"]),
        ({"activation": "sigmoid"}, ["activation", "tanh", "sigmoid"]),
        ({"gram": "1,2;2,1"}, ["gram", "smallest eigenvalue"]),
        ({"gram": "1,0.5"}, ["gram", "in full"]),
        ({"gram": "0,0;0,0"}, ["gram", "smallest eigenvalue"]),
        ({"targets": None}, ["targets"]),
        ({"targets": "1,-1,1"}, ["targets", "3 rows"]),
        ({"layer": "2"}, ["layer", "1 to 1"]),
        ({"layer": "0"}, ["layer", ">= 1"]),
        ({"depth": "1"}, ["depth", ">= 2"]),
        ({"nu": "0"}, ["nu", "> 0"]),
        ({"sigma": "-1"}, ["sigma", "> 0"]),
        ({"eta0": "0"}, ["eta0", "> 0"]),
        ({"gamma0": "nan"}, ["gamma0", "nan"]),
        ({"batch": "3"}, ["batch", "between 1 and the 2"]),
        ({"samples": "1000"}, ["samples", "power of 2"]),
        ({"samples": "1"}, ["samples", ">= 256"]),
        ({"t": "-1"}, ["t", ">= 0"]),
        ({"t": "200", "samples": "256"}, ["power of 2 above"]),
        ({"t": "40", "samples": "1048576"}, ["GiB", "fewer samples"]),
        ({"momentun": "0"}, ["Did you mean momentum?"]),
    ],
)
def test_bad_input_is_named(change, words):
    with pytest.raises(InputError) as refusal:
        predict("mlp.outliers", COARSE | {"t": "3"} | change)
    for word in words:
        assert word in str(refusal.value), str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.filterwarnings("ignore:mlp.*unstable")
@pytest.mark.parametrize("activation", ["linear", "relu", "gelu", "tanh"])
@pytest.mark.parametrize("eta0", ["3", "100"])
def test_a_rate_beyond_stability_ends_in_an_error_or_a_number(activation, eta0):
    inputs = COARSE | {"t": "12", "activation": activation, "eta0": eta0}
    for id in ("mlp.loss", "mlp.outliers", "mlp.overlaps"):
        refusal = None
        try:
            shown = json.dumps(predict(id, inputs).to_dict())
        except InputError as error:
            refusal, shown = str(error), ""
        assert refusal is None or "beyond stability" in refusal
        assert "nan" not in shown.lower()


@pytest.mark.filterwarnings("ignore:mlp.*unstable")
@pytest.mark.parametrize(
    "change",
    [
        {"targets": "0,0"},
        {"gram": "1,1;1,1"},
        {"gram": "1,0;0,0"},
        {"gram": "1,-1;-1,1"},
        {"targets": "0,0;0,0"},
        {"gamma0": "1e-6"},
        {"gamma0": "1e6", "eta0": "1e-12"},
        {"activation": "linear", "gram": "1,1;1,1"},
        {"activation": "relu", "gram": "1,0;0,0"},
        {"nu": "1e-3"},
        {"nu": "1e3"},
    ],
)
def test_degenerate_data_give_finite_numbers(change):
    inputs = COARSE | {"samples": "256"} | change
    for id in ("mlp.loss", "mlp.kernels", "mlp.outliers", "mlp.lower_outliers", "mlp.overlaps"):
        shown = json.dumps(predict(id, inputs | {"t": "3"}).to_dict())
        assert "nan" not in shown.lower()
        assert "inf" not in shown.lower()
    assert not math.isnan(float(predict("mlp.escape_time", inputs | {"t_max": "3"})))


def test_an_unstable_rate_is_flagged_with_the_update_it_starts_at():
    wild = COARSE | {"t": "12", "eta0": "6"}
    with pytest.warns(UserWarning, match=r"unstable from update \d+.*eta0=6 is beyond stability"):
        predict("mlp.loss", wild)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict("mlp.loss", DATA | {"t": "6"})


def test_targets_that_are_met_leave_everything_at_rest():
    shown = predict("mlp.loss", COARSE | {"t": "5", "targets": "0,0"})
    assert float(shown) == pytest.approx(0, abs=1e-5)
    assert predict("mlp.outliers", COARSE | {"t": "5", "targets": "0,0"}).to_dict()["value"] == []
