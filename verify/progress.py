"""Progress of a run: a bar with the last verdicts on a terminal, one plain line a claim elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .receipt import Receipt

__all__ = ["Reporter", "reporter"]

MARKS = {
    "confirmed": "green",
    "refuted": "bold red",
    "undecided": "yellow",
    "vacuous": "bold magenta",
    "error": "bold red",
}


class Reporter:
    """Plain lines on stderr, so that stdout stays the answer."""

    def start(self, folder: Path, total: int, done: int) -> None:
        """Called once, before the first claim."""
        self.total, self.done = total, done
        kept = f", {done} kept from before" if done else ""
        print(f"{total} claims into {folder}{kept}", file=sys.stderr, flush=True)

    def receipt(self, receipt: Receipt) -> None:
        """Called for each judged claim."""
        self.done += 1
        seconds = receipt.content["cost"]["seconds"]
        line = f"[{self.done:3}/{self.total}] {receipt.verdict:<9} {receipt.id[:52]:<52} {seconds:6.1f} s"
        print(line, file=sys.stderr, flush=True)


class _Quiet(Reporter):
    def start(self, folder: Path, total: int, done: int) -> None:
        pass

    def receipt(self, receipt: Receipt) -> None:
        pass


class _Bar(Reporter):
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)

    def start(self, folder: Path, total: int, done: int) -> None:
        self.progress.console.print(f"{total} claims into {folder}", highlight=False)
        self.task = self.progress.add_task("", total=total, completed=done)

    def receipt(self, receipt: Receipt) -> None:
        if receipt.verdict != "confirmed":
            style = MARKS[receipt.verdict]
            self.progress.console.print(f"[{style}]{receipt.verdict}[/] {receipt.id}", highlight=False)
        self.progress.update(self.task, advance=1, description=receipt.id[:40])


@contextmanager
def reporter(quiet: bool = False) -> Iterator[Reporter]:
    """The reporter that fits where stderr goes."""
    if quiet:
        yield _Quiet()
    elif sys.stderr.isatty():
        bar = _Bar()
        with bar.progress:
            yield bar
    else:
        yield Reporter()
