"""`regard explore`: a live page over runs and recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Json, RunsFolder

EXAMPLE = "regard explore runs/one-to-one-s0-3fa9c1d2e8b7"


def explore(
    things: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Runs, folders of runs, recordings, folders of models; default: the runs folder."
        ),
    ] = None,
    runs: RunsFolder = None,
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 0,
    host: Annotated[
        str, typer.Option(help="An address of this machine; others than loopback need --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="What the address must hold; default: drawn anew.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it.")] = True,
    samples: Annotated[
        int, typer.Option(help="Sentences that averages are taken over.", min=16)
    ] = 500,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="For models of others: a text file with a sentence per line (and, after a tab, its"
            " translation), over which averages are taken."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Explore models live: type a sentence, see and change what passes inside."""
    from regard.explorer.serving import serve

    serve(things or [], runs, host, port, token, browser, samples, json, sentences)
