"""`regard check`: whether a member keeps the contract of its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli._options import Json, parse_settings

EXAMPLE = "regard check instrument breakdown"


def check(
    kind: Annotated[
        str,
        typer.Argument(
            help="task, cell, attention, preset, instrument, adapter, experiment; or plugin: all"
            " that a module has."
        ),
    ],
    name: Annotated[str, typer.Argument(help="A member's name; of a plugin, its module.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(help="Settings as key=value; of an experiment, its data as NAME=FILE."),
    ] = None,
    on: Annotated[
        list[Path] | None,
        typer.Option(help="What an instrument is put on; default: small networks of Regard's."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a member against the contract that Regard's own members keep."""
    from regard.cli._console import interruptible, out, print_json, say
    from regard.contracts import examine_member
    from regard.display import Table
    from regard.errors import RegardError

    values, faults = parse_settings(settings or [])
    if faults:
        raise RegardError(*faults)
    with interruptible():
        say("checking …")
        outcomes = examine_member(kind, name, values, on or [])
    broken = [outcome for outcome in outcomes if outcome.fault]
    if json:
        print_json(
            [{"check": o.check, "kept": o.fault is None, "fault": o.fault} for o in outcomes]
        )
    else:
        rows = tuple((o.check, "no" if o.fault else "yes", o.fault) for o in outcomes)
        out.print(Table(f"The contract of {name}", ("what", "kept", "fault"), rows).rich())
    if broken:
        raise typer.Exit(2)
