"""All that can be explored, by names that requests may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from regard.errors import RegardError, unknown
from regard.explorer.recording_thing import RecordingThing
from regard.explorer.run_thing import SAMPLES, RunThing
from regard.explorer.subject_thing import SubjectThing, is_model_folder
from regard.explorer.thing import LiveThing, Thing
from regard.runs.run import list_runs


class Things:
    """All things, by name. A request names one of these, never a path."""

    def __init__(
        self,
        paths: Iterable[Path] = (),
        runs: Path | None = None,
        samples: int = SAMPLES,
        sentences: Path | None = None,
    ):
        self.runs, self.samples, self.sentences = runs, samples, sentences
        self.found: dict[str, Thing] = {}
        self.lock = RLock()
        self.paths: set[Path] = set()
        for path in paths:
            self._open(Path(path))
        self.refresh()
        self._match()

    def _open(self, path: Path) -> None:
        """A run's folder, a folder of runs, a model's folder, or a recording."""
        if path.is_file():
            self._add(path, RecordingThing(self._free_name(path.name), path))
        elif is_model_folder(path):
            name = self._free_name(path.name)
            self._add(path, SubjectThing(name, path, self.samples, self.sentences))
        elif (path / "config.json").is_file():
            self._add(path, RunThing(self._free_name(path.name), path, self.samples))
        elif path.is_dir():
            many = [run.folder for run in list_runs(path)]
            if not many:
                raise RegardError(
                    f"{path} is neither a run nor a folder of runs. Name a run's folder, a folder"
                    " of runs, or a recording."
                )
            for folder in many:
                self._add(folder, RunThing(self._free_name(folder.name), folder, self.samples))
        else:
            raise RegardError(f"There is no run or recording {path}.")

    def _add(self, path: Path, thing: Thing) -> None:
        if path.resolve() not in self.paths:
            self.paths.add(path.resolve())
            self.found[thing.name] = thing

    def _match(self) -> None:
        """Tell recordings and the models that they were made of from each other."""
        for one in self.found.values():
            if not isinstance(one, RecordingThing):
                continue
            origin = one.recording.metadata.origin
            for other in self.found.values():
                if isinstance(other, RunThing) and origin.get("run") == other.path.name:
                    one.maker = other.name
                if isinstance(other, SubjectThing) and _is_made_of(origin, other):
                    one.maker, other.recording = other.name, one.recording
                    other.recorded = one.path

    def _free_name(self, name: str) -> str:
        number, free = 1, name
        while free in self.found:
            number, free = number + 1, f"{name} ({number + 1})"
        return free

    def refresh(self) -> None:
        """Runs that have come into the runs folder since."""
        if self.runs is None or not self.runs.is_dir():
            return
        with self.lock:
            for run in list_runs(self.runs):
                if run.folder.resolve() not in self.paths:
                    thing = RunThing(self._free_name(run.folder.name), run.folder, self.samples)
                    self._add(run.folder, thing)

    def __iter__(self) -> Iterator[Thing]:
        return iter(list(self.found.values()))

    def __getitem__(self, name: str) -> Thing:
        if name not in self.found:
            raise RegardError(unknown("thing to explore", name[:100], list(self.found)[:20]))
        return self.found[name]

    def live(self, name: str) -> LiveThing:
        """One whose model can run."""
        thing = self[name]
        if not isinstance(thing, LiveThing):
            raise RegardError(
                f"'{name}' is a recording: it shows what a model did, and runs none. Open the run."
            )
        return thing


def _is_made_of(origin: Mapping[str, Any], subject: SubjectThing) -> bool:
    """Whether a recording says that it comes from this model."""
    own = subject.subject.origin
    return all(origin.get(name) == own.get(name) for name in ("adapter", "model", "folder"))
