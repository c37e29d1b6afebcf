"""What an instrument is put on, and how that is got from whatever a user gives.

A recording is got from a run by recording it, from a path by opening it; a run from its folder.
What cannot be got is refused with one sentence. Several sources count as seeds of one
configuration, so they have to be that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from regard.errors import RegardError, kind_of, together
from regard.recordings import Recording, load_recording, record
from regard.recordings.adapter import find_adapter
from regard.recordings.adapters.model import Inputs
from regard.recordings.adding import find_shards
from regard.recordings.decomposition import Decomposition
from regard.recordings.manifest import is_sharded, refuse_unfinished
from regard.recordings.storage import File
from regard.recordings.views import sample_rows
from regard.runs import Run
from regard.subjects.subject import Subject

Settings = Mapping[str, Any]
Also = Mapping[str, Mapping[str, Any]]
OVER_SHARDS = ("sample", "jobs", "on")  # how a recording is read, not how it is made
NOT_SEEDS = (
    "Several sources count as seeds of one configuration. Inspect them one by one, or give"
    " pool=True if they are to be pooled all the same."
)


class Takes(ABC):
    """One kind of source."""

    options: ClassVar[Mapping[str, Any]] = {}  # what can be said of how a source is got: types
    noun: ClassVar[str]

    @abstractmethod
    def open(self, thing: Any, settings: Settings, options: Settings) -> Any:
        """A source from what was given."""

    def gather(self, things: Any) -> list[Any]:
        """What was given, one thing or many, as a list."""
        many = [things] if self.is_single(things) else list(things)
        if not many:
            raise RegardError("There is nothing to inspect: nothing was given.")
        return together(partial(self.find, thing) for thing in many)

    def find(self, thing: Any) -> Any:
        """What a path leads to, before anything runs; all else as it is."""
        return thing

    def is_single(self, things: Any) -> bool:
        """Whether this is one source, not several."""
        return not isinstance(things, Iterable) or isinstance(
            things, (str, Path, Mapping, Recording)
        )

    def identify(self, source: Any) -> tuple[Any, Any]:
        """The configuration of a source (None: unknown), and what tells it from other seeds."""
        return None, id(source)

    def check_seeds(self, sources: Sequence[Any]) -> None:
        """Refuse what are not seeds of one configuration."""
        known = [self.identify(source) for source in sources]
        kinds = [kind for kind, _ in known if kind is not None]
        if any(kind != kinds[0] for kind in kinds):
            differing = _differences(kinds)
            raise RegardError(f"These {self.noun} differ in {differing}. {NOT_SEEDS}")
        if len({member for _, member in known}) < len(known):
            raise RegardError(f"One of these {self.noun} is given twice. {NOT_SEEDS}")

    def refuse(self, thing: Any) -> RegardError:
        """The sentence for something that is no source at all."""
        shown = repr(thing) if isinstance(thing, (int, float)) else kind_of(thing)
        return RegardError(f"{shown} cannot be inspected. {self.wants}")

    wants: ClassVar[str]


@dataclass(frozen=True)
class Recordings(Takes):
    """Recordings; a run is recorded for the occasion, a file is opened.

    `also` says what has to be in the recording besides (see `record`), fixed or as it follows from
    the settings; `n` how many samples of a run are recorded by default.
    """

    also: Also | Callable[[Settings], Also] | None = None
    inputs: str = "own"
    n: int = 1000
    compares: bool = False  # sources are held against each other, so they need not be seeds
    options = {
        "n": int, "checkpoint": int | str, "split": str, "inputs": Inputs, "samples": int,
        "watch": Any, "pairs": Any, "sites": Any, "sample": int, "jobs": int, "on": str,
    }  # fmt: skip
    noun = "recordings"
    wants = "Give a recording, a run, the path of one, or a subject; several as a list."

    def find(self, thing: Any) -> Any:
        """A run or a recording by its path, or what an adapter of the user's records."""
        if own := find_adapter(thing):
            return own.record(thing)
        return open_path(thing) if isinstance(thing, (str, Path)) else thing

    def open(self, thing: Any, settings: Settings, options: Settings) -> Recording:
        """The recording that was given, in a file or in shards, or made of a run.

        `sample` takes some of its samples; of shards, `jobs` processes add up, or a cluster
        (`on`).
        """
        how = {key: value for key, value in options.items() if key not in OVER_SHARDS}
        found = self._open(thing, settings, how)
        if find_shards(found):
            how = {key: options[key] for key in ("jobs", "watch", "on") if key in options}
            found = replace(found, **how) if how else found
        elif "on" in options:
            raise RegardError("on is for recordings in shards, and this is none. Leave it out.")
        if "sample" in options:
            found = sample_rows(found, options["sample"])
        return found.compact

    def _open(self, thing: Any, settings: Settings, options: Settings) -> Recording:
        also = self.describe(settings)
        thing = self.find(thing.recording if isinstance(thing, Decomposition) else thing)
        if isinstance(thing, Run):
            given = {"n": self.n, "inputs": self.inputs, **options}
            given["seed"] = given.pop("samples", 0)
            return record(thing, also=also, **given)
        if isinstance(thing, Subject):
            fed = {} if self.inputs == "own" else {"inputs": self.inputs}  # else as it is used to
            return record_of_subject(thing, also, {**fed, **options})
        if not isinstance(thing, Recording):
            raise self.refuse(thing)
        said = [name for name in options if name != "watch"]
        if said:
            names = " and ".join(f"{name}=" for name in said)
            raise RegardError(
                f"A recording was given, but {names} would say how to record a run. Give the"
                f" run, or leave out {names}."
            )
        _check_also(thing, also)
        return thing

    def describe(self, settings: Settings) -> Also:
        """What has to be in the recording besides."""
        return self.also(settings) if callable(self.also) else self.also or {}

    def identify(self, source: Recording) -> tuple[Any, Any]:
        """What the recording says of its origin."""
        origin, storage = source.metadata.origin, source.storage
        if "weights" not in origin:
            if shards := find_shards(source):
                return None, shards.manifest.folder.resolve()
            return None, storage.path if isinstance(storage, File) else id(storage)
        names = ("configuration", "task", "model", "checkpoint", "inputs")
        split = origin.get("samples", {}).get("split")
        known = {name: origin[name] for name in names if name in origin}
        return {**known, "split": split}, origin["weights"]

    def check_seeds(self, sources: Sequence[Recording]) -> None:
        """Recordings that are compared need not be seeds."""
        if not self.compares:
            super().check_seeds(sources)


@dataclass(frozen=True)
class Runs(Takes):
    """Runs, whose model is changed or looked at as a whole; a folder is opened."""

    alike: bool = True  # several count as seeds of one configuration
    noun = "runs"
    wants = "Give a run, or its folder; several as a list."

    def find(self, thing: Any) -> Any:
        """A run by its folder."""
        return open_run(thing) if isinstance(thing, (str, Path)) else thing

    def open(self, thing: Any, settings: Settings, options: Settings) -> Any:
        """The run that was given, or in a folder."""
        thing = self.find(thing)
        if isinstance(thing, (Recording, Decomposition)):
            raise RegardError(
                "This instrument needs the model itself, and a recording does not hold it."
                f" {self.wants}"
            )
        if not isinstance(thing, Run):
            raise self.refuse(thing)
        return thing

    def identify(self, source: Any) -> tuple[Any, Any]:
        """The run's configuration without its seed, and its name."""
        if not isinstance(source, Run):
            return super().identify(source)
        return source.config.configuration, source.folder.resolve()

    def check_seeds(self, sources: Sequence[Any]) -> None:
        """Runs that are paired with others need not be seeds."""
        if self.alike:
            super().check_seeds(sources)


class Models(Runs):
    """Runs and subjects, whose model is changed or looked at as a whole."""

    wants = "Give a run, its folder, or a subject; several as a list."

    def open(self, thing: Any, settings: Settings, options: Settings) -> Any:
        """The run or subject that was given, or the run in a folder."""
        return thing if isinstance(thing, Subject) else super().open(thing, settings, options)


def record_of_subject(subject: Subject, also: Also, options: Settings) -> Recording:
    """What a subject does with the pairs that were given with the instrument's settings."""
    known = ("pairs", "sites", "inputs", "watch")
    strange = [f"{name}= says how a run is recorded, not a subject." for name in options
               if name not in known]  # fmt: skip
    if "pairs" not in options:
        strange.append("A subject needs something to read: pairs=[(source, target), …].")
    if strange:
        raise RegardError(*strange)
    return record(subject, also=also, **options)


def open_path(path: str | Path) -> Run | Recording:
    """The run in a folder, or the recording in a file or in a folder of shards."""
    path = Path(path)
    if is_recording(path):
        return load_recording(path)
    if not path.exists():
        raise RegardError(
            f"There is no run or recording {path}. `regard ls runs` lists the runs there are."
        )
    return Run.open(path)


def is_recording(path: Path) -> bool:
    """Whether a recording is there, and no run: a file, or a folder with shards."""
    found = path.is_file() or is_sharded(path)
    if not found and not (path / "config.json").is_file():
        refuse_unfinished(path)
    return found


def open_run(path: str | Path) -> Run:
    """The run in a folder; a recording is not enough."""
    if is_recording(Path(path)):
        raise RegardError(
            f"{path} is a recording, but this instrument needs the model itself. Give the run's"
            " folder."
        )
    return Run.open(path)


def _check_also(recording: Recording, also: Also) -> None:
    """Everything that an instrument reads besides the plain arrays has to have been recorded."""
    known = {part for name in recording.names() for part in name.split(".")}
    for what in also:
        if {"states": "layers"}.get(what, what) not in known:
            raise RegardError(
                f"This recording has no {what}. Record once more: record(…, also=('{what}',)), or"
                f" `regard record RUN --also {what}`."
            )


def _differences(kinds: Sequence[Any]) -> str:
    """Which entries of some descriptions differ, in words."""
    if not all(isinstance(kind, Mapping) for kind in kinds):
        return "their configuration"
    keys = dict.fromkeys(key for kind in kinds for key in kind)
    differing = [k for k in keys if any(kind.get(k) != kinds[0].get(k) for kind in kinds)]
    return " and ".join(differing)
