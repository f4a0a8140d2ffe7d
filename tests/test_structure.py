"""The house rules that a machine can hold: module length, explicit surfaces, layers that are assay's own, fast starts."""

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("theory", "numerics", "empirics", "verify", "assay")


def _modules():
    return [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


def test_no_module_is_over_400_lines():
    long = {str(p.relative_to(ROOT)): n for p in _modules() if (n := len(p.read_text().splitlines())) > 400}
    assert not long


@pytest.mark.parametrize("layer", LAYERS)
def test_public_surfaces_are_explicit_and_small(layer):
    package = import_module(layer)
    assert len(package.__all__) <= 25
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert (ROOT / layer / "py.typed").exists()


def _python(*arguments, cwd=ROOT, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | environment,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import assay", ("sympy", "torch", "scipy", "matplotlib", "numpy")),
        ("import theory; theory.catalogue()", ("torch", "numpy")),
        ("import numerics.alignment", ("torch", "scipy.stats")),
        ("import empirics", ("torch",)),
        ("import verify.command", ("torch", "sympy", "scipy", "matplotlib", "hypothesis")),
    ],
)
def test_heavy_imports_wait_until_they_are_used(statement, forbidden):
    code = f"{statement}; import sys; print([m for m in {forbidden!r} if m in sys.modules])"
    assert _python("-c", code).stdout.strip() == "[]"


def test_a_folder_that_shadows_a_layer_is_named(tmp_path):
    (tmp_path / "theory").mkdir()
    (tmp_path / "theory" / "__init__.py").write_text("raise SystemExit('the wrong theory was imported')\n")
    done = _python("-m", "assay", "predict", cwd=tmp_path)
    assert done.returncode == 2
    assert str(tmp_path / "theory") in done.stderr
    assert done.stdout == ""


def test_the_catalogue_answers_in_well_under_a_second():
    """A smoke test with a wide margin; benchmarks/ has the figures."""
    start = time.perf_counter()
    assert _python("-m", "assay", "predict", "alignment.n_eff", "M=1", "K=2").returncode == 0
    assert time.perf_counter() - start < 10
