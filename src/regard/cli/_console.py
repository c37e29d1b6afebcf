"""Talking to a person at a terminal, and to a program on a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from regard.display import Table
from regard.display.escaping import escape_json, visible

if TYPE_CHECKING:
    from regard.runs.config import RunConfig

out = Console()
err = Console(stderr=True)


def show(table: Table, as_json: bool, data: Any = None) -> None:
    """A listing: a table for people, JSON for programs."""
    if as_json:
        print_json(table.records() if data is None else data)
    else:
        out.print(table.rich())
        for line in table.notes:
            print_line(line)


def print_json(data: Any) -> None:
    """JSON on standard output, alone."""
    sys.stdout.write(escape_json(json.dumps(data, indent=2, ensure_ascii=False)) + "\n")


def print_line(text: str) -> None:
    """A line as it is, however long: a path must stay whole."""
    out.print(visible(text), markup=False, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A remark for people; not part of the output."""
    if err.is_terminal:
        err.print(visible(text), style="dim", highlight=False, markup=False)


def show_results(
    results: Mapping[str, Any],
    to: Path | None,
    as_json: bool,
    files: str = "Tables and figures",
    runs: Callable[[Any], Iterable[str]] = lambda result: (),
    apart: bool = False,
) -> None:
    """Results of instruments: saved where a folder is given, printed as JSON or as tables.

    `runs` says which runs a result has made; `apart`, several have folders of their own.
    """
    for name, result in results.items():
        if to is not None:
            result.save(to / name if apart and len(results) > 1 else to)
    if as_json:
        plain = {name: result.to_json() for name, result in results.items()}
        print_json(next(iter(plain.values())) if len(plain) == 1 else plain)
        return
    for result in results.values():
        out.print(result.table().rich())
        for run in runs(result):
            print_line(run)
    if to is not None:
        print_line(f"{files}: {to}")


def folder_faults(to: Path | None) -> list[str]:
    """What is wrong with a folder to write into."""
    blocked = to is not None and to.exists() and not to.is_dir()
    return [f"{to} is a file. Give --out a folder."] if blocked else []


class Bars:
    """Progress bars: one over all runs where there are several, one per run under way."""

    def __init__(self, progress: Progress):
        self.bars = progress
        self.rows: dict[str, TaskID] = {}
        self.overall: TaskID | None = None
        self.failures = 0

    def expect(self, count: int) -> None:
        """So many runs are to come."""
        if count > 1:
            self.overall = self.bars.add_task("all runs", total=count, note="")

    def progress(
        self, config: RunConfig, update: int, total: int, loss: float, accuracy: float | None
    ) -> None:
        """A run has come this far."""
        if config.name not in self.rows:
            self.rows[config.name] = self.bars.add_task(config.name, total=total, note="")
        note = f"loss {loss:.3f}" + ("" if accuracy is None else f"  accuracy {accuracy:.3f}")
        self.bars.update(self.rows[config.name], completed=update, note=note)

    def finished(self, config: RunConfig) -> None:
        """A run is done; its bar makes room."""
        row = self.rows.pop(config.name, None)
        if row is not None:
            self.bars.remove_task(row)
        if self.overall is not None:
            self.bars.advance(self.overall)

    def failed(self, config: RunConfig, faults: Iterable[str]) -> None:
        """A run was given up; what was wrong is told at the end."""
        row = self.rows.pop(config.name, None)
        if row is not None:
            self.bars.remove_task(row)
        self.failures += 1
        if self.overall is not None:
            self.bars.update(self.overall, note=f"{self.failures} failed")


@contextmanager
def interruptible() -> Iterator[None]:
    """An interrupt ends the command with a word to the person who made it."""
    try:
        yield
    except KeyboardInterrupt:
        print("regard: interrupted; ask again and it goes on where it stopped.", file=sys.stderr)
        raise SystemExit(130) from None


@contextmanager
def progress_bars() -> Iterator[Bars | None]:
    """Bars while something long goes on; nothing where there is no terminal, or not only we."""
    if not err.is_terminal or os.environ.get("RANK", "0") != "0":
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        yield Bars(progress)


@contextmanager
def sample_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar over samples on a terminal, nothing elsewhere."""
    if not err.is_terminal:
        yield None
        return
    with Progress(console=err, transient=True) as progress:
        row = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(row, completed=done, total=total)
