"""`assay compare TARGET`: the command line of the comparisons."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from theory import InputError

__all__ = ["app"]

app = typer.Typer(help="Compare theory with a measured network.", no_args_is_help=True, rich_markup_mode=None)

Model = Annotated[str | None, typer.Option(help="package.module:function that returns assay.Subject.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the receipt and the picture; default runs/UTC-time-TARGET.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.", min=0)]


@app.command()
def alignment(
    model: Model = None,
    boundary: Annotated[str | None, typer.Option(help="Module to cut behind; `all` scans every cut.")] = None,
    width: Annotated[int | None, typer.Option(help="Width of the network, where --model takes one.", min=1)] = None,
    train: Annotated[int, typer.Option("--train", "-M", help="Training samples averaged.", min=1)] = 64,
    test: Annotated[int, typer.Option("--test", "-K", help="Test samples averaged.", min=1)] = 64,
    delta: Annotated[
        float, typer.Option(help="Tolerated misalignment probability; 1 - confidence of the guarantee.")
    ] = 0.05,
    kurtosis: Annotated[float | None, typer.Option(help="Assumption: kurtosis of mu_M . r is at most this.")] = None,
    norm: Annotated[
        float | None, typer.Option(help="Assumption: every gradient's norm is at most this (clipping).")
    ] = None,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """How likely is a growth step found on training data to hurt on test data, at this cut of this network?"""
    from ..plots import series_figure
    from .alignment import compare_alignment, digits_subject, scan_sites
    from .subjects import load_subject

    subject = load_subject(model, digits_subject, width=width, seed=seed)
    seen: Any
    if boundary == "all":
        seen = scan_sites(subject, M=train, K=test, kurtosis=kurtosis, delta=delta, seed=seed)
    else:
        seen = compare_alignment(
            subject, boundary=boundary, M=train, K=test, delta=delta, kurtosis=kurtosis, norm=norm, seed=seed
        )
    _finish("alignment", seen, series_figure(seen.curve), seed, out, as_json)
    return 0


@app.command()
def spectra(
    files: Annotated[list[str] | None, typer.Argument(help="Checkpoints: .safetensors, .npz, .pt, .pth, .th.")] = None,
    model: Model = None,
    width: Annotated[int | None, typer.Option(help="Width of the network, where --model takes one.", min=1)] = None,
    level: Annotated[float, typer.Option(help="Chance of a false outlier in a matrix of noise.")] = 1e-3,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Which singular values of the weights does noise not explain, and is the rest noise?"""
    from ..plots import spectra_figure
    from .spectra import compare_spectra
    from .subjects import load_subject

    subject = None if model is None else load_subject(model, None, width=width, seed=seed)
    seen = compare_spectra(files or [], subject, level=level)
    _finish("spectra", seen, spectra_figure(seen.layers[-1]), seed, out, as_json)
    return 0


def _finish(target: str, seen: Any, picture: str, seed: int, out: Path | None, as_json: bool) -> None:
    """Store the receipt and the picture, and print."""
    from ..receipt import SCHEMA, versions, write_atomically

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = out or Path("runs") / f"{stamp}-{target}"
    receipt = {"schema": SCHEMA, "seed": seed, "versions": dict(versions()), "seen": seen.to_dict()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / f"{target}.json", json.dumps(receipt, indent=1, sort_keys=True) + "\n")
        write_atomically(folder / f"{target}.svg", picture)
    except OSError as fault:
        raise InputError(f"cannot write to {folder}: {fault.strerror}") from None
    if as_json:
        print(json.dumps(seen.to_dict() | {"receipt": str(folder / f"{target}.json")}))
    else:
        print(seen)
        print(f"receipt: {folder / f'{target}.json'}   picture: {folder / f'{target}.svg'}")
