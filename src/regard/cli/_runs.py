"""The listing of runs: which there are, and in what they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable

from regard.cli._options import parse_settings
from regard.display import Table
from regard.errors import RegardError, in_words, unknown
from regard.runs.files import read_json
from regard.runs.run import Run, runs_folder

COLUMNS = ("run", "task", "model", "preset", "seed", "state", "accuracy", "differs")
SHOWN = ("run", "preset", "seed", "state", "accuracy", "differs")  # what a terminal has room for
Row = dict[str, Any]


def list_table(folder: Path | None, words: Sequence[str], sort: str | None) -> Table:
    """The runs in a folder that fit `key=value` words, sorted by a column, setting or metric."""
    wanted, faults = parse_settings(list(words))
    place = folder or runs_folder()
    rows = [_describe(path.parent) for path in sorted(place.glob("*/config.json"))]
    known = {key for row in rows for key in (*row, *row["settings"], *row["metrics"])}
    faults += [
        unknown("column or setting", key, known) for key in wanted if rows and key not in known
    ]
    if sort and rows and sort not in known:
        faults.append(unknown("column, setting or metric", sort, known))
    if faults:
        raise RegardError(*faults)
    rows = [row for row in rows if all(str(_get(row, k)) == v for k, v in wanted.items())]
    if sort:
        rows.sort(key=lambda row: _rank(_get(row, sort)))
    for row in rows:
        row["differs"] = _differences(row, [r for r in rows if _group(r) == _group(row)])
    cells = tuple(tuple(row[column] for column in COLUMNS) for row in rows)
    return RunsTable(f"Runs in {place}", COLUMNS, cells)


class RunsTable(Table):
    """For a terminal the folders' names alone, and what is broken in a few words; for programs all.

    A terminal has no room for whole sentences in a column: they stand below the table.
    """

    def cells(self) -> list[list[str]]:
        """Every value as text."""
        state = COLUMNS.index("state")
        rows = super().cells()
        for row in rows:
            row[0], row[state] = Path(row[0]).name, row[state].split(":")[0]
        return rows

    def rich(self) -> RichTable:
        """Names stay whole, so that they can be copied; a run's begins with its task."""
        places = [COLUMNS.index(column) for column in SHOWN]
        rows = tuple(tuple(row[place] for place in places) for row in self.cells())
        table = Table(self.title, SHOWN, rows).rich()
        for column in table.columns[:-1]:
            column.no_wrap = True
        return table

    @property
    def notes(self) -> list[str]:
        """Why runs cannot be read, a line each."""
        state = COLUMNS.index("state")
        told = (str(row[state]).partition(": ") for row in self.rows)
        return [reason for _, _, reason in told if reason]


def _describe(folder: Path) -> Row:
    """A run's row; of one that cannot be read, why."""
    try:
        return _read(Run.open(folder))
    except RegardError as error:
        reason = " ".join(error.faults)
    except OSError as error:
        reason = in_words(error)
    nothing: Row = {**dict.fromkeys(COLUMNS), "settings": {}, "metrics": {}}
    return {
        **nothing,
        "run": str(folder),
        "state": f"broken: {reason}",
        "settings": {},
        "metrics": {},
    }


def _read(run: Run) -> Row:
    """A run in plain values, its settings flat and its metrics beside them."""
    path = run.folder / "provenance.json"
    about = read_json(path) if path.is_file() else {}
    config = run.config.to_json()
    flat = {
        key: value for part in ("task", "model", "training") for key, value in config[part].items()
    }
    metrics = run.metrics if run.done else {}
    return {
        "run": str(run.folder),
        "task": run.config.task_name,
        "model": run.config.model_kind,
        "preset": about.get("preset") or "",
        "seed": run.config.seed,
        "state": "done" if run.done else "unfinished",
        "accuracy": metrics.get("accuracy"),
        "settings": flat,
        "metrics": metrics,
    }


def _get(row: Row, key: str) -> Any:
    """A column, a setting or a metric of a run."""
    inside: Sequence[Mapping[str, Any]] = (row, row["settings"], row["metrics"])
    return next((part[key] for part in inside if key in part), None)


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers in front, from low to high, then texts; what a run does not have comes last."""
    if isinstance(value, (int, float)):
        return 0, value
    return (2, "") if value is None else (1, str(value))


def _group(row: Row) -> tuple[str, str]:
    return row["task"], row["model"]


def _differences(row: Row, others: Sequence[Row]) -> str:
    """The settings in which a run of a task and a kind of model differs from others of them."""
    shown = []
    for key, value in row["settings"].items():
        if any(other["settings"].get(key) != value for other in others):
            text = Path(value).name if isinstance(value, str) and "/" in value else value
            shown.append(f"{key}={text}")
    return " ".join(shown)
