"""The property rule: Hypothesis looks for an admissible input that breaks the statement, and shrinks what it finds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numerics import predict

from .claim import Case, Claim, Control
from .decide import conclude
from .outcome import ControlSeen, Outcome, plain
from .receipt import file_name, write_atomically
from .rules import Verdict

__all__ = ["Evaluate", "Property"]

Evaluate = Callable[..., float]
"""`evaluate(id, **inputs)`: a formula's value; under a control, the claim's own formula is the control's mutant."""


@dataclass(frozen=True)
class Property:
    """The statement holds for every input that meets the assumptions.

    `strategies()` gives Hypothesis strategies by argument name; `measure(evaluate, **drawn)` raises AssertionError where
    the statement fails. A control mutates the claim's formula: the same search must then find a counterexample.
    """

    strategies: Callable[[], Mapping[str, Any]]
    examples: int = 200
    kind: str = "property"
    one_sided: bool = False

    def judge(self, claim: Claim, seed: int, alpha: float) -> Outcome:
        """Kept counterexamples first, then a search; then the same search against every control."""
        right: Evaluate = lambda id, **inputs: float(predict(id, inputs))  # noqa: E731
        kept = _kept(claim.id)
        found = next((each for each in kept if self._fails(claim, right, each)), None)
        tried, note = len(kept), ""
        if found is None:
            found, searched, note = self._search(claim, right, seed)
            tried += searched
        if found is not None:
            _keep(claim.id, found)
        verdict = Verdict.refuted if found is not None else Verdict.confirmed
        if found is None and tried == 0:
            verdict = Verdict.vacuous
        controls = tuple(self._control(claim, control, seed) for control in claim.controls)
        if found is not None:
            note = f"counterexample {plain(found)}: {note}" if note else f"counterexample {plain(found)}"
        verdict, note = conclude(verdict, controls, note)
        return Outcome(
            verdict, float(tried), "inputs", tried, note, controls=controls, details={"counterexample": plain(found)}
        )

    def _control(self, claim: Claim, control: Control, seed: int) -> ControlSeen:
        assert claim.formula is not None
        mutated = claim.formula.id

        def wrong(id: str, **inputs: Any) -> float:
            return control.value(Case(id, inputs)) if id == mutated else float(predict(id, inputs))

        # The first failure is enough here; only a counterexample to the claim itself is worth shrinking.
        found, tried, _ = self._search(claim, wrong, seed, shrink=False)
        note = f"fails at {plain(found)}" if found is not None else f"survived {tried} inputs"
        return ControlSeen(control.name, None, float(tried), found is not None, "inputs until it failed", note)

    @staticmethod
    def _fails(claim: Claim, evaluate: Evaluate, drawn: Mapping[str, Any]) -> bool:
        try:
            claim.measure(evaluate, **drawn)
        except AssertionError:
            return True
        except Exception:  # a stored example of an older signature no longer applies
            return False
        return False

    def _search(
        self, claim: Claim, evaluate: Evaluate, seed: int, shrink: bool = True
    ) -> tuple[Mapping[str, Any] | None, int, str]:
        """(shrunk counterexample or None, inputs tried until then, its message)."""
        import hypothesis

        state: dict[str, Any] = {"tried": 0, "last": None, "first": None}

        phases = [hypothesis.Phase.generate] + [hypothesis.Phase.shrink] * shrink

        @hypothesis.settings(
            phases=phases,
            max_examples=self.examples,
            derandomize=seed == 0,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            report_multiple_bugs=False,
        )
        @hypothesis.given(**self.strategies())
        def attempt(**drawn: Any) -> None:
            state["last"] = drawn
            state["tried"] += 1
            try:
                claim.measure(evaluate, **drawn)
            except AssertionError:
                state["first"] = state["first"] or state["tried"]
                raise

        try:
            (attempt if seed == 0 else hypothesis.seed(seed)(attempt))()
        except AssertionError as failure:
            return state["last"], state["first"], str(failure).split("\n")[0]
        except hypothesis.errors.Unsatisfiable:
            return None, 0, "no input met the assumptions"
        return None, state["tried"], ""


def _store() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "assay" / "counterexamples"


def _kept(claim: str) -> list[Mapping[str, Any]]:
    try:
        content = json.loads((_store() / file_name(claim)).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def _keep(claim: str, found: Mapping[str, Any]) -> None:
    """Store a counterexample so that the next run tries it first; one that JSON cannot hold is in the receipt only."""
    try:
        text = json.dumps([dict(found), *[each for each in _kept(claim) if each != found]][:20])
        _store().mkdir(parents=True, exist_ok=True)
        write_atomically(_store() / file_name(claim), text)
    except (TypeError, OSError):
        return
