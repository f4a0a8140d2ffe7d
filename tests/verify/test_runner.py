"""The runner: receipts that do not depend on workers, resumption after a kill, refusals before anything is written."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from theory import InputError
from verify.receipt import Receipt, read, write_atomically
from verify.runner import run

FEW = [
    "alignment.derivation/mean",
    "alignment.derivation/n_eff",
    "alignment.mean/gaussian",
    "alignment.exact_bound/student",
]

CLAIMS = '''
import time
import numpy as np
from empirics.measurement import Measurement
from verify import Case, claim
from verify.controls import factor, restated
from verify.decide import Equality


@claim(
    "alignment.n_eff",
    rule=Equality(draws=400),
    controls=[factor(2), restated("a sixteenth too small", lambda case: case.value() * 15 / 16)],
    cases={str(i): {"M": str(i), "K": "4"} for i in range(1, 13)},
    suite="mine",
)
def slow(case: Case, rng: np.random.Generator, draws: int) -> Measurement:
    """A measurement that takes its time."""
    time.sleep(0.2)
    values = case.value() * (1 + 0.01 * rng.standard_normal(draws))
    return Measurement(float(values.mean()), float(values.std() / draws**0.5), count=draws)
'''


def _content(receipt: Receipt) -> dict:
    return {key: value for key, value in receipt.content.items() if key != "cost"}


def test_receipts_do_not_depend_on_the_number_of_workers_or_the_order(tmp_path):
    one = run(FEW, seed=3, jobs=1, out=tmp_path / "one")
    two = run(FEW[::-1], seed=3, jobs=2, out=tmp_path / "two")
    assert {r.id: _content(r) for r in one.receipts} == {r.id: _content(r) for r in two.receipts}
    assert one.exit_status == 0


def test_another_seed_draws_other_numbers(tmp_path):
    first, second = (
        run(["alignment.mean/gaussian"], seed=seed, jobs=1, out=tmp_path / str(seed)).receipts[0] for seed in (0, 1)
    )
    assert first.content["seen"]["measured"] != second.content["seen"]["measured"]
    assert first.content["seen"]["predicted"] == second.content["seen"]["predicted"]


def test_a_killed_run_resumes_with_no_claim_lost_or_repeated(tmp_path):
    claims = tmp_path / "claims.py"
    claims.write_text(CLAIMS)
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "assay", "verify", str(claims), "--jobs", "1", "--out", str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("mine*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.wait()
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("mine*.json")}
    assert 3 <= len(before) < 12
    finished = run([], jobs=1, resume=folder, files=[str(claims)])
    assert [r.id for r in finished.receipts] == [f"mine.slow/{i}" for i in range(1, 13)]
    assert len({r.id for r in finished.receipts}) == 12
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("mine*.json")}
    assert all(after[name] == stamp for name, stamp in before.items())
    fresh = run([], jobs=1, out=tmp_path / "fresh", files=[str(claims)])
    assert [_content(r) for r in finished.receipts] == [_content(r) for r in fresh.receipts]


def test_a_receipt_cut_short_is_judged_again(tmp_path):
    first = run(FEW[:2], jobs=1, out=tmp_path / "run")
    victim = next((tmp_path / "run").glob("*n_eff*.json"))
    whole = victim.read_text()
    victim.write_text(whole[: len(whole) // 2])
    assert read(victim) is None
    again = run(FEW[:2], jobs=1, resume=tmp_path / "run")
    assert [_content(r) for r in again.receipts] == [_content(r) for r in first.receipts]
    assert json.loads(victim.read_text())["claim"] == "alignment.derivation/n_eff"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "seed was 0, is 1"),
        ({"level": "full"}, "level was quick, is full"),
        ({"selection": FEW[:1]}, "selection"),
    ],
)
def test_resume_refuses_another_question(tmp_path, change, words):
    run(FEW[:2], jobs=1, out=tmp_path / "run")
    asked = {"selection": FEW[:2], "seed": 0, "level": "quick"} | change
    with pytest.raises(InputError, match=words):
        run(asked["selection"], seed=asked["seed"], level=asked["level"], resume=tmp_path / "run")


def test_resume_refuses_another_code_version(tmp_path, monkeypatch):
    run(FEW[:2], jobs=1, out=tmp_path / "run")
    monkeypatch.setattr("verify.runner.code_version", lambda: "another")
    with pytest.raises(InputError, match="code was"):
        run(FEW[:2], resume=tmp_path / "run")


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not empty"):
        run(FEW[:1], out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_claim_that_raises_is_an_error_and_the_rest_goes_on(tmp_path):
    claims = tmp_path / "claims.py"
    claims.write_text(
        CLAIMS.replace("time.sleep(0.2)", "assert case.M != 2, 'two is too many'").replace(
            "range(1, 13)", "range(1, 4)"
        )
    )
    finished = run([], jobs=1, out=tmp_path / "run", files=[str(claims)])
    assert [r.verdict for r in finished.receipts] == ["confirmed", "error", "confirmed"]
    assert "two is too many" in finished.receipts[1].content["seen"]["note"]
    assert finished.exit_status == 70


@pytest.mark.parametrize(
    ("edit", "verdict", "status"),
    [
        (("1 + 0.01 *", "1.01 + 0.01 *"), "refuted", 1),
        (("case.value() * 15 / 16", "case.value()"), "vacuous", 1),
        (("draws=400", "draws=3"), "undecided", 3),
    ],
)
def test_verdicts_reach_the_exit_status(tmp_path, edit, verdict, status):
    claims = tmp_path / "claims.py"
    claims.write_text(CLAIMS.replace("time.sleep(0.2)", "").replace("range(1, 13)", "range(4, 5)").replace(*edit))
    finished = run([], jobs=1, out=tmp_path / "run", files=[str(claims)])
    assert [r.verdict for r in finished.receipts] == [verdict]
    assert finished.exit_status == status


def test_a_reported_claim_never_changes_the_exit_status(tmp_path):
    claims = tmp_path / "claims.py"
    source = (
        CLAIMS.replace("time.sleep(0.2)", "")
        .replace("range(1, 13)", "range(4, 5)")
        .replace("1 + 0.01 *", "1.01 + 0.01 *")
    )
    claims.write_text(source.replace('suite="mine"', 'suite="mine", owner="reported"'))
    finished = run([], jobs=1, out=tmp_path / "run", files=[str(claims)])
    assert [(r.verdict, r.owner) for r in finished.receipts] == [("refuted", "reported")]
    assert finished.exit_status == 0


def test_a_claim_needs_two_controls_and_a_statement():
    from verify import claim
    from verify.controls import factor
    from verify.decide import Equality

    with pytest.raises(InputError, match="two controls"):
        claim("alignment.n_eff", rule=Equality(draws=4), controls=[factor(2)])
    with pytest.raises(InputError, match="docstring"):
        claim("alignment.n_eff", rule=Equality(draws=4), controls=[factor(2), factor(3)])(lambda case, rng, draws: None)


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(Path(tmp_path) / "receipt.json", "{}")
    assert list(tmp_path.iterdir()) == []
