"""`regard claims`: what the papers say, and what was found."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli._options import Json, ResultsFolder

EXAMPLE = "regard claims chapter36 --json"


def claims(
    paper: Annotated[str | None, typer.Argument(help="A paper; default: all.")] = None,
    source: Annotated[
        str | None,
        typer.Option(help="here or published only; default: here, or else published."),
    ] = None,
    out: ResultsFolder = None,
    json: Json = False,
) -> None:
    """Print the ledger: what the papers say, what was measured, the verdict."""
    from regard.cli._console import out as terminal
    from regard.cli._console import show
    from regard.papers.framework.result import claims

    rows = claims(paper, out, source)
    show(rows.table(), json, rows)
    if not json:
        terminal.print(repr(rows), highlight=False)
