"""What the documents show is run: the README's Python, CONTRIBUTING's claim file."""

import re
from pathlib import Path

from verify.runner import run

ROOT = Path(__file__).resolve().parent.parent


def _blocks(name, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), flags=re.S)


def test_the_readme_python_runs_and_its_numbers_are_right():
    (block,) = _blocks("README.md")
    shown = 0
    scope: dict = {}
    for line in block.strip().splitlines():
        code, _, comment = line.partition("  # ")
        try:
            value = eval(code, scope)
        except SyntaxError:
            exec(code, scope)
            continue
        if match := re.match(r"\s*([0-9.]+) \+/- (\S+)", comment.strip()):
            assert f"{value.value}" == f"{match[1]} +/- {match[2]}"
            shown += 1
    assert shown >= 1


def test_the_claim_of_the_contributing_guide_is_confirmed(tmp_path):
    (block,) = _blocks("CONTRIBUTING.md")
    (tmp_path / "my_claims.py").write_text(block)
    finished = run([], jobs=1, out=tmp_path / "run", files=[str(tmp_path / "my_claims.py")])
    (receipt,) = finished.receipts
    assert receipt.verdict == "confirmed"
    assert receipt.id == "mine.variance_in_one_dimension"
    assert all(each["distance"] > 5 for each in receipt.content["seen"]["controls"])
