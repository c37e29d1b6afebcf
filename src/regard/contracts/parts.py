"""What presets and adapters keep."""

from __future__ import annotations

from regard.contracts.contract import Check, require, require_docs, require_plain
from regard.recordings.adapter import ADAPTERS, Adapter
from regard.runs.config import RunConfig, assemble
from regard.runs.presets import PRESETS, recipes_of

TASK = "one-to-one"


def check_keys(name: str) -> None:
    """Its keys are dotted, its values plain, and it names a kind of model."""
    preset = PRESETS[name]
    require_plain(preset, "The preset's")
    require("model.kind" in preset, "A preset has a model.kind.")
    for key in preset:
        bare = key.rpartition(":")[2].rpartition("/")[2]
        fits = bare.split(".")[0] in ("task", "model", "training")
        require(fits, f"The key '{key}' does not begin with task., model. or training.")


def check_model(name: str) -> None:
    """A model can be made of it, with each of its recipes."""
    for recipe in (None, *recipes_of(name)):
        config = assemble(TASK, name, 0, {} if recipe is None else {"recipe": recipe})
        require(RunConfig.from_json(config.to_json()) == config, "Its settings are lost in a file.")
        require(config.make_model(config.make_task()).parameter_count, "It has no parameters.")


def check_adapter(name: str) -> None:
    """It says what it records, and accepts nothing that it does not know."""
    kind = ADAPTERS[name]
    require_docs(kind, "The adapter")
    require(issubclass(kind, Adapter), "An adapter extends Adapter.")
    made = kind()
    for odd in (None, 3, "no such thing", object(), {}):
        require(made.accepts(odd) is False, f"`accepts` is False for {odd!r}.")


PRESET_CONTRACT: tuple[Check, ...] = (check_keys, check_model)
ADAPTER_CONTRACT: tuple[Check, ...] = (check_adapter,)
