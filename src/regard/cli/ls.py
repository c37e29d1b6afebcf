"""`regard ls`: what there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli._options import Json, RunsFolder

if TYPE_CHECKING:
    from regard.display import Table
    from regard.registry import Registry

EXAMPLE = "regard ls tasks --json"

Rows = list[tuple[Any, ...]]


def ls(
    what: Annotated[
        str,
        typer.Argument(
            help="tasks, models, settings, cells, attentions, adapters, instruments, papers, runs."
        ),
    ] = "all",
    runs: RunsFolder = None,
    json: Json = False,
) -> None:
    """List what there is: tasks, models, settings, instruments, papers, runs and more."""
    from regard.cli._console import show

    show(_list(what, runs), json)


def _list(what: str, runs: Path | None) -> Table:
    """One kind of thing, or the kinds there are."""
    from regard.display import Table
    from regard.errors import RegardError, unknown

    if what == "all":
        counts = tuple((name, len(rows(runs))) for name, (_, _, rows) in LISTINGS.items())
        return Table("What there is; `regard ls NAME` shows more", ("name", "how many"), counts)
    if what not in LISTINGS:
        raise RegardError(unknown("listing", what, LISTINGS))
    title, columns, rows = LISTINGS[what]
    return Table(title, columns, tuple(rows(runs)))


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().splitlines()[0]


def _tasks(_: Path | None) -> Rows:
    from regard.tasks.task import TASKS

    return [
        (name, _first_line(task), " ".join(task.Config.model_fields), TASKS.origin(name))
        for name, task in TASKS.items()
    ]


def _models(_: Path | None) -> Rows:
    from regard.runs.presets import PRESETS

    return [
        (
            name,
            preset["model.kind"],
            " ".join(f"{k}={v}" for k, v in preset.items()),
            PRESETS.origin(name),
        )
        for name, preset in PRESETS.items()
    ]


def _members(module: str, registry: str, _: Path | None) -> Rows:
    members: Registry[Any] = getattr(import_module(module), registry)
    return [(name, _first_line(one), members.origin(name)) for name, one in members.items()]


def _instruments(_: Path | None) -> Rows:
    from regard.instruments import INSTRUMENTS

    return [
        (name, one.summary, _show_defaults(one.defaults), INSTRUMENTS.origin(name))
        for name, one in sorted(INSTRUMENTS.items())
    ]


def _show_defaults(defaults: Mapping[str, Any]) -> str:
    """Settings that can be given as words."""
    return " ".join(f"{key}={value}" for key, value in defaults.items() if not callable(value))


def _settings(_: Path | None) -> Rows:
    """Every key that `regard train` takes, with what it means."""
    from regard.config import Config
    from regard.models.encoder_decoder import MODELS
    from regard.tasks.task import TASKS
    from regard.training.config import TrainingConfig

    kinds: dict[str, type[Config]] = {f"task {n}": task.Config for n, task in TASKS.items()}
    kinds |= {f"model {name}": config for name, (config, _) in MODELS.items()}
    kinds["training"] = TrainingConfig
    return [
        (where, key, field.get_default(), field.description)
        for where, kind in kinds.items()
        for key, field in kind.model_fields.items()
    ]


def _papers(_: Path | None) -> Rows:
    from regard.papers.framework.experiment import EXPERIMENTS

    return [
        (name, one.title, " ".join(one.claims), EXPERIMENTS.origin(name))
        for name, one in EXPERIMENTS.items()
    ]


def _runs(folder: Path | None) -> Rows:
    from regard.runs.run import runs_folder

    return [_run(path.parent) for path in sorted((folder or runs_folder()).glob("*/config.json"))]


def _run(folder: Path) -> tuple[Any, ...]:
    """A run's row; of one that cannot be read, why."""
    from regard.errors import RegardError, in_words
    from regard.runs.run import Run

    try:
        run = Run.open(folder)
        accuracy = run.metrics.get("accuracy") if run.done else None
    except RegardError as error:
        return str(folder), None, None, None, f"broken: {error.faults[0]}", None
    except OSError as error:
        return str(folder), None, None, None, f"broken: {in_words(error)}", None
    about = run.config.task_name, run.config.model_kind, run.config.seed
    return str(folder), *about, "done" if run.done else "unfinished", accuracy


# Name -> title, columns, and rows; what is listed is imported when it is asked for.
LISTINGS: dict[str, tuple[str, tuple[str, ...], Callable[[Path | None], Rows]]] = {
    "tasks": ("Tasks", ("name", "what it is", "settings", "from"), _tasks),
    "models": ("Models", ("name", "kind", "settings", "from"), _models),
    "cells": ("Cells", ("name", "what it is", "from"), partial(_members, "regard.models", "CELLS")),
    "attentions": (
        "Attentions",
        ("name", "what it is", "from"),
        partial(_members, "regard.models", "ATTENTIONS"),
    ),
    "adapters": (
        "Adapters",
        ("name", "what it records", "from"),
        partial(_members, "regard.recordings.adapter", "ADAPTERS"),
    ),
    "instruments": ("Instruments", ("name", "what it measures", "settings", "from"), _instruments),
    "settings": ("Settings", ("where", "key", "default", "meaning"), _settings),
    "papers": ("Papers and their experiments", ("name", "title", "claims", "from"), _papers),
    "runs": ("Runs", ("run", "task", "model", "seed", "state", "accuracy"), _runs),
}
