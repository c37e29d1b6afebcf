"""Whose code makes a run: its task, its model, its cell, its attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from regard.models.encoder_decoder import MODELS
from regard.models.layers.attention import ATTENTIONS
from regard.models.layers.cells import CELLS
from regard.plugins import worker_environment
from regard.registry import Registry
from regard.runs.config import RunConfig
from regard.tasks.task import TASKS


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
