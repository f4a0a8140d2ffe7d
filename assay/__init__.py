"""assay: closed-form theory of deep networks, put to the test.

    >>> import assay
    >>> print(assay.predict("alignment.n_eff", M=8, K=32, digits=6))
    alignment.n_eff = 6.24390 +/- 0.00000244
    >>> assay.formula("alignment.bound").source.place
    'seed 000, theorem 1'

`predict` evaluates, `formula` explains and derives, `verify` judges claims, `compare` measures a network, and a
`Subject` is the network to be measured. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .layers import own_layers

if TYPE_CHECKING:
    from empirics.subject import Subject
    from numerics import Prediction
    from theory import Formula, InputError, catalogue, formula
    from verify.claim import claim
    from verify.runner import Run

__all__ = ["Formula", "InputError", "Subject", "catalogue", "claim", "formula", "predict", "verify"]
__version__ = "0.1.0"

_LAZY = {
    "Formula": "theory",
    "InputError": "theory",
    "Subject": "empirics.subject",
    "catalogue": "theory",
    "claim": "verify.claim",
    "formula": "theory",
}


def predict(id: str, *, digits: int | None = None, **inputs: Any) -> Prediction:
    """Evaluate a formula of the catalogue: `predict("alignment.bound", mu=..., Sigma=..., M=16, K=16)`.

    Inputs are numbers, arrays or text as on the command line; one scalar may be a list. Returns a Prediction with
    `value`, `radius`, `kind`, `to_dict()`. Raises InputError for what it refuses.
    """
    own_layers()
    from numerics import predict as evaluate

    return evaluate(id, inputs, digits=digits)


def verify(*selection: str, level: str = "quick", seed: int = 0, jobs: int | None = None, out: Any = None) -> Run:
    """Judge claims (suites, ids, or FILE.py) and return the run: `receipts`, `exit_status`, `folder`.

    As `assay verify` on the command line, without its printing; the report is written beside the receipts.
    """
    own_layers()
    from pathlib import Path

    from verify.report import write_report
    from verify.runner import run

    files = [name for name in selection if name.endswith(".py")]
    chosen = [name for name in selection if not name.endswith(".py")]
    finished = run(chosen, level=level, seed=seed, jobs=jobs, out=None if out is None else Path(out), files=files)
    write_report(finished.folder, finished.settings, finished.receipts)
    return finished


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        own_layers()
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")
