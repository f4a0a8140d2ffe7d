"""The command line: predict, verify, compare. Nothing heavy is imported before it is known to be needed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from theory import InputError

from .compare.command import app as compare

__all__ = ["app", "main"]

USAGE, FAULT, INTERRUPTED = 2, 70, 130

app = typer.Typer(
    name="assay",
    help="Closed-form theory of deep networks, put to the test.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(compare, name="compare")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 0 to 3 by what was found, 2 usage, 70 fault, 130 interrupted."""
    try:
        result = app(args=arguments, standalone_mode=False)
        # typer swallows an interruption and returns its status; older versions raise Abort.
        return _interrupted() if result == INTERRUPTED else result if isinstance(result, int) else 0
    except InputError as refusal:
        _complain(str(refusal))
        return USAGE
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        return 0
    except Exception as fault:
        # typer has carried its own copy of click since 0.16: its usage errors are known by what they can do.
        if hasattr(fault, "format_message"):
            _complain(" ".join(fault.format_message().split()))
            return USAGE
        import traceback

        traceback.print_exc()
        _complain(
            f"internal fault: {type(fault).__name__}: {fault}. This is a bug in assay; please report the lines above."
        )
        return FAULT


def _interrupted() -> int:
    _complain("interrupted; `assay verify --resume FOLDER` goes on where it stopped")
    return INTERRUPTED


def _complain(message: str) -> None:
    print(f"assay: {message}", file=sys.stderr)


@app.command(context_settings={"allow_interspersed_args": True})
def predict(
    id: Annotated[str | None, typer.Argument(help="A formula's id; leave it out to list the catalogue.")] = None,
    inputs: Annotated[list[str] | None, typer.Argument(help="name=value ...", metavar="NAME=VALUE")] = None,
    digits: Annotated[int | None, typer.Option(help="Significant digits.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")] = False,
    derive: Annotated[bool, typer.Option("--derive", help="The steps from the axioms.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="The statement in LaTeX.")] = False,
    cite: Annotated[bool, typer.Option("--cite", help="A BibTeX entry of the source.")] = False,
    plot: Annotated[str | None, typer.Option(help="Draw a curve: name=low:high.", metavar="NAME=LOW:HIGH")] = None,
    out: Annotated[Path | None, typer.Option(help="Where --plot writes its picture.")] = None,
) -> int:
    """Query closed-form predictions: list the catalogue, read a formula, or evaluate it with its error."""
    from . import pages

    if id is None:
        _print(json.dumps(pages.catalogue_object(), indent=1) if as_json else pages.catalogue_text())
        return 0
    from theory import formula

    known = formula(id)
    given = _assignments(known.id, inputs or [])
    if derive or latex or cite:
        parts: list[Callable[[Any], str]] = []
        parts += [pages.derivation_text] if derive else []
        parts += [pages.latex_text] if latex else []
        parts += [lambda f: f.source.cite()] if cite else []
        if as_json:
            _print(json.dumps(pages.formula_object(known, derive=derive), indent=1))
        else:
            _print("\n\n".join(part(known) for part in parts))
        return 0
    if not given and plot is None:
        _print(json.dumps(pages.formula_object(known), indent=1) if as_json else pages.formula_text(known))
        return 0
    if plot is not None:
        from .plots import plot_curve

        _print(f"wrote {plot_curve(known, given, plot, digits, out)}")
        return 0
    from numerics import predict as evaluate

    prediction = evaluate(id, given, digits=digits)
    _print(json.dumps(prediction.to_dict()) if as_json else pages.prediction_text(prediction))
    return 0


def _assignments(id: str, words: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"{id}: write inputs as name=value; got {word!r}")
        if name in given:
            raise InputError(f"{id}: {name} is given twice")
        given[name] = value
    return given


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help="Suites, claim ids, or FILE.py with claims of your own.")
    ] = None,
    level: Annotated[str, typer.Option(help="quick or full.")] = "quick",
    seed: Annotated[int, typer.Option(help="Seed of the run.", min=0)] = 0,
    jobs: Annotated[int | None, typer.Option(help="Worker processes.", min=1)] = None,
    backend: Annotated[str, typer.Option(help="Where the workers run: local.")] = "local",
    controls: Annotated[bool, typer.Option("--controls", help="Print every control and its distance.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the receipts; default runs/UTC-time-seed.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with an interrupted run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")] = False,
) -> int:
    """Run the verification suite: judge each claim, with its controls, and write receipts and a report."""
    from .progress import reporter
    from .report import write_report
    from .runner import run

    if level not in ("quick", "full"):
        raise InputError(f"--level is quick or full; got {level!r}")
    if backend != "local":
        raise InputError(f"--backend is local; got {backend!r}")
    if out is not None and resume is not None:
        raise InputError("--out starts a new run and --resume goes on with an old one: give one of them")
    files = [name for name in names or [] if name.endswith(".py")]
    chosen = [name for name in names or [] if not name.endswith(".py")]
    with reporter(quiet=as_json) as watch:
        finished = run(
            chosen,
            level=level,
            seed=seed,
            jobs=jobs,
            out=out,
            resume=resume,
            files=files,
            on_start=watch.start,
            on_receipt=watch.receipt,
        )
    page = write_report(finished.folder, finished.settings, finished.receipts)
    from . import pages

    if as_json:
        _print(json.dumps(pages.run_object(finished, page)))
    else:
        _print(pages.run_text(finished, controls=controls))
        _print(f"report: {page.resolve()}")
    return finished.exit_status


def _print(text: str) -> None:
    print(text, flush=True)
