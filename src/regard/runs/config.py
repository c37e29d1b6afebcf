"""The configuration of a run: a task, a model, a training, a seed; nothing else determines it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import Config, faults_in, validated
from regard.errors import RegardError, nearest, unknown
from regard.models import Seq2Seq, models, preset_for, presets, recipes_of
from regard.models.vectors import begin_with
from regard.runs.files import read_tensors
from regard.tasks import Task, TaskConfig, tasks
from regard.training import TrainingConfig, missing_device, seed_everything

# Raised whenever a change to the code changes the numbers that a configuration gives.
NUMERICS = 1


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
            "task": {"name": self.task_name, **self.task.model_dump()},
            "model": {"kind": self.model_kind, **self.model.model_dump()},
            "training": self.training.model_dump(),
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
            validated(tasks[task_name].Config, task, "task"),
            model_kind,
            validated(models[model_kind][0], model, "model"),
            validated(TrainingConfig, training, "training"),
            seed,
        )

    @property
    def name(self) -> str:
        """The folder's name: readable in front, the hash of everything behind."""
        settings = self.placeless()  # what is in the files counts, not where they lie
        if self.training.start is not None:
            settings["training"]["start"] = "a file"
        content = json.dumps([NUMERICS, settings, self.data()], sort_keys=True)
        return f"{self.task_name}-s{self.seed}-{sha256(content.encode()).hexdigest()[:12]}"

    def placeless(self) -> dict[str, Any]:
        """As `to_json`, with the mere names of files and folders, wherever they lie."""
        settings = self.to_json()
        files = tasks[self.task_name].files(self.task)
        places = {str(place) for path in files for place in (path, path.parent)}
        for key, value in settings["task"].items():
            parts = value.split(",") if isinstance(value, str) else []
            if parts and all(str(Path(part)) in places for part in parts):
                settings["task"][key] = ",".join(Path(part).name for part in parts)
        for section, key in (("training", "start"), ("model", "vectors")):
            if settings[section].get(key):
                settings[section][key] = Path(settings[section][key]).name
        return settings

    def data(self) -> dict[str, str]:
        """The hash of every file that the run reads: other content makes another run."""
        hashes = {
            str(number): content_hash(path)
            for number, path in enumerate(tasks[self.task_name].files(self.task))
        }
        if self.training.start is not None:
            hashes["start"] = content_hash(Path(self.training.start))
        if self._vectors is not None:
            hashes["vectors"] = content_hash(self._vectors)
        return hashes

    @property
    def _vectors(self) -> Path | None:
        """The file of word vectors that the model begins with, where it has one."""
        file = getattr(self.model, "vectors", None)
        return None if file is None else Path(file)

    def make_task(self) -> Task:
        """The task, ready to draw from."""
        return tasks[self.task_name](self.task)

    def make_model(self, task: Task) -> Seq2Seq:
        """The model before training: a function of the seed, or the weights it is given."""
        built = self.blank_model(task)
        if self._vectors is not None:
            begin_with(built.source_embedding, task.source_vocabulary.words, self._vectors)  # type: ignore[arg-type]
        if self.training.start is not None:
            load_weights(built, Path(self.training.start))
        return built

    def blank_model(self, task: Task) -> Seq2Seq:
        """The model without the weights it may be given, for those who bring their own."""
        seed_everything(self.seed, 0)
        sizes = len(task.source_vocabulary), len(task.target_vocabulary)
        kind: Any = models[self.model_kind][1]
        built: Seq2Seq = kind(self.model, *sizes)
        return built


def load_weights(model: Seq2Seq, path: Path) -> None:
    """Fill a model with the weights of a file; what does not fit is named with its shapes."""
    there(path)
    try:
        tensors, own = read_tensors(path), model.state_dict()
    except RegardError:
        raise RegardError(
            f"{path} is not a safetensors file of weights (training.start)."
            " Give a checkpoint of a run."
        ) from None
    faults = [
        f"{path}: '{name}' is {_shape(tensors.get(name))} there and {_shape(own.get(name))} in"
        " the model. Give weights of the same model."
        for name in dict.fromkeys([*own, *tensors])
        if _shape(tensors.get(name)) != _shape(own.get(name))
    ]
    if faults:
        raise RegardError(*faults)
    model.load_state_dict(tensors)


def there(path: Path) -> None:
    """Say so if the file of weights that a run begins with is not there."""
    if not path.is_file():
        raise RegardError(
            f"There is no file of weights {path} (training.start). Put it back, or ask again for"
            " what made it."
        )


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else " x ".join(map(str, tensor.shape)) or "one number"


def content_hash(path: Path) -> str:
    """The hash of a file's content; a file that is not there is the task's to report."""
    if not path.is_file():
        return "missing"
    about = path.stat()
    return _content_hash(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=32)
def _content_hash(path: Path, _changed: int, _size: int) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def assemble(
    task: str, model: str, seed: int, overrides: Mapping[str, Any], faults: Sequence[str] = ()
) -> RunConfig:
    """A run from a task, a preset, and keys that the user set, dotted or bare.

    All faults are found before any is reported, after those already known: an unknown task does
    not hide a misspelt key.
    """
    faults, overrides = list(faults), dict(overrides)
    recipe = overrides.pop("recipe", None)
    if task not in tasks:
        faults.append(unknown("task", task, tasks))
        task = nearest(task, tasks) or next(iter(tasks))
    if model not in presets:
        faults.append(unknown("model", model, presets))
        model = nearest(model, presets) or next(iter(presets))
    if recipe is not None and recipe not in recipes_of(model):
        faults.append(unknown(f"recipe of {model}", str(recipe), recipes_of(model)))
        recipe = None
    preset = preset_for(model, task, recipe)
    kind = preset.pop("model.kind")
    kinds: dict[str, type[Config]] = {
        "task": tasks[task].Config,
        "model": models[kind][0],
        "training": TrainingConfig,
    }
    values: dict[str, dict[str, Any]] = {section: {} for section in kinds}
    for key, value in preset.items():
        section, name = key.split(".", 1)
        values[section][name] = value
    for key, value in overrides.items():
        where = _section(key, kinds)
        if isinstance(where, str):
            faults.append(where)
        else:
            values[where[0]][where[1]] = value
    for section, config in kinds.items():
        faults += faults_in(config, values[section], section)
    if fault := missing_device(str(values["training"].get("device", "auto"))):
        faults.append(fault)
    if seed < 0:
        faults.append(f"seed={seed} does not fit: a seed is 0 or more.")
    if faults:
        raise RegardError(*faults)
    return RunConfig.from_json(
        {
            "seed": seed,
            "task": {"name": task, **values["task"]},
            "model": {"kind": kind, **values["model"]},
            "training": values["training"],
        }
    )


def _section(key: str, kinds: Mapping[str, type[Config]]) -> tuple[str, str] | str:
    """Where a key belongs, as (section, name), or the fault that it has."""
    dotted = [f"{section}.{name}" for section, kind in kinds.items() for name in kind.model_fields]
    found = [full for full in dotted if key in (full, full.split(".", 1)[1])]
    if len(found) == 1:
        section, name = found[0].split(".", 1)
        return section, name
    if found:
        return f"The key '{key}' could be {' or '.join(found)}: give it in full."
    bare = {full.split(".", 1)[1] for full in dotted}
    return unknown("key", key, dotted if "." in key else bare)
