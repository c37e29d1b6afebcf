"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes side by side; default: all cores.", min=1)
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
