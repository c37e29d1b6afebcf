"""`regard timelapse`: an instrument on every checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli._options import FiguresFolder, Json, OtherRuns, RunFolder, parse_settings

EXAMPLE = "regard timelapse runs/one-to-one-s0-… breakdown top=3 --out figures"


def timelapse(
    run: RunFolder,
    instrument: Annotated[str, typer.Argument(help="One of `regard ls instruments`.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings of the instrument as key=value.")
    ] = None,
    others: OtherRuns = None,
    n: Annotated[int, typer.Option("-n", "--samples", help="Samples to look at.", min=1)] = 1000,
    checkpoints: Annotated[
        str | None, typer.Option(help="Kept updates, e.g. 0,100,200; default: all of them.")
    ] = None,
    out: FiguresFolder = None,
    json: Json = False,
) -> None:
    """Put an instrument on every checkpoint of a run: a table, curves, and a film."""
    from regard.cli import _console as console
    from regard.cli._instruments import remark_places, share_settings
    from regard.instruments import INSTRUMENTS
    from regard.instruments.timelapse import timelapse

    values, faults = parse_settings(settings or [])
    updates, unread = _updates(checkpoints)
    faults += [*unread, *console.folder_faults(out)]
    share_settings([instrument] if instrument in INSTRUMENTS else [], values, faults)
    places = [run, *(others or [])]
    remark_places(places)
    with console.interruptible(), console.sample_bar("looking") as watch:
        result = timelapse(places, instrument, n, updates, watch, **values)
    console.show_results({instrument: result}, out, json, "Table, curves and film")


def _updates(words: str | None) -> tuple[list[int] | None, list[str]]:
    """`0,100,200` as numbers, and what is wrong with it."""
    if words is None:
        return None, []
    parts = [part.strip() for part in words.split(",")]
    if all(part.isdigit() for part in parts):
        return [int(part) for part in parts], []
    return None, [f"--checkpoints {words} does not fit: write updates with commas, e.g. 0,100."]
