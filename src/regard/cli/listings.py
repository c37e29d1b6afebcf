"""What `regard ls` and `regard claims` show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.cli.looking import instruments_table
from regard.config import Config
from regard.display import Table
from regard.errors import RegardError, unknown
from regard.models import attentions, cells, models, presets
from regard.papers import experiments
from regard.papers.reproduce import estimate
from regard.runs import list_runs
from regard.tasks import tasks
from regard.training import TrainingConfig


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().splitlines()[0]


def _tasks() -> Table:
    rows = tuple(
        (name, _first_line(task), " ".join(task.Config.model_fields))
        for name, task in tasks.items()
    )
    return Table("Tasks", ("name", "what it is", "settings"), rows)


def _models() -> Table:
    rows = tuple(
        (name, preset["model.kind"], " ".join(f"{k}={v}" for k, v in preset.items()))
        for name, preset in presets.items()
    )
    return Table("Models", ("name", "kind", "settings"), rows)


def _members(title: str, registry: Any) -> Table:
    rows = tuple((name, _first_line(member)) for name, member in registry.items())
    return Table(title, ("name", "what it is"), rows)


def _settings() -> Table:
    """Every key that `regard train` takes, with what it means."""
    kinds: dict[str, type[Config]] = {f"task {n}": task.Config for n, task in tasks.items()}
    kinds |= {f"model {name}": config for name, (config, _) in models.items()}
    kinds["training"] = TrainingConfig
    rows = tuple(
        (where, key, field.get_default(), field.description)
        for where, kind in kinds.items()
        for key, field in kind.model_fields.items()
    )
    return Table("Settings", ("where", "key", "default", "meaning"), rows)


def _papers() -> Table:
    rows = tuple((name, e.title, " ".join(e.claims)) for name, e in experiments.items())
    return Table("Papers and their experiments", ("name", "title", "claims"), rows)


def _runs(folder: Path | None) -> Table:
    rows = tuple(
        (
            str(run.folder),
            run.config.task_name,
            run.config.model_kind,
            run.config.seed,
            "done" if run.done else "unfinished",
            run.metrics.get("accuracy") if run.done else None,
        )
        for run in list_runs(folder)
    )
    return Table("Runs", ("run", "task", "model", "seed", "state", "accuracy"), rows)


def listing(what: str, runs: Path | None) -> Table:
    """The listing of one kind of thing, or of what can be listed."""
    listings: dict[str, Callable[[], Table]] = {
        "tasks": _tasks,
        "models": _models,
        "cells": lambda: _members("Cells", cells),
        "attentions": lambda: _members("Attentions", attentions),
        "instruments": instruments_table,
        "settings": _settings,
        "papers": _papers,
        "runs": lambda: _runs(runs),
    }
    if what == "all":
        rows = tuple((name, len(make().rows)) for name, make in listings.items())
        return Table("What there is; `regard ls NAME` shows more", ("name", "how many"), rows)
    if what not in listings:
        raise RegardError(unknown("listing", what, listings))
    return listings[what]()


def claims_table(rows: list[dict[str, Any]]) -> Table:
    """The ledger for a terminal."""
    return Table(
        "The ledger",
        ("id", "what the source says", "measured", "scale", "verdict"),
        tuple(
            (
                row["id"],
                row["statement"],
                f"{row['headline']} {found}" if (found := estimate(row)) else None,
                row["scale"],
                row["verdict"],
            )
            for row in rows
        ),
    )
