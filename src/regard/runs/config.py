"""The configuration of a run: a task, a model, a training, a seed; nothing else determines it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.config import Config, validated
from regard.errors import RegardError, nearest, together, unknown, unknown_key
from regard.models.encoder_decoder import MODELS
from regard.models.layers.word_vectors import load_word_vectors
from regard.models.seq2seq import Seq2Seq
from regard.runs.files import content_hash
from regard.runs.presets import PRESETS, preset_for, recipes_of
from regard.runs.reckoning import refuse_absurd
from regard.runs.weights import Sizes, load_weights
from regard.tasks.task import TASKS, Task, TaskConfig
from regard.training.config import TrainingConfig, missing_device
from regard.training.loop import seed_everything

# Raised whenever a change to the code changes the numbers that a configuration gives.
NUMERICS = 3


@dataclass(frozen=True)
class RunConfig:
    """What determines a run. The same dotted names in `config.json`, on the command line, here."""

    task_name: str
    task: TaskConfig
    model_kind: str
    model: Config
    training: TrainingConfig
    seed: int

    def to_json(self) -> dict[str, Any]:
        """As written to `config.json`."""
        return {
            "seed": self.seed,
            "task": {"name": self.task_name, **self.task.as_settings()},
            "model": {"kind": self.model_kind, **self.model.as_settings()},
            "training": self.training.as_settings(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunConfig:
        """The inverse of `to_json`."""
        try:
            task, model = dict(data["task"]), dict(data["model"])
            task_name, model_kind = task.pop("name"), model.pop("kind")
            training, seed = dict(data["training"]), int(data["seed"])
        except (KeyError, TypeError, ValueError) as error:
            raise RegardError(
                f"A configuration needs seed, task, model and training ({error!r})."
            ) from None
        return cls(
            task_name,
            validated(TASKS[task_name].Config, task, "task"),
            model_kind,
            validated(MODELS[model_kind][0], model, "model"),
            validated(TrainingConfig, training, "training"),
            seed,
        )

    @property
    def name(self) -> str:
        """The folder's name: readable in front, the hash of everything behind."""
        digest = hash_settings(self.placeless(), self.data())
        return f"{self.task_name}-s{self.seed}-{digest}"

    @property
    def configuration(self) -> str:
        """The hash of all but the seed: runs that agree in it are seeds of one configuration."""
        settings, data = self.placeless(), self.data()
        del settings["seed"]
        data.pop("start", None)  # weights to begin with are one seed's
        return hash_settings(settings, data)

    def with_whole_paths(self) -> RunConfig:
        """The same with whole paths of its files, so that it can be used from any folder."""
        settings = self.to_json()
        for section, key, parts in self._find_paths(settings):
            settings[section][key] = ",".join(str(Path(part).absolute()) for part in parts)
        return RunConfig.from_json(settings)

    def _find_paths(self, settings: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
        """The settings that are paths: section, key, and the one path or several."""
        places = {str(place) for path in self.task.files() for place in (path, path.parent)}
        found = []
        for key, value in settings["task"].items():
            parts = value.split(",") if isinstance(value, str) else []
            if parts and all(str(Path(part)) in places for part in parts):
                found.append(("task", key, parts))
        for section, key in (("training", "start"), ("model", "vectors")):
            if settings[section].get(key):
                found.append((section, key, [settings[section][key]]))
        return found

    def placeless(self) -> dict[str, Any]:
        """As `to_json`, with the mere names of files and folders, wherever they lie."""
        return self.without_places(self.to_json())

    def without_places(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings as a file has them, with the mere names of files and folders."""
        for section, key, parts in self._find_paths(settings):
            settings[section][key] = ",".join(Path(part).name for part in parts)
        return settings

    def data(self) -> dict[str, str]:
        """The hash of every file that the run reads: other content makes another run."""
        more = {"start": self.training.start, "vectors": self._vectors}
        return self.task_data() | {
            name: content_hash(Path(file)) for name, file in more.items() if file is not None
        }

    def task_data(self) -> dict[str, str]:
        """The hash of every file that the task reads, by its number."""
        return {str(n): content_hash(path) for n, path in enumerate(self.task.files())}

    @property
    def _vectors(self) -> str | None:
        """The file of word vectors that the model begins with, where it has one."""
        return getattr(self.model, "vectors", None)

    def make_task(self) -> Task:
        """The task, ready to draw from; one object for all runs that learn it."""
        refuse_absurd(self.task, self.model, self.training.batch)
        return _build_task(TASKS[self.task_name], self.task, tuple(self.task_data().values()))

    def make_model(self, task: Task) -> Seq2Seq:
        """The model before training: a function of the seed, or the weights it is given."""
        built = self.blank_model(sizes_of(task))
        if self._vectors is not None:
            table = built.blocks()["encoder.embedding"]
            load_word_vectors(table, task.source_vocabulary.words, Path(self._vectors))
        if self.training.start is not None:
            load_weights(built, Path(self.training.start))
        return built

    def blank_model(self, sizes: Sizes) -> Seq2Seq:
        """The model for vocabularies of these sizes, without weights that it may be given."""
        refuse_absurd(self.task, self.model, self.training.batch)
        seed_everything(self.seed, 0)
        kind: Any = MODELS[self.model_kind][1]
        built: Seq2Seq = kind(self.model, *sizes)
        return built


@lru_cache(maxsize=4)  # tasks do not change, and reading a corpus takes a while
def _build_task(kind: type[Task], config: TaskConfig, _data: tuple[str, ...]) -> Task:
    return kind(config)


def hash_settings(
    settings: dict[str, Any], data: Mapping[str, str], numerics: int = NUMERICS
) -> str:
    """The hash of settings without places and of data: what is in the files counts, not where."""
    if settings["training"].get("start") is not None:
        settings["training"]["start"] = "a file"
    content = json.dumps([numerics, settings, data], sort_keys=True)
    return sha256(content.encode()).hexdigest()[:12]


def sizes_of(task: Task) -> Sizes:
    """How many words the source and the target of a task have."""
    return len(task.source_vocabulary), len(task.target_vocabulary)


def assemble(
    task: str, model: str, seed: int, overrides: Mapping[str, Any], faults: Sequence[str] = ()
) -> RunConfig:
    """A run from a task, a preset, and keys that the user set, dotted or bare.

    All faults are found before any is reported, after those already known: an unknown task does
    not hide a misspelt key.
    """
    faults, overrides = list(faults), dict(overrides)
    recipe = overrides.pop("recipe", None)
    guessed = []  # what cannot be judged, because nobody knows which was meant
    task, model, recipe = str(task), str(model), None if recipe is None else str(recipe)
    if task not in TASKS:
        faults.append(TASKS.describe_unknown(task))
        task = nearest(task, TASKS) or next(iter(TASKS))
        guessed.append("task")
    if model not in PRESETS:
        faults.append(PRESETS.describe_unknown(model))
        guess, recipe = nearest(model, PRESETS), None
        model = guess or next(iter(PRESETS))
        guessed += [] if guess else ["model"]
    if recipe is not None and recipe not in recipes_of(model):
        faults.append(unknown(f"recipe of {model}", recipe, recipes_of(model)))
        recipe = None
    preset = preset_for(model, task, recipe)
    kind = preset.pop("model.kind")
    kinds: dict[str, type[Config]] = {
        "task": TASKS[task].Config,
        "model": MODELS[kind][0],
        "training": TrainingConfig,
    }
    values: dict[str, dict[str, Any]] = {section: {} for section in kinds}
    listing = "regard ls settings" + ("" if guessed else f" {task} {model}")
    for key, value in [*preset.items(), *overrides.items()]:
        where = _section(key, kinds, listing)
        if not isinstance(where, str):
            section, name = where
            values[section][name] = value
        elif not _may_belong(key, guessed):
            faults.append(where)
    sure = [part for part in kinds if part not in guessed]
    try:
        together(partial(validated, kinds[part], values[part], part) for part in sure)
    except RegardError as error:
        faults += error.faults
    if fault := missing_device(str(values["training"].get("device", "auto"))):
        faults.append(fault)
    if type(seed) is not int or seed < 0:
        faults.append(f"seed={seed!r} does not fit: a seed is a whole number, 0 or more.")
    if faults:
        raise RegardError(*faults)
    made = RunConfig.from_json(
        {
            "seed": seed,
            "task": {"name": task, **values["task"]},
            "model": {"kind": kind, **values["model"]},
            "training": values["training"],
        }
    )
    return made.with_whole_paths()


def _may_belong(key: str, guessed: Sequence[str]) -> bool:
    """Whether a key is one of some task or model, where nobody knows which was meant."""
    every: list[type[Config]] = [task.Config for task in TASKS.values() if "task" in guessed]
    every += [config for config, _ in MODELS.values() if "model" in guessed]
    return any(key.rpartition(".")[2] in config.model_fields for config in every)


def _section(key: str, kinds: Mapping[str, type[Config]], listing: str) -> tuple[str, str] | str:
    """Where a key belongs, as (section, name), or the fault that it has."""
    dotted = [f"{section}.{name}" for section, kind in kinds.items() for name in kind.model_fields]
    found = [full for full in dotted if key in (full, full.split(".", 1)[1])]
    if len(found) == 1:
        section, name = found[0].split(".", 1)
        return section, name
    if found:
        return f"The key '{key}' could be {' or '.join(found)}: give it in full."
    bare = {full.split(".", 1)[1] for full in dotted}
    return unknown_key(key, dotted if "." in key else bare, listing)
