"""Pictures: a curve of a formula as a file, and the report's figures as inline SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from theory import Formula, InputError

__all__ = ["plot_curve", "series_figure", "spectra_figure", "standing_figure"]

POINTS = 200
INK, THEORY, CONTROL = "#22303c", "#1f6f8b", "#c1502e"


def plot_curve(formula: Formula, given: Mapping[str, str], plot: str, digits: int | None, out: Path | None) -> Path:
    """Evaluate the formula along one scalar and draw it; returns the PNG's path (default ID.png here).

    `plot` is `name=low:high`. Integers are drawn at every integer, up to 200 of them. Raises InputError for a range that
    is not one, or that the parameter's domain refuses.
    """
    from numerics import parse, predict

    name, _, span = plot.partition("=")
    low_text, colon, high_text = span.partition(":")
    parameter = formula.parameter(name)
    if not colon or parameter.domain.kind not in ("integer", "real"):
        raise InputError(f"{formula.id}: --plot takes a scalar as name=low:high; got {plot!r}")
    if name in given:
        raise InputError(f"{formula.id}: {name} is both given and plotted")
    low, high = float(parse(low_text)), float(parse(high_text))  # type: ignore[arg-type]
    if not low < high < float("inf"):
        raise InputError(f"{formula.id}: the range {span} is empty or unbounded")
    if parameter.domain.kind == "integer":
        step = max(1, round((high - low) / POINTS))
        points: list[Any] = list(range(int(low), int(high) + 1, step))
    else:
        points = [low + (high - low) * i / POINTS for i in range(POINTS + 1)]
        if parameter.domain.open_low and low <= parameter.domain.low:
            points = points[1:]
        if parameter.domain.open_high and high >= parameter.domain.high:
            points = points[:-1]
    curve = predict(formula.id, {**given, name: points}, digits=digits)
    values = [each if isinstance(each, (tuple, dict)) else float(each) for each in curve.value.midpoint]
    if any(isinstance(each, (tuple, dict)) for each in values):
        raise InputError(f"{formula.id} is not a scalar: its curve cannot be drawn as one line")
    path = out or Path(f"{formula.id}.png")
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(6, 3.8))
    marker = "." if parameter.domain.kind == "integer" else None
    axes.plot(points, values, color=THEORY, marker=marker)
    axes.set_xlabel(f"{name}: {parameter.meaning}")
    axes.set_ylabel(formula.symbol)
    axes.set_title(", ".join(f"{n}={v}" for n, v in given.items())[:90], fontsize=9)
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    except (OSError, ValueError) as fault:
        raise InputError(f"cannot write {path}: {fault}") from None
    finally:
        plt.close(figure)
    return path


def standing_figure(rows: Sequence[Mapping[str, Any]]) -> str:
    """Every claim decided in standard errors on one axis: the measurement near 0, its controls far out.

    `rows`: `{"id", "z", "controls": [distances]}`. The axis is linear to 4 and logarithmic beyond.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(8, 0.28 * len(rows) + 1.1))
    for height, row in enumerate(reversed(list(rows))):
        far = [distance for distance in row["controls"] if distance is not None]
        axes.plot(far, [height] * len(far), "x", color=CONTROL, ms=6, label="controls" if not height else None)
        axes.plot([abs(row["z"])], [height], "o", color=THEORY, ms=5, label="measured" if not height else None)
    axes.axvspan(0, 3.29, color=THEORY, alpha=0.08)
    axes.axvline(8, color=INK, lw=0.8, ls=":")
    axes.set_xscale("symlog", linthresh=4, linscale=1.2)
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(rows)), [row["id"] for row in reversed(list(rows))], fontsize=7)
    axes.set_xlabel(
        "distance from the prediction, in standard errors (shaded: first stage confirms; dotted: 8)", fontsize=8
    )
    axes.legend(fontsize=7, loc="lower right")
    return _svg(figure)


def series_figure(series: Mapping[str, Any]) -> str:
    """Theory against measurement along one quantity.

    `series`: `{"x", "measured", "error", "predicted", "xlabel", "ylabel"}`, optionally `"curves": {name: values}` (bounds)
    and `"log": "x" | "y" | "xy"`.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(5.6, 3.4))
    if "predicted" in series:
        axes.plot(series["x"], series["predicted"], color=THEORY, label=series.get("label", "predicted"))
    for style, (name, values) in zip(("--", ":", "-."), series.get("curves", {}).items(), strict=False):
        axes.plot(series["x"], values, style, color=INK, lw=1, label=name)
    axes.errorbar(
        series["x"],
        series["measured"],
        yerr=[2 * e for e in series["error"]],
        fmt="o",
        ms=4,
        color=CONTROL,
        capsize=2,
        label="measured, 2 s.e.",
    )
    for axis in series.get("log", ""):
        (axes.set_xscale if axis == "x" else axes.set_yscale)("log")
    axes.set_xlabel(series["xlabel"], fontsize=8)
    axes.set_ylabel(series["ylabel"], fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7)
    axes.grid(alpha=0.25)
    return _svg(figure)


def spectra_figure(layers: Sequence[Any], most: int = 12) -> str:
    """Histograms of singular values with the law of the bulk and the outliers, for the `most` largest judged layers."""
    import numpy as np

    plt = _pyplot()
    judged = [layer for layer in layers if layer.spectrum is not None and layer.spectrum.ks is not None]
    largest = sorted(judged, key=lambda layer: -len(layer.spectrum.singular_values))[:most]
    judged = [layer for layer in judged if layer in largest]
    columns = min(3, max(1, len(judged)))
    rows = max(1, -(-len(judged) // columns))
    figure, axes = plt.subplots(rows, columns, figsize=(3.6 * columns, 2.4 * rows), squeeze=False)
    for axis in axes.flat[len(judged) :]:
        axis.axis("off")
    for axis, layer in zip(axes.flat, judged, strict=False):
        found = layer.spectrum
        values, long = np.asarray(found.singular_values), max(found.rows, found.columns)
        share = 1 - len(found.outliers) / len(values)
        axis.hist(values, bins=min(60, max(10, len(values) // 6)), density=True, color=THEORY, alpha=0.35)
        s = np.linspace(0, np.sqrt(long * found.edge) * 1.05, 300)[1:]
        axis.plot(s, share * found.law.density(s**2 / long) * 2 * s / long, color=INK, lw=1)
        tops = [each.singular_value for each in found.outliers]
        axis.plot(tops, np.zeros(len(tops)), "|", color=CONTROL, ms=9)
        axis.set_title(f"{layer.name[-34:]}: {found.verdict}", fontsize=7)
        axis.tick_params(labelsize=6)
    figure.supxlabel("singular value (red ticks: outliers; line: law of the bulk)", fontsize=8)
    figure.tight_layout()
    return _svg(figure)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _svg(figure: Any) -> str:
    import matplotlib.pyplot as plt

    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "assay", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    text = buffer.getvalue()
    return re.sub(r"^.*?(?=<svg)", "", text, count=1, flags=re.S)
