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
            help="tasks, models, settings, cells, attentions, adapters, instruments, papers, runs,"
            " progress."
        ),
    ] = "all",
    of: Annotated[
        list[str] | None,
        typer.Argument(
            help="Settings: of which tasks and models. Runs: which, as key=value (task=reversal"
            " seed=0 state=done hidden=64)."
        ),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="Runs: a column or a metric, e.g. accuracy.")
    ] = None,
    runs: RunsFolder = None,
    json: Json = False,
) -> None:
    """List what there is: tasks, models, settings, instruments, papers, runs and more."""
    from regard.cli._console import show

    show(_list(what, of or [], sort, runs), json)


def _list(what: str, of: list[str], sort: str | None, runs: Path | None) -> Table:
    """One kind of thing, or the kinds there are."""
    from regard.display import Table
    from regard.errors import RegardError, unknown

    if what == "runs":
        from regard.cli._runs import list_table

        return list_table(runs, of, sort)
    if what == "progress" and not (of or sort):
        from regard.cli._progress import list_progress

        return list_progress(runs)
    if sort:
        raise RegardError("--sort is for `regard ls runs`.")
    if what == "settings":
        return Table("Settings", ("where", "key", "default", "meaning"), tuple(_settings(of)))
    if of:
        raise RegardError(f"`regard ls {what}` takes no further words: leave out {' '.join(of)}.")
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


def _settings(of: list[str]) -> Rows:
    """Every key that `regard train` takes, with what it means; of some tasks and models only."""
    from regard.config import Config
    from regard.models.encoder_decoder import MODELS
    from regard.tasks.task import TASKS
    from regard.training.config import TrainingConfig

    kinds: dict[str, type[Config]] = {f"task {n}": task.Config for n, task in TASKS.items()}
    kinds |= {f"model {name}": config for name, (config, _) in MODELS.items()}
    kinds["training"] = TrainingConfig
    if of:
        wanted = _find_kinds(of, kinds)
        kinds = {where: kind for where, kind in kinds.items() if where in wanted}
    return [
        (where, key, field.get_default(), field.description)
        for where, kind in kinds.items()
        for key, field in kind.model_fields.items()
    ]


def _find_kinds(of: list[str], kinds: Mapping[str, Any]) -> set[str]:
    """The tasks and kinds of models that some words mean; a preset is of a kind. And training."""
    from regard.errors import RegardError, unknown
    from regard.runs.presets import PRESETS
    from regard.tasks.task import TASKS

    found, faults = {"training"}, []
    for word in of:
        means = {f"task {word}", f"model {word}"} & {*kinds}
        if word in PRESETS:
            means.add(f"model {PRESETS[word]['model.kind']}")
        if word == "training":
            means.add(word)
        if not means:
            options = [*TASKS, *PRESETS, "training"]
            faults.append(unknown("task or model", word, options))
        found |= means
    if faults:
        raise RegardError(*faults)
    return found


def _papers(_: Path | None) -> Rows:
    from regard.papers.framework.experiment import EXPERIMENTS

    return [
        (name, one.title, " ".join(one.claims), EXPERIMENTS.origin(name))
        for name, one in EXPERIMENTS.items()
    ]


def _progress(folder: Path | None) -> Rows:
    from regard.cli._progress import list_progress

    return list(list_progress(folder).rows)


def _runs(folder: Path | None) -> Rows:
    from regard.runs.run import runs_folder

    return [(path,) for path in (folder or runs_folder()).glob("*/config.json")]


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
    "settings": ("Settings", (), lambda _: _settings([])),
    "papers": ("Papers and their experiments", ("name", "title", "claims", "from"), _papers),
    "runs": ("Runs", (), _runs),
    "progress": ("Progress", (), _progress),
}
