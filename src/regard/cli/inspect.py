"""`regard inspect`: instruments on runs and recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli._options import FiguresFolder, Json, On, parse_settings

if TYPE_CHECKING:
    from regard.instruments import Result
    from regard.recordings.recording import Recording

EXAMPLE = "regard inspect aed.safetensors breakdown trajectories --top 5 --out figures"


def inspect(
    target: Annotated[
        Path, typer.Argument(help="A run's folder, or a recording: a file, or a folder of shards.")
    ],
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Instruments (`regard ls instruments`), and settings as key=value."),
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another seed's run or recording; may be given repeatedly."),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", "--samples", help="Samples to record, given a run.", min=1)
    ] = 1000,
    top: Annotated[
        int | None, typer.Option(help="Source positions to look at (breakdown).", min=1)
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that add up over shards; default: all cores.", min=1),
    ] = None,
    on: On = None,
    out: FiguresFolder = None,
    json: Json = False,
) -> None:
    """Put instruments on a run or a recording; several seeds give intervals."""
    from regard.cli import _console as console
    from regard.cli._instruments import remark_places, share_settings
    from regard.instruments import INSTRUMENTS

    words = what or []
    names = [word for word in words if "=" not in word]
    values, faults = parse_settings([word for word in words if "=" in word])
    if top is not None:
        values.setdefault("top", str(top))
    known = [name for name in names if name in INSTRUMENTS]
    faults += [INSTRUMENTS.describe_unknown(name) for name in names if name not in known]
    if not names:
        faults.append(f"Name an instrument: {', '.join(INSTRUMENTS)}.")
    faults += console.folder_faults(out)
    asked = share_settings(known, values, faults)
    places = [target, *(others or [])]
    with console.interruptible():
        remark_places(places)
        results = _measure(places, n, {"jobs": jobs, "on": on}, asked)
    console.show_results(results, out, json)


def _measure(
    places: list[Path], n: int, over: dict[str, Any], asked: dict[str, dict[str, str]]
) -> dict[str, Result[Any]]:
    """What each instrument finds. A run is recorded once for all that want the same of it."""
    from regard.cli._console import sample_bar
    from regard.instruments import INSTRUMENTS, Recordings
    from regard.instruments.sources import is_recording

    made: dict[str, Recording] = {}
    results = {}
    for name, given in asked.items():
        instrument = INSTRUMENTS[name]
        more = {"n": n} if "n" in instrument.accepted and not is_recording(places[0]) else {}
        more |= {
            key: value
            for key, value in over.items()
            if value is not None and key in instrument.accepted
        }
        if not isinstance(instrument.takes, Recordings):
            results[name] = instrument(places, **more, **given)
            continue
        settings, options = instrument.read_settings({**more, **given})
        sources = []
        for place in places:
            key = f"{place} {instrument.takes.describe(settings)} {options}"
            if key not in made:
                with sample_bar("recording") as watch:
                    bar = {"watch": watch} if watch else {}
                    made[key] = instrument.takes.open(place, settings, {**options, **bar})
            sources.append(made[key])
        own = {key: value for key, value in given.items() if key not in options}
        results[name] = instrument(sources, **own)
    return results
