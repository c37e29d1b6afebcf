"""What can be explored: runs, recordings and models, by names that requests may use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import torch

from regard.errors import RegardError, unknown
from regard.explorer.memory import Kept
from regard.models.seq2seq import Seq2Seq
from regard.recordings import Recording, load_recording, record
from regard.recordings.samples import draw_samples
from regard.recordings.storage import Array
from regard.runs import Run
from regard.runs.run import list_runs
from regard.tasks import CorpusTask, Task
from regard.tasks.batch import Batch
from regard.tasks.typed import number_typed, read_typed
from regard.tasks.vocabulary import EOS, SOS, Vocabulary

SAMPLES = 500  # sentences of a reference recording
BUDGET = 192 << 20  # bytes of one
EXAMPLES = 100  # sentences that a person may choose from
WIDE = 2000  # words of a vocabulary for which the lexical probe is recorded beside

Checkpoint = str | int


class Thing(ABC):
    """One thing to explore, and what is kept of it."""

    kind: str

    def __init__(self, name: str, path: Path):
        self.name, self.path = name, path
        self.lock = RLock()  # changes are hooks on the model, so one sentence goes at a time

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What a list shows of it."""

    @abstractmethod
    def reference(self, checkpoint: Checkpoint) -> Recording:
        """The recording that averages are taken over."""

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The words of both sides."""
        found = self.reference("reported")
        return found.vocabulary("encoder"), found.vocabulary("decoder")

    def stamp(self, checkpoint: Checkpoint) -> int:
        """Changes when what a checkpoint's name means has changed: while a run is training."""
        return 0

    def special(self, side: int) -> frozenset[str]:
        """The words of a side (0 source, 1 target) that mean nothing."""
        return self.vocabularies[side].special


class RecordingThing(Thing):
    """A recording in a file: looked at as it is, nothing runs."""

    kind = "recording"

    def __init__(self, name: str, path: Path):
        super().__init__(name, path)
        self.recording = load_recording(path)

    def summary(self) -> dict[str, Any]:
        """Where it comes from, and how long it is."""
        origin = self.recording.metadata.origin
        return {
            "name": self.name, "kind": self.kind, "task": str(origin.get("task", "")),
            "model": _name_model(origin.get("model")), "samples": len(self.recording),
            "seed": origin.get("seed"), "group": str(origin.get("configuration", self.name)),
            "done": True, "checkpoints": [],
        }  # fmt: skip

    def reference(self, checkpoint: Checkpoint) -> Recording:
        """The recording itself."""
        return self.recording


class LiveThing(Thing):
    """Something with a model that can run."""

    words: tuple[Vocabulary, Vocabulary]
    start, end = SOS, EOS  # what is fed first, and what ends an output
    changeable = True  # its hook points cover scores, weights and states

    @abstractmethod
    def model(self, checkpoint: Checkpoint) -> Seq2Seq:
        """The model, kept loaded."""

    @abstractmethod
    def read(self, source: str, target: str | None) -> Batch:
        """A typed sentence."""

    @abstractmethod
    def number(self, word: str) -> int:
        """The number of one target word."""

    @abstractmethod
    def examples(self) -> list[tuple[str, str]]:
        """Sentences to choose from, and their translations."""

    @abstractmethod
    def limit(self, source: int) -> tuple[int, bool]:
        """How many words an output has at most, given the source's; whether `end` ends it."""


class RunThing(LiveThing):
    """A run: its model at any checkpoint, and its task."""

    kind = "run"
    tasks: Kept[Task] = Kept(4)

    def __init__(self, name: str, path: Path, samples: int = SAMPLES):
        super().__init__(name, path)
        self.run, self.samples = Run.open(path), samples
        self.models: Kept[Seq2Seq] = Kept(6)
        self.references: Kept[Recording] = Kept(3)
        self.shown: Kept[list[tuple[str, str]]] = Kept(1)
        self.lengths: Kept[dict[int, int]] = Kept(1)

    def summary(self) -> dict[str, Any]:
        """Task, model, seed, and how far it has come."""
        config = self.run.config
        data = config.model.model_dump(mode="json")
        summary: dict[str, Any] = {
            "name": self.name, "kind": self.kind, "task": config.task_name,
            "model": _name_model({"kind": config.model_kind, **data}), "seed": config.seed,
            "group": str(config.configuration), "done": self.run.done,
            "checkpoints": self.run.checkpoints(), "updates": config.training.updates,
        }  # fmt: skip
        if self.run.done:
            numbers = self.run.metrics.items()
            summary["metrics"] = {k: v for k, v in numbers if isinstance(v, (int, float))}
        return summary

    @property
    def task(self) -> Task:
        """The task, which seeds of one configuration share."""
        key = str(self.run.config.configuration)
        return self.tasks.get(key, self.run.task)

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The task's."""
        return self.task.source_vocabulary, self.task.target_vocabulary

    def model(self, checkpoint: Checkpoint) -> Seq2Seq:
        """The model at a checkpoint; weights that are still changing are read anew."""
        key = (checkpoint, self.stamp(checkpoint))
        return self.models.get(key, lambda: self.run.model(checkpoint))

    def stamp(self, checkpoint: Checkpoint) -> int:
        """How many checkpoints there are, where a name may mean another one tomorrow."""
        if checkpoint not in ("reported", "last", "best") or self.run.done:
            return 0
        return 1 + len(self.run.checkpoints())

    def reference(self, checkpoint: Checkpoint) -> Recording:
        """Samples of the task, as many as fit the budget, with the model's own words fed."""
        key = (checkpoint, self.stamp(checkpoint))
        return self.references.get(key, lambda: self._record(checkpoint))

    def _record(self, checkpoint: Checkpoint) -> Recording:
        model = self.model(checkpoint)
        also = ["values"] if model.crossing_sites() else []
        small = max(map(len, self.vocabularies)) <= WIDE
        also += ["lexical"] if model.has_lexical_probe and small else []
        with self.lock:
            few = record(self.run, n=4, checkpoint=checkpoint, also=also)
            each = sum(few[name].nbytes for name in few.names()) // max(len(few), 1)
            n = max(16, min(self.samples, BUDGET // max(each, 1)))
            return record(self.run, n=n, checkpoint=checkpoint, also=also)

    def read(self, source: str, target: str | None) -> Batch:
        """As the task reads it."""
        return read_typed(self.task, source, target)

    def number(self, word: str) -> int:
        """One target word: a special one, a piece, or a word as it is typed."""
        vocabulary = self.task.target_vocabulary
        if word in vocabulary.numbers:
            return vocabulary.numbers[word]
        found = number_typed(self.task, word, vocabulary)
        if len(found) != 1:
            raise RegardError(f"'{word[:60]}' is not one word of the target vocabulary.")
        return found[0]

    def examples(self) -> list[tuple[str, str]]:
        """Fresh samples, or the rows of the task's own split."""
        return self.shown.get("examples", self._examples)

    def _examples(self) -> list[tuple[str, str]]:
        found = []
        for batch in draw_samples(self.task, EXAMPLES):
            rows = zip(batch.source.tolist(), batch.target.tolist(), strict=True)
            found += [(self._spell(s, 0), self._spell(t, 1)) for s, t in rows]
        return found

    def _spell(self, numbers: Sequence[int], side: int) -> str:
        """Words as a person would type them; sources as they were before they were turned."""
        pieces = getattr(self.task, "pieces", None)
        if pieces is not None:
            text: str = pieces.decode([list(numbers)])[0]
            return text
        words = self.vocabularies[side].decode(numbers)
        turned = side == 0 and self.task.config.reverse_source
        return " ".join(reversed(words) if turned else words)

    def limit(self, source: int) -> tuple[int, bool]:
        """Where nothing ends an output, it is as long as those of sources of that length."""
        if self.task.ends:
            return 2 * source + 20, True
        known = self.lengths.get("lengths", self._lengths)
        return known.get(source, max(known.values(), default=1)), False

    def _lengths(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for batch in draw_samples(self.task, EXAMPLES):
            for s, t in zip(
                batch.source_lengths.tolist(), batch.target_lengths.tolist(), strict=True
            ):
                found[s] = max(found.get(s, 1), t)
        return found

    @property
    def fixed(self) -> bool:
        """Whether the task has a fixed set of rows."""
        return isinstance(self.task, CorpusTask)


def _name_model(data: Any) -> str:
    """A model in a few words: `lstm, 128, dot`."""
    if not isinstance(data, dict):
        return str(data or "")
    heads = f"{data['heads']} heads" if data.get("heads", 1) > 1 else None
    layers = f"{data['layers']} layers" if data.get("layers", 1) > 1 else None
    parts = [data.get("kind"), data.get("cell"), data.get("hidden"), data.get("attention")]
    return ", ".join(str(part) for part in (*parts, layers, heads) if part not in (None, ""))


class Things:
    """All things, by name. A request names one of these, never a path."""

    def __init__(
        self, paths: Iterable[Path] = (), runs: Path | None = None, samples: int = SAMPLES
    ):
        self.runs, self.samples = runs, samples
        self.found: dict[str, Thing] = {}
        self.lock = RLock()
        self.paths: set[Path] = set()
        for path in paths:
            self._open(Path(path))
        self.refresh()

    def _open(self, path: Path) -> None:
        """A run's folder, a folder of runs, a model's folder, or a recording."""
        from regard.explorer.others import SubjectThing, is_model_folder

        if path.is_file():
            self._add(path, RecordingThing(self._free_name(path.name), path))
        elif is_model_folder(path):
            self._add(path, SubjectThing(self._free_name(path.name), path))
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


def to_array(x: torch.Tensor) -> Array:
    """A tensor's numbers."""
    found: Array = x.detach().cpu().numpy()
    return found
