"""`regard report`: a page from results that are on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Json

EXAMPLE = "regard report results/chapter36/quick"


def report(
    folder: Annotated[Path, typer.Argument(help="A folder of results.")],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="An .html or .md file; default: report.html in the folder."),
    ] = None,
    json: Json = False,
) -> None:
    """Write one offline HTML page from results that are on disk."""
    from regard.cli._console import print_json, print_line
    from regard.cli._results import write_report
    from regard.errors import RegardError

    if not folder.is_dir():
        raise RegardError(f"There is no folder {folder}. `regard reproduce` makes one of results.")
    if to and to.suffix not in (".html", ".md"):
        raise RegardError(f"A report is .html or .md, not '{to}'.")
    path = write_report(folder, to)
    if json:
        print_json({"report": str(path)})
    else:
        print_line(f"The report: {path}")
