"""`regard report`: a page from results that are on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Json

PUBLISHED = "published"
EXAMPLE = "regard report results/chapter36/quick"


def report(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A folder of results, or `published`: those that come with Regard."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="An .html or .md file; default: report.html in the folder, or here."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write one offline HTML page from results on disk, or from the published ones."""
    from regard.cli._console import print_json, print_line
    from regard.cli._results import write_published, write_report
    from regard.errors import RegardError

    if to and to.suffix not in (".html", ".md"):
        raise RegardError(f"A report is .html or .md, not '{to}'.")
    if folder is None or (str(folder) == PUBLISHED and not folder.is_dir()):
        path = write_published(to or Path("published.html"))
    elif folder.is_dir():
        path = write_report(folder, to)
    else:
        raise RegardError(f"There is no folder {folder}. `regard reproduce` makes one of results.")
    if json:
        print_json({"report": str(path)})
    else:
        print_line(f"The report: {path}")
