"""What a thing to explore is: what is kept of it, and what its model can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import torch

from regard.models.seq2seq import Seq2Seq
from regard.recordings import Recording
from regard.recordings.storage import Array
from regard.subjects.lexicon import Lexicon
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import EOS, SOS, Vocabulary

BUDGET = 192 << 20  # bytes of a reference recording
FEW = 4  # sentences that are recorded to see how large one is
LEAST = 16  # sentences that a reference has at least

Checkpoint = str | int


class Thing(ABC):
    """One thing to explore, and what is kept of it."""

    kind: str
    lacks_means = ""  # why there are no averages, in a sentence, where there are none

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

    def lexicon(self, side: int) -> Lexicon:
        """The words of a side, and how pieces of words are marked."""
        return Lexicon.of(self.vocabularies[side])

    @abstractmethod
    def spell(self, numbers: Sequence[int], side: int) -> str:
        """Words as a person would type them."""


class LiveThing(Thing):
    """Something with a model that can run."""

    words: tuple[Vocabulary, Vocabulary]
    start, end = SOS, EOS  # what is fed first, and what ends an output
    forced_first: int | None = None  # a word that every output begins with, such as a language

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


def name_model(data: Any) -> str:
    """A model in a few words: `lstm, 128, dot`."""
    if not isinstance(data, dict):
        return str(data or "")
    heads = f"{data['heads']} heads" if data.get("heads", 1) > 1 else None
    layers = f"{data['layers']} layers" if data.get("layers", 1) > 1 else None
    parts = [data.get("kind"), data.get("cell"), data.get("hidden"), data.get("attention")]
    return ", ".join(str(part) for part in (*parts, layers, heads) if part not in (None, ""))


def to_array(x: torch.Tensor) -> Array:
    """A tensor's numbers."""
    found: Array = x.detach().cpu().numpy()
    return found


def count_samples(few: Recording, wanted: int) -> int:
    """How many sentences a reference may have, given what a few of them take."""
    each = sum(few[name].nbytes for name in few.names()) // max(len(few), 1)
    return max(LEAST, min(wanted, BUDGET // max(each, 1)))
