"""`regard new`: a file to begin with, and its test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Json

EXAMPLE = "regard new instrument width"


def new(
    kind: Annotated[
        str,
        typer.Argument(
            help="task, cell, attention, preset, instrument, adapter, experiment, or plugin: a"
            " package to install."
        ),
    ],
    name: Annotated[str, typer.Argument(help="What it is to be called.")],
    to: Annotated[Path, typer.Option(help="The folder for it; default: this one.")] = Path(),
    json: Json = False,
) -> None:
    """Write a working member of a kind, and its test, into a folder of yours."""
    from regard.cli._console import print_json, print_line
    from regard.contracts.new import write_new

    made = write_new(kind, name, to)
    if json:
        print_json({"files": [str(path) for path in made.files], "try": made.commands})
        return
    for path in made.files:
        print_line(f"written: {path}")
    print_line("Try:")
    for command in made.commands:
        print_line(f"  {command}")
