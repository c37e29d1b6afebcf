"""Whose code makes a run: its task, its model, its cell, its attention, the training."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from regard.code import Hashes, find_changes, hash_code
from regard.models.encoder_decoder import MODELS
from regard.models.layers.attention import ATTENTIONS
from regard.models.layers.cells import CELLS
from regard.plugins import RegardWarning, worker_environment
from regard.registry import Registry
from regard.runs.config import RunConfig
from regard.runs.files import read_json
from regard.runs.run import Run
from regard.tasks.task import TASKS

MADE_BY = ("regard.tasks", "regard.models", "regard.training")  # of Regard's own


class CodeWarning(RegardWarning):
    """A run was made by other code than there is now."""


def members_of(config: RunConfig) -> list[Any]:
    """The classes that make a run: of its task, its model, and the parts that a setting names."""
    parts: dict[str, Registry[Any]] = {"cell": CELLS, "attention": ATTENTIONS}
    named = ((registry, getattr(config.model, key, "")) for key, registry in parts.items())
    own = [registry[name] for registry, name in named if name in registry]
    return [TASKS[config.task_name], *MODELS[config.model_kind], *own]


def modules_of(configs: Iterable[RunConfig]) -> list[str]:
    """The modules that hold the members of some runs."""
    return list(dict.fromkeys(m.__module__ for c in configs for m in members_of(c)))


def is_portable(config: RunConfig) -> bool:
    """Whether another process can make the run: what a notebook or script defines, it cannot."""
    return "__main__" not in modules_of([config])


def environment_for(configs: Iterable[RunConfig]) -> dict[str, str]:
    """What a worker process needs besides, so that it finds the members of these runs."""
    return worker_environment(modules_of(configs))


def code_of(config: RunConfig) -> Hashes:
    """The hash of each module that makes a run: of its task, its model, and the training."""
    return hash_code([*members_of(config), "regard.training.loop"], MADE_BY)


def changed_code(run: Run) -> list[str]:
    """The modules that are not what they were when the run was made; none where nobody knows."""
    before = made_by(run)
    return find_changes(before, code_of(run.config)) if before else []


def made_by(run: Run) -> Hashes:
    """The code that made a run, or would make it now; empty of runs that do not say."""
    path = run.folder / "provenance.json"
    if not path.is_file():
        return code_of(run.config)
    noted: Hashes = read_json(path).get("code") or {}
    return noted


def warn_of_changes(runs: Iterable[Run]) -> None:
    """Say which runs were made by other code than there is now."""
    by_modules: dict[str, list[str]] = {}
    for run in runs:
        if modules := changed_code(run):
            by_modules.setdefault(_list_some(modules), []).append(str(run.folder))
    for names, folders in by_modules.items():
        text = (
            f"{_list_some(folders)}: made by other code ({names} changed since). What is shown is"
            " of the old code; --again, in Python again=True, trains anew."
        )
        warnings.warn(text, CodeWarning, stacklevel=3)


def _list_some(names: list[str], most: int = 4) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
