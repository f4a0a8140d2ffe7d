"""`assay compare alignment`: what is printed, kept apart and stored; a user's own model; refusals before anything is written."""

import json

import pytest

from verify.command import main

MODEL = """
import torch
from assay import Subject


def make(width: int = 12, seed: int = 0, boundary: str = "1"):
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.Tanh(), torch.nn.Linear(width, 3))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) / 3)
    x = torch.randn(300, 6, generator=generator)
    y = torch.randint(0, 3, (300,), generator=generator)
    return Subject(model, lambda out, y: torch.nn.functional.cross_entropy(out, y, reduction="sum"), (x, y), boundary)


def without_data():
    return Subject(make().model, None, None, "1")


def mean_loss():
    good = make()
    return Subject(good.model, torch.nn.functional.cross_entropy, good.data, "1")


def nothing():
    return None
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mymodel.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_keeps_guarantee_prediction_and_plug_in_apart(here, capsys):
    assert main(["compare", "alignment", "--model", "mymodel:make", "-M", "16", "-K", "16", "--out", "run"]) == 0
    printed = capsys.readouterr().out
    for words in ("measured", "prediction", "not guaranteed", "guarantee             none", "decision at delta = 0.05"):
        assert words in printed
    assert max(map(len, printed.splitlines())) <= 80
    stored = json.loads((here / "run" / "alignment.json").read_text())
    assert stored["seen"]["statistics"]["n"] == 300
    assert (here / "run" / "alignment.svg").read_text().startswith("<svg")


def test_a_guarantee_names_its_assumption(here, capsys):
    arguments = ["compare", "alignment", "--model", "mymodel:make", "-M", "64", "-K", "16", "--json", "--kurtosis", "9"]
    assert main([*arguments, "--out", "run"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert "kurtosis" in seen["guarantee"]["assumption"]
    assert 0 <= seen["guarantee"]["bound"] <= 1
    # Without a detected signal the plug-in bounds are null, never a number made up.
    assert (seen["not_guaranteed"]["bound_exact"] is None) == (not seen["statistics"]["d_align"]["detected"])


def test_every_cut_is_scanned_and_ranked(here, capsys):
    assert (
        main(
            [
                "compare",
                "alignment",
                "--model",
                "mymodel:make",
                "--boundary",
                "all",
                "-M",
                "8",
                "-K",
                "8",
                "--out",
                "run",
                "--json",
            ]
        )
        == 0
    )
    seen = json.loads(capsys.readouterr().out)
    assert {site["boundary"] for site in seen["sites"]} == {"0", "1", "2"}
    bounds = [site["bound"]["estimate"] for site in seen["sites"] if site["bound"]["detected"]]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "mymodel"], "package.module:function"),
        (["--model", "nowhere:make"], "nowhere"),
        (["--model", "mymodel:other"], "no 'other'"),
        (["--model", "mymodel:nothing"], "must return assay.Subject"),
        (["--model", "mymodel:without_data"], "needs loss, data"),
        (["--model", "mymodel:mean_loss"], "sum"),
        (["--model", "mymodel:make", "--boundary", "9"], "9"),
        (["--model", "mymodel:make", "--delta", "1.5"], "delta"),
        (["--model", "mymodel:make", "-M", "400"], "samples"),
        (["--model", "mymodel:without_data", "--width", "3"], "takes no width"),
    ],
)
def test_refusals_come_before_anything_is_written(here, capsys, arguments, words):
    assert main(["compare", "alignment", *arguments, "--out", "run"]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""
    assert not (here / "run").exists()


def test_the_working_directory_cannot_replace_a_package(here, capsys):
    (here / "json.py").write_text("raise SystemExit('the wrong json')\n")
    assert main(["compare", "alignment", "--model", "mymodel:make", "-M", "8", "-K", "8", "--out", "run"]) == 0
