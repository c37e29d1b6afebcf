"""Options that several commands have, and settings as words: `key=value`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes side by side; default: all cores.", min=1)
]
On = Annotated[
    str | None,
    typer.Option(
        "--on", help="Where: local, ray or ray://HOST:PORT; default: $REGARD_ON or local."
    ),
]
RunFolder = Annotated[Path, typer.Argument(help="A run's folder.")]
OtherRuns = Annotated[
    list[Path] | None,
    typer.Option("--with", help="Another seed's run; may be given repeatedly."),
]
RunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of runs; default: $REGARD_RUNS or ./runs.")
]
OwnRunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of the new runs; default: the old ones'.")
]
ResultsFolder = Annotated[
    Path | None,
    typer.Option("--out", help="Folder of results; default: $REGARD_RESULTS or ./results."),
]
FiguresFolder = Annotated[Path | None, typer.Option("--out", help="Folder for tables and figures.")]
Updates = Annotated[int | None, typer.Option(help="Updates of retraining.", min=0)]
Epochs = Annotated[
    int | None, typer.Option(help="Instead: epochs, of a task with a fixed set of rows.", min=1)
]


def parse_settings(settings: list[str]) -> tuple[dict[str, str], list[str]]:
    """`key=value` words as a mapping, and the faults of those that are not."""
    values: dict[str, str] = {}
    faults = []
    for word in settings:
        key, equals, value = word.partition("=")
        if not key or not equals:
            faults.append(f"'{word}' is not a setting: write key=value.")
        elif key in values:
            faults.append(f"The key '{key}' is given twice.")
        else:
            values[key] = value
    return values, faults
