"""`regard doctor`: whether everything that Regard needs is there and works."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli._options import Json, RunsFolder
from regard.errors import RegardError

EXAMPLE = "regard doctor --json"


def doctor(
    runs: RunsFolder = None,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Remove what dead writers left, and old texts in the cache."),
    ] = False,
    json: Json = False,
) -> None:
    """Check that everything Regard needs is there and works, and that no file is damaged."""
    from regard.cli._console import show
    from regard.cli._files import check_corpora, check_leftovers, check_results
    from regard.display import Table
    from regard.papers.framework.result import results_folder
    from regard.runs.run import runs_folder

    folders = runs or runs_folder(), results_folder()
    checks: dict[str, Callable[[], str]] = {
        **CHECKS,
        "files of runs": lambda: _check_runs(folders[0]),
        "results": lambda: check_results(folders[1]),
        "leftovers": lambda: check_leftovers(folders, remove),
        "texts in the cache": lambda: check_corpora(remove),
    }
    rows = []
    for name, check in checks.items():
        try:
            rows.append((name, "ok", check()))
        except Exception as error:
            known = isinstance(error, RegardError)
            rows.append((name, "problem", f"{'' if known else type(error).__name__ + ': '}{error}"))
    show(Table("Doctor", ("check", "state", "found"), tuple(rows)), json)
    if any(state != "ok" for _, state, _ in rows):
        raise typer.Exit(2)


def _check_runs(root: Path) -> str:
    from regard.cli._console import sample_bar
    from regard.cli._files import check_runs

    with sample_bar("runs") as watch:
        return check_runs(root, watch)


def _devices() -> str:
    from regard.training.config import DEVICES

    usable = sorted(name for name, is_there in DEVICES.items() if is_there())
    return f"{', '.join(usable)}; {os.cpu_count()} cores"


def _folder() -> str:
    """Whether runs can be written where they would go, without leaving anything behind."""
    from regard.runs.run import runs_folder

    folder = runs_folder().absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    with tempfile.TemporaryDirectory(dir=existing):
        return f"{folder} can be written"


def _training() -> str:
    with tempfile.TemporaryDirectory() as folder:
        run = regard.train("reversal", out=folder, updates=2, hidden=8, held_out=4)
        return f"two updates of a small model, loss {run.curve('loss')[1][-1]:.2f}"


def _drawing() -> str:
    from regard.display import Figure, Line, Panel

    figure = Figure("test", "", (Panel("", "x", "y", (Line("", (0.0, 1.0), (0.0, 1.0)),)),))
    return f"a figure of {len(figure.svg()):,} characters, {len(figure.interactive())} parts"


CHECKS: dict[str, Callable[[], str]] = {
    "python": platform.python_version,
    "regard": lambda: regard.__version__,
    "torch": lambda: str(import_module("torch").__version__),
    "devices": _devices,
    "runs": _folder,
    "training": _training,
    "figures": _drawing,
}
