"""Named settings of models, with the training that their source gives them; a file per source.

A preset is a set of dotted keys, the same as on the command line; what the user says wins.
A key that starts with `TASK/` counts for that task only: a paper's recipe may differ by task.
One that starts with `RECIPE:` counts where the user says `recipe=RECIPE`.
"""

from __future__ import annotations

from typing import Any

from regard.registry import Registry

Preset = dict[str, Any]

PRESETS: Registry[Preset] = Registry(
    "model",
    modules=tuple(
        f"{__name__}.{source}" for source in ("chapter36", "aitken2021", "baan2019", "snell2021")
    ),
)


def preset_for(name: str, task: str, recipe: str | None = None) -> Preset:
    """The settings of a preset for one task: its own, then the task's, then the recipe's."""
    preset = PRESETS[name]
    common = {key: value for key, value in preset.items() if "/" not in key and ":" not in key}
    return common | _behind(preset, f"{task}/") | _behind(preset, f"{recipe}:")


def recipes_of(name: str) -> list[str]:
    """The recipes that a preset has beside its own settings."""
    return list(dict.fromkeys(key.split(":", 1)[0] for key in PRESETS[name] if ":" in key))


def _behind(preset: Preset, mark: str) -> Preset:
    return {key.removeprefix(mark): value for key, value in preset.items() if key.startswith(mark)}
