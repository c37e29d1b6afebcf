"""The doors that are there already: any instrument, the curves of a run, the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.recording_thing import RecordingThing
from regard.explorer.run_thing import RunThing
from regard.explorer.speaking import Alive
from regard.explorer.views import Views
from regard.instruments import INSTRUMENTS, Recordings, inspect
from regard.instruments.sources import Runs
from regard.papers.framework.result import claims

# Instruments that train or write: the explorer reads.
CLOSED = ("swap", "prune")
MOST = 5000  # samples of an instrument's recording
# Which view shows what an experiment is about.
SHOWN_IN = {
    "aitken2021": {"features": "finders", "translation": "attention", "default": "spaces"},
    "baan2019": {"accuracy": "training", "structure": "instruments", "default": "units"},
    "chapter36": {"attention": "attention", "default": "training"},
    "snell2021": {"learning": "training", "copying": "training", "default": "attention"},
}


def list_instruments(views: Views, question: Any, alive: Alive) -> list[dict[str, Any]]:
    """What can be put on a thing, and the settings that have a plain default."""
    return [
        {"name": name, "about": one.summary,
         "settings": {k: v for k, v in one.defaults.items() if isinstance(v, (int, float, str))},
         "takes": "run" if isinstance(one.takes, Runs) else "recording"}
        for name, one in sorted(INSTRUMENTS.items())
        if isinstance(one.takes, (Runs, Recordings)) and name not in CLOSED
    ]  # fmt: skip


def put_instrument(views: Views, question: ask.InspectQuestion, alive: Alive) -> dict[str, Any]:
    """`regard.inspect` on one thing or on several seeds: its table, and its figure as SVG."""
    if question.instrument in CLOSED:
        raise RegardError(f"{question.instrument} trains new runs, and the explorer only reads.")
    sources: list[Any] = []
    for name in question.things:
        thing = views.things[name]
        if isinstance(thing, RunThing):
            sources.append(thing.run)
        elif isinstance(thing, RecordingThing):
            sources.append(thing.recording)
        else:
            sources.append(thing.reference("reported"))
    settings = check_settings(question.settings)
    found = inspect(sources if len(sources) > 1 else sources[0], question.instrument, **settings)
    alive()
    table = found.table()
    figure = found.figure()
    return {
        "title": table.title, "columns": list(table.columns), "rows": table.cells(),
        "svg": figure.svg(), "caption": figure.caption, "seeds": found.n,
    }  # fmt: skip


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values only, and no more samples than a page should wait for."""
    plain = (str, int, float, bool)
    if any(not isinstance(value, plain) for value in settings.values()):
        raise RegardError("Settings are texts, numbers or true and false.")
    if int(settings.get("n", 0) or 0) > MOST:
        raise RegardError(f"n={settings['n']} is too much for a page: {MOST} is the most.")
    return dict(settings)


def read_curves(views: Views, question: Any, alive: Alive) -> dict[str, Any]:
    """Every metric of a run over updates, thinned; and how far it has come."""
    thing = views.things[question.thing]
    if not isinstance(thing, RunThing):
        raise RegardError("A recording has no curves. Open its run.")
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in thing.run.rows():
        where = row.get("split") or "train"
        for name, value in row.items():
            if isinstance(value, (int, float)) and name not in ("update", "seconds", "examples"):
                curves.setdefault(f"{where} {name}", []).append((row["update"], float(value)))
    step = {name: max(1, len(points) // 400) for name, points in curves.items()}
    return {
        "curves": {name: points[:: step[name]] for name, points in curves.items()},
        "done": thing.run.done, "checkpoints": thing.run.checkpoints(),
        "updates": thing.run.config.training.updates,
    }  # fmt: skip


def read_ledger(views: Views, question: Any, alive: Alive) -> list[dict[str, Any]]:
    """Every claim with what was measured, and the view that shows what it is about."""
    rows = []
    for row in claims():
        paper, _, experiment = row["experiment"].partition("/")
        shown = SHOWN_IN.get(paper, {})
        rows.append({**row, "view": shown.get(experiment, shown.get("default", "attention"))})
    return rows
