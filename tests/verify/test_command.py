"""The command line: what is printed, what is refused, and the exit statuses of the contract."""

import json

import pytest

from verify.command import main

LAW = ["mu=1,0.5,0", "Sigma=1,3,0.25", "M=4", "K=9"]


def test_the_catalogue_fits_80_columns(capsys):
    assert main(["predict"]) == 0
    printed = capsys.readouterr().out
    assert "alignment.bound_exact" in printed
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("option", [[], ["--derive"], ["--latex"], ["--cite"]])
def test_every_formula_has_its_pages(capsys, option):
    from theory import catalogue

    for id in catalogue():
        assert main(["predict", id, *option]) == 0
        printed = capsys.readouterr().out
        assert printed.strip()
        if option in ([], ["--derive"]):
            assert max(map(len, printed.splitlines())) <= 80, id


def test_json_is_one_object_and_nothing_else(capsys):
    assert main(["predict", "alignment.bound_exact", *LAW, "--json", "--digits", "18"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["value"] == "0.368421052631578947"
    assert shown["digits"] == 18


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "alignment.bond"], "Did you mean alignment.bound?"),
        (["predict", "alignment.n_eff", "M=0", "K=1"], "integer >= 1"),
        (["predict", "alignment.n_eff", "M=1", "M=2", "K=1"], "given twice"),
        (["predict", "alignment.n_eff", "M", "K=1"], "name=value"),
        (["predict", "alignment.n_eff", "M=1", "K=1", "--digits", "0"], "digits"),
        (["predict", "alignment.n_eff", "M=1", "K=1", "--digits", "many"], "integer"),
        (["predict", "alignment.n_eff", "K=1", "--plot", "M=5:1"], "empty"),
        (["predict", "alignment.bound", *LAW[2:], "--plot", "mu=0:1"], "scalar"),
        (["verify", "alignmnt"], "Did you mean alignment?"),
        (["verify", "alignment.variences"], "Did you mean"),
        (["verify", "--level", "medium"], "quick or full"),
        (["verify", "--backend", "cloud"], "local"),
        (["verify", "missing_file.py"], "missing_file.py"),
        (["verify", "--resume", "/nowhere/at/all"], "not the folder of a run"),
        (["verify", "--out", "a", "--resume", "b"], "one of them"),
        (["nonsense"], "nonsense"),
        (["predict", "--nonsense"], "nonsense"),
    ],
)
def test_refusals_exit_with_2_and_one_line(capsys, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_fault_exits_with_70(capsys, monkeypatch):
    import numerics

    def broken(*_, **__):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(numerics, "predict", broken)
    assert main(["predict", "alignment.n_eff", "M=1", "K=1"]) == 70
    assert "internal fault" in capsys.readouterr().err


def test_an_interruption_exits_with_130(capsys, monkeypatch):
    import verify.runner

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(verify.runner, "run", interrupted)
    assert main(["verify", "alignment"]) == 130
    assert "--resume" in capsys.readouterr().err


def test_a_curve_is_drawn_into_a_file(capsys, tmp_path):
    target = tmp_path / "curve.png"
    assert main(["predict", "alignment.n_eff", "K=4", "--plot", "M=1:40", "--out", str(target)]) == 0
    assert target.read_bytes()[:4] == b"\x89PNG"
