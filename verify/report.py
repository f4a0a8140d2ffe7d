"""The report of a run: one self-contained page that opens offline, with every verdict, number, control and picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .plots import series_figure, standing_figure
from .receipt import Receipt, write_atomically
from .rules import Verdict, false_alarm_budget

__all__ = ["write_report"]


def write_report(folder: Path, settings: Mapping[str, Any], receipts: Sequence[Receipt]) -> Path:
    """Write `report.html` into the run's folder and return its path."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("verify", "."),
        autoescape=select_autoescape(["jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    contents = [each.content for each in receipts]
    suites: dict[str, dict[str, Any]] = {}
    for content in contents:
        section = suites.setdefault(content["suite"], {"ours": [], "reported": [], "figure": None})
        section[content["owner"]].append(_entry(content))
    for section in suites.values():
        rows = [row for entry in section["ours"] + section["reported"] if (row := _row(entry)) is not None]
        section["figure"] = standing_figure(rows) if rows else None
    counts = {verdict.value: sum(r.verdict == verdict.value for r in receipts) for verdict in Verdict}
    page = environment.get_template("report.html.jinja").render(
        settings=settings,
        suites=suites,
        counts={name: count for name, count in counts.items() if count},
        meanings={verdict.value: verdict.meaning for verdict in Verdict},
        budget=f"{false_alarm_budget(settings['equalities'], settings['one_sided']):.1e}",
        versions=contents[0]["versions"] if contents else {},
        controls=sum(len(c["seen"]["controls"]) for c in contents),
        refuted_controls=sum(k["refuted"] for c in contents for k in c["seen"]["controls"]),
        nearest=_nearest(contents),
        seconds=sum(c["cost"]["seconds"] for c in contents),
    )
    path = folder / "report.html"
    write_atomically(path, page)
    return path


def _entry(content: Mapping[str, Any]) -> dict[str, Any]:
    seen = content["seen"]
    series = (seen["details"] or {}).get("series")
    figures = series if isinstance(series, list) else [series] if series else []
    formula = content["formula"]
    mathml, symbol = _mathml(formula) if formula else ("", "")
    return {
        **content,
        "mathml": mathml,
        "symbol": symbol,
        "figures": [series_figure(each) for each in figures],
        "predicted": _predicted(seen["predicted"]),
        "measured": _measured(seen["measured"]),
        "statistic": "" if seen["statistic"] is None else f"{seen['statistic_name']} = {_number(seen['statistic'])}",
        "control_rows": [
            {**each, "shown": "" if each["distance"] is None else f"{_number(each['distance'])} {each['unit']}"}
            for each in seen["controls"]
        ],
    }


@cache
def _mathml(id: str) -> tuple[str, str]:
    from sympy import Eq, Symbol
    from sympy.printing.mathml import mathml

    from theory import formula

    known = formula(id)
    try:
        body = mathml(Eq(Symbol("_"), known.statement, evaluate=False).rhs, printer="presentation")
    except Exception:  # a statement that SymPy cannot typeset is shown as text
        from html import escape

        body = f"<mtext>{escape(str(known.statement))}</mtext>"
    return f'<math display="block">{body}</math>', known.symbol


def _row(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    seen = entry["seen"]
    if seen["statistic_name"] != "z" or not isinstance(seen["statistic"], (int, float)):
        return None
    distances = [c["distance"] for c in seen["controls"] if isinstance(c["distance"], (int, float))]
    return {"id": entry["claim"].split(".", 1)[1], "z": seen["statistic"], "controls": distances}


def _nearest(contents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The least visible convention error: the refuted control that stood nearest, in standard errors."""
    seen = [
        {"claim": c["claim"], "name": k["name"], "distance": k["distance"]}
        for c in contents
        for k in c["seen"]["controls"]
        if k["unit"] == "standard errors" and isinstance(k["distance"], (int, float))
    ]
    return min(seen, key=lambda each: each["distance"], default=None)


def _predicted(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return ""
    if not isinstance(value["value"], str):
        return f"{value['kind']}, {len(value['value'])} numbers"
    return value["value"] + ("" if value["kind"] == "exact" else f" ± {value['radius']}")


def _measured(measured: Mapping[str, Any] | None) -> str:
    if measured is None:
        return ""
    if not measured["detected"]:
        return f"not detected: {measured['note']}"
    return f"{_number(measured['estimate'])} ± {_number(measured['standard_error'])} ({measured['sample']})"


def _number(value: Any) -> str:
    return value if isinstance(value, str) else "none" if value is None else f"{value:.6g}"
