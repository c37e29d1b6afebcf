"""The listing of what commands are at: how far all of their runs are, their cost, their faults."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table as RichTable

from regard.display import Table
from regard.runs.run import runs_folder
from regard.runs.status import read_progress, summarise

COLUMNS = (
    "run", "state", "update", "of", "loss", "accuracy", "seconds", "core_hours", "command",
    "faults",
)  # fmt: skip


def list_progress(folder: Path | None) -> Table:
    """Every run that a command has asked for into a folder."""
    rows = read_progress(folder or runs_folder())
    cells = tuple(tuple(row[column] for column in COLUMNS) for row in rows)
    return ProgressTable(f"Runs that commands asked for: {summarise(rows)}", COLUMNS, cells)


class ProgressTable(Table):
    """A terminal has no room for commands and sentences in columns; faults stand below."""

    def rich(self) -> RichTable:
        """Names stay whole, so that they can be copied."""
        rows = tuple(tuple(row[:-2]) for row in self.cells())
        table = Table(self.title, COLUMNS[:-2], rows).rich()
        table.columns[0].no_wrap = True
        return table

    @property
    def notes(self) -> list[str]:
        """What is wrong, run by run."""
        return [f"{row[0]}: {fault}" for row in self.rows for fault in row[-1]]
