"""Running a selection of claims into a folder of receipts: in parallel, resumable after any interruption."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from theory import InputError

from .claim import Claim, Level
from .outcome import Outcome
from .receipt import SCHEMA, Receipt, code_version, read, versions, write_atomically
from .rules import Verdict, alpha_each
from .suites import find

__all__ = ["Run", "judge_one", "run"]


@dataclass(frozen=True)
class Run:
    """A finished or interrupted run: its folder, settings and receipts, in the order asked."""

    folder: Path
    settings: dict[str, Any]
    receipts: tuple[Receipt, ...]

    @property
    def exit_status(self) -> int:
        """0 all of ours confirmed; 1 one refuted or vacuous; 3 undecided and nothing worse; 70 a claim in error."""
        seen = {each.verdict for each in self.receipts if each.owner == "ours"}
        if any(each.verdict == "error" for each in self.receipts):
            return 70
        if seen & {"refuted", "vacuous"}:
            return 1
        return 3 if "undecided" in seen else 0


def judge_one(id: str, files: Sequence[str], seed: int, alpha: float) -> dict[str, Any]:
    """Judge one claim by id in this process and return the content of its receipt. Never raises: it reports."""
    start = time.perf_counter()
    claim: Claim | None = None
    try:
        claim = find([id], files)[0]
        seen = claim.rule.judge(claim, seed, alpha).to_dict()
        json.dumps(seen)
    except Exception:
        seen = Outcome(Verdict.error, None, "none", 0, note=traceback.format_exc(limit=20)).to_dict()
    return {
        "schema": SCHEMA,
        "claim": id,
        "suite": id.split(".", 1)[0],
        "statement": claim.statement if claim else "",
        "owner": claim.owner.value if claim else "ours",
        "rule": claim.rule.kind if claim else "",
        "formula": claim.formula.id if claim and claim.formula else None,
        "asked": {
            "inputs": {n: str(v) for n, v in claim.case.inputs.items()} if claim and claim.case else {},
            "seed": seed,
            "alpha": alpha,
        },
        "versions": dict(versions()) | {"code": code_version()},
        "seen": seen,
        "cost": {"seconds": round(time.perf_counter() - start, 3)},
    }


def run(
    selection: Sequence[str],
    *,
    level: str = "quick",
    seed: int = 0,
    jobs: int | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    files: Sequence[str] = (),
    on_start: Callable[[Path, int, int], None] = lambda folder, total, done: None,
    on_receipt: Callable[[Receipt], None] = lambda receipt: None,
) -> Run:
    """Judge the selected claims (suites or ids; all where empty) and store a receipt for each in a run folder.

    `resume` names the folder of an interrupted run: its valid receipts are kept, the rest is judged, and another seed,
    level, selection or code version is refused. Results do not depend on `jobs`. Raises InputError for refused input,
    before anything is written.
    """
    claims = [c for c in find(selection, files) if c.level == Level.quick or level == "full" or c.id in selection]
    if not claims:
        raise InputError(f"nothing to verify at level {level}; `--level full` has more")
    settings = {
        "schema": SCHEMA,
        "level": level,
        "seed": seed,
        "selection": sorted(selection),
        "files": [str(Path(name).resolve()) for name in files],
        "claims": [c.id for c in claims],
        "code": code_version(),
        "one_sided": sum(c.rule.one_sided for c in claims),
        "equalities": sum(c.rule.kind in ("equality", "asymptotic") for c in claims),
    }
    folder = _open(settings, out, resume)
    kept = {each.id: each for path in folder.glob("*.json") if (each := read(path)) is not None}
    done = {
        id: each
        for id, each in kept.items()
        if each.content["versions"].get("code") == settings["code"] and id in settings["claims"]
    }
    alpha = alpha_each(max(1, settings["one_sided"]))
    todo = sorted((c for c in claims if c.id not in done), key=lambda c: -c.cost)
    on_start(folder, len(claims), len(done))
    for content in _judge_all([c.id for c in todo], settings["files"], seed, alpha, jobs):
        receipt = Receipt(content)
        receipt.write(folder)
        done[receipt.id] = receipt
        on_receipt(receipt)
    receipts = tuple(done[c.id] for c in claims)
    index = [{"claim": r.id, "verdict": r.verdict, "owner": r.owner} for r in receipts]
    write_atomically(folder / "index.json", json.dumps(settings | {"receipts": index}, indent=1) + "\n")
    return Run(folder, settings, receipts)


def _open(settings: dict[str, Any], out: Path | None, resume: Path | None) -> Path:
    if resume is not None:
        try:
            before = json.loads((resume / "run.settings").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InputError(f"{resume} is not the folder of a run: it has no readable run.settings") from None
        changed = [k for k in settings if before.get(k) != settings[k]]
        if changed:
            told = ", ".join(f"{key} was {_short(before.get(key))}, is {_short(settings[key])}" for key in changed[:3])
            raise InputError(f"cannot resume {resume}: {told}. Start a new run, or ask for what was asked then.")
        return resume
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = out if out is not None else Path("runs") / f"{stamp}-{settings['seed']}"
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; name another folder, or --resume {folder} to go on with a run there")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "run.settings", json.dumps(settings, indent=1) + "\n")
    except OSError as fault:
        raise InputError(f"cannot write to {folder}: {fault.strerror}") from None
    return folder


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _judge_all(ids: Sequence[str], files: Sequence[str], seed: int, alpha: float, jobs: int | None) -> Any:
    """Contents of receipts as they come. One process judges in place; several are joblib workers of one thread each."""
    count = min(jobs or min(2, os.cpu_count() or 1), max(1, len(ids)))
    if count == 1:
        yield from (judge_one(id, files, seed, alpha) for id in ids)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=count, return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(judge_one)(id, files, seed, alpha) for id in ids)
