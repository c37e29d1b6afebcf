"""A run to explore: its model at any checkpoint, its task, and the sentences of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.explorer.memory import Kept
from regard.explorer.thing import FEW, Checkpoint, LiveThing, count_samples, name_model
from regard.models.seq2seq import Seq2Seq
from regard.recordings import Recording, record
from regard.recordings.samples import draw_samples
from regard.runs import Run
from regard.subjects.lexicon import Lexicon, find_marker
from regard.tasks import Task
from regard.tasks.batch import Batch
from regard.tasks.typed import number_typed, read_typed
from regard.tasks.vocabulary import Vocabulary

SAMPLES = 500  # sentences of a reference recording
EXAMPLES = 100  # sentences that a person may choose from
WIDE = 2000  # words of a vocabulary for which the lexical probe is recorded beside


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
            "model": name_model({"kind": config.model_kind, **data}), "seed": config.seed,
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
            few = record(self.run, n=FEW, checkpoint=checkpoint, also=also)
            n = count_samples(few, self.samples)
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
            found += [(self.spell(s, 0), self.spell(t, 1)) for s, t in rows]
        return found

    def lexicon(self, side: int) -> Lexicon:
        """The task's words; where it has pieces, they are marked."""
        found = super().lexicon(side)
        marker = find_marker(found.words) if getattr(self.task, "pieces", None) else ""
        return replace(found, marker=marker)

    def spell(self, numbers: Sequence[int], side: int) -> str:
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
