"""What the command line prints, as text of at most 80 columns and as plain objects."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theory import TOPICS, Formula, topic

if TYPE_CHECKING:
    from numerics import Prediction

    from .runner import Run

__all__ = [
    "catalogue_object",
    "catalogue_text",
    "derivation_text",
    "formula_object",
    "formula_text",
    "latex_text",
    "prediction_text",
    "run_object",
    "run_text",
]

WIDTH = 80


def catalogue_text() -> str:
    """The catalogue by topic, a line a formula."""
    lines = []
    for name, (_, text) in TOPICS.items():
        lines += [f"{name}: {text}", ""]
        lines += [f"  {each.id:<34}{_clip(each.title, WIDTH - 36)}" for each in topic(name)] + [""]
    return "\n".join([*lines, "assay predict ID explains one; assay predict ID name=value ... evaluates it"])


def catalogue_object() -> list[dict[str, str]]:
    """The catalogue as a list of ids and titles."""
    return [{"id": each.id, "title": each.title} for name in TOPICS for each in topic(name)]


def formula_text(formula: Formula) -> str:
    """A formula's page: statement, parameters, assumptions, conventions, source, and a call to copy."""
    lines = [*_wrap(f"{formula.id}: {formula.title}", indent=0), "", *_statement(formula), "", "parameters"]
    for each in formula.parameters:
        default = "" if each.required else f" (default {each.default})" if each.default is not None else " (optional)"
        lines += _wrap(f"{each.name}: {each.meaning}; {each.domain.describe()}{default}")
    lines += ["", "assumptions"]
    for assumption in formula.assumptions:
        other = f"; otherwise {assumption.otherwise}" if assumption.otherwise else ""
        lines += _wrap(f"{assumption.name}: {assumption.text}{other}")
    lines += ["", "conventions", *_wrap(formula.conventions), "", "source", *_wrap(str(formula.source))]
    if formula.example:
        lines += ["", "for example", *_call(formula)]
    return "\n".join(lines)


def formula_object(formula: Formula, derive: bool = False) -> dict[str, Any]:
    """The same as a plain object; with the derivation's steps in LaTeX if asked."""
    from theory.words import latex_of as latex

    page: dict[str, Any] = {
        "id": formula.id,
        "title": formula.title,
        "symbol": formula.symbol,
        "statement": str(formula.statement),
        "latex": latex(formula.statement),
        "parameters": [
            {
                "name": each.name,
                "meaning": each.meaning,
                "domain": each.domain.describe(),
                "required": each.required,
                "default": each.default,
            }
            for each in formula.parameters
        ],
        "assumptions": [{"name": a.name, "text": a.text, "otherwise": a.otherwise} for a in formula.assumptions],
        "conventions": formula.conventions,
        "source": str(formula.source),
        "example": dict(formula.example),
    }
    if derive:
        page["axioms"] = [{"name": each.name, "text": each.text} for each in formula.axioms]
        page["steps"] = [{"why": step.why, "latex": latex(step.equation)} for step in formula.derive()]
    return page


def derivation_text(formula: Formula) -> str:
    """The axioms and the steps, numbered."""
    from sympy import pretty

    lines = [*_wrap(f"{formula.id}: {formula.title}", indent=0), "", "from"]
    for axiom in formula.axioms:
        lines += _wrap(f"{axiom.name}: {axiom.text.split('; the rival')[0]}")
    for number, step in enumerate(formula.derive(), 1):
        lines += ["", *_wrap(f"{number}. {step.why}", indent=0)]
        lines += textwrap.indent(_narrow(step.equation, pretty), "     ").split("\n")
    return "\n".join(lines)


def latex_text(formula: Formula) -> str:
    """The statement in LaTeX."""
    from theory.words import latex_of as latex

    return f"{formula.symbol} = {latex(formula.statement)}"


def prediction_text(prediction: Prediction) -> str:
    """A value with its error and what it rests on."""
    value = prediction.value
    lines = []
    if isinstance(value.midpoint, tuple):
        lines += [f"{prediction.id}", *(f"  {item}" for item in value.to_dict()["value"])]
    elif isinstance(value.midpoint, dict):
        lines += [f"{prediction.id}", *(f"  {name}: {item}" for name, item in value.to_dict()["value"].items())]
    else:
        lines += [f"{prediction.id} = {value.to_dict()['value']}"]
    radius = value.to_dict()["radius"]
    if isinstance(radius, str):
        meaning = {
            "exact": "exact",
            "ball": f"within {radius}, certified",
            "estimate": f"within about {radius}, estimated",
        }[value.kind]
        lines.append(f"  {meaning}")
    else:
        lines.append(f"  {value.kind}")
    for each in prediction.assumptions:
        if each["holds"] is False:
            lines += _wrap(f"{each['name']} does not hold: {each.get('otherwise') or each['text']}")
    unseen = [each["name"] for each in prediction.assumptions if each["holds"] is None]
    if unseen:
        lines += _wrap("assumes " + ", ".join(unseen))
    return "\n".join(lines)


def run_text(run: Run, controls: bool = False) -> str:
    """The verdicts as a table, ours first, reported ones apart; then the budget of false alarms."""
    lines = []
    for owner, title in (("ours", "our claims"), ("reported", "reported claims (never change the exit status)")):
        receipts = [each for each in run.receipts if each.owner == owner]
        if not receipts:
            continue
        lines += ["", title]
        for each in receipts:
            seen = each.content["seen"]
            lines.append(f"  {each.verdict:<9} {_clip(each.id, 50):<50} {_statistic(seen)}")
            if each.verdict != "confirmed" and seen["note"]:
                note = seen["note"].strip().split("\n")[-1] if each.verdict == "error" else seen["note"]
                lines += _wrap(note, indent=12)
            if controls:
                lines += [_control(control) for control in seen["controls"]]
    lines += ["", _summary(run)]
    return "\n".join(lines).lstrip("\n")


def run_object(run: Run, page: Path) -> dict[str, Any]:
    """The run as one object: settings, counts, exit status, receipts."""
    counts: dict[str, int] = {}
    for each in run.receipts:
        counts[each.verdict] = counts.get(each.verdict, 0) + 1
    return {
        "folder": str(run.folder),
        "report": str(page),
        "exit_status": run.exit_status,
        "counts": counts,
        "level": run.settings["level"],
        "seed": run.settings["seed"],
        "receipts": [dict(each.content) for each in run.receipts],
    }


def _summary(run: Run) -> str:
    from .rules import false_alarm_budget

    counts = {}
    for each in run.receipts:
        counts[each.verdict] = counts.get(each.verdict, 0) + 1
    killed = sum(c["refuted"] for r in run.receipts for c in r.content["seen"]["controls"])
    total = sum(len(r.content["seen"]["controls"]) for r in run.receipts)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    budget = false_alarm_budget(run.settings["equalities"], run.settings["one_sided"])
    return f"{told}; {killed} of {total} controls refuted; chance of any false alarm {budget:.1e}"


def _statistic(seen: dict[str, Any]) -> str:
    if seen["statistic"] is None:
        return ""
    number = seen["statistic"]
    return f"{seen['statistic_name']} {number if isinstance(number, str) else f'{number:.3g}'}"


def _control(control: dict[str, Any]) -> str:
    word = "refuted" if control["refuted"] else "SURVIVED"
    distance = control["distance"]
    told = (
        "" if distance is None else f" {distance if isinstance(distance, str) else f'{distance:.3g}'} {control['unit']}"
    )
    return _clip(f"{'':12}{word:<9}{control['name']}{told}", WIDTH)


def _statement(formula: Formula) -> list[str]:
    from sympy import Eq, Symbol, pretty

    if isinstance(formula.statement, tuple):
        return ["  " + str(part) for part in formula.statement]
    return textwrap.indent(_narrow(Eq(Symbol(formula.symbol), formula.statement, evaluate=False), pretty), "  ").split(
        "\n"
    )


def _narrow(expression: Any, pretty: Any) -> str:
    """Two-dimensional where it fits into the width, else on one line, wrapped."""
    drawn = pretty(expression, use_unicode=True, wrap_line=False, num_columns=10_000)
    if max(map(len, drawn.split("\n"))) <= WIDTH - 6:
        return drawn
    flat = f"{expression.lhs} = {expression.rhs}" if hasattr(expression, "lhs") else str(expression)
    return "\n".join(textwrap.wrap(flat, WIDTH - 6, break_on_hyphens=False))


def _call(formula: Formula) -> list[str]:
    def quote(value: str) -> str:
        return f'"{value}"' if set(value) & set(";*()' ") else value

    words = [f"assay predict {formula.id}", *(f"{n}={quote(v)}" for n, v in formula.example.items())]
    lines = [f"  {words[0]}"]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _wrap(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
