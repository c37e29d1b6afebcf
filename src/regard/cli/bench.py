"""`regard bench`, of earlier versions: where the benchmarks are."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli._options import Json
from regard.errors import RegardError

EXAMPLE = "regard bench"
HIDDEN = True


def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark.")] = None, json: Json = False
) -> None:
    """Say where the benchmarks are."""
    raise RegardError(
        "Benchmarks are not part of the installed package: run them in a clone of the repository,"
        " with `make bench` or `python -m benchmarks NAME`."
    )
