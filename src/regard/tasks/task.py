"""What a task is: vocabularies, training batches, splits, and a metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal
from zlib import crc32

import numpy as np
from pydantic import Field

from regard.config import Config
from regard.registry import Registry
from regard.tasks.batch import Batch, mask, reverse_sources
from regard.tasks.vocabulary import EOS, PAD, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor


class TaskConfig(Config):
    """The keys that every task has."""

    reverse_source: bool = Field(
        False, description="feed the source words backwards (Sutskever et al. 2014)"
    )
    padding: Literal["masked", "read"] = Field(
        "masked",
        description="read: during training the encoder reads the padding as if it were words",
    )
    held_out: int = Field(500, ge=1, description="examples in each held-out split that is drawn")

    def files(self) -> tuple[Path, ...]:
        """The files whose content, besides these keys, determines the task; most have none."""
        return ()


class Task(ABC):
    """A source language, a target language, and pairs of them to learn and to test on.

    A newcomer writes one file: a `Config`, both vocabularies, and `draw`. A task that has a fixed
    set of examples extends `CorpusTask` and gives its rows instead.
    """

    Config: ClassVar[type[TaskConfig]] = TaskConfig
    splits: ClassVar[tuple[str, ...]] = ("validation", "test")
    starts: ClassVar[bool] = False  # sources start with `<SOS>`
    ends: ClassVar[bool] = True  # targets end in `<EOS>`
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary

    def __init__(self, config: TaskConfig):
        self.config = config

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """`size` fresh examples; the same generator state gives the same examples."""

    def train_batch(self, update: int, size: int, seed: int) -> Batch:
        """The training batch of one update: a function of its arguments and nothing else.

        Because no state is carried from batch to batch, a run that was killed goes on with
        exactly the batches that it would have seen.
        """
        return self._prepare(self.draw(np.random.default_rng([seed, update]), size))

    def split(self, name: str) -> Batch:
        """A held-out set: the same for every seed of every model."""
        rng = np.random.default_rng([crc32(name.encode()), self.config.held_out])
        return self._orient(self.draw(rng, self.config.held_out))

    def fresh(self, size: int, seed: int, number: int = 0) -> Batch:
        """Examples to look at, which no training has seen as such: a function of the arguments."""
        return self._orient(self.draw(np.random.default_rng([seed, number, 7]), size))

    def correct(self, predictions: Tensor, batch: Batch) -> Tensor:
        """Which predictions are right, word for word up to `<EOS>`.

        Where targets have no `<EOS>`, what is said after their last word does not count.

        predictions (batch, any width) -> (batch,) bool
        """
        from torch.nn.functional import pad

        width = max(predictions.shape[1], batch.target.shape[1])
        fill = EOS if self.ends else PAD  # without an end, 2 is a word like any other
        said, right = (
            pad(words, (0, width - words.shape[1]), value=fill)
            for words in (predictions, batch.target)
        )
        if self.ends:
            return (_trim(said) == _trim(right)).all(dim=1)
        return ((said == right) | ~mask(batch.target_lengths, width)).all(dim=1)

    def _prepare(self, batch: Batch) -> Batch:
        """`batch` as training gets it: oriented, and with padding to be read, where asked."""
        batch = self._orient(batch)
        if self.config.padding == "masked":
            return batch
        width = batch.source_lengths.new_full((len(batch),), batch.source.shape[1])
        return replace(batch, source_lengths=width)

    def _orient(self, batch: Batch) -> Batch:
        if not self.config.reverse_source:
            return batch
        return reverse_sources(batch, self.starts, self.source_vocabulary.ends)


def _trim(words: Tensor) -> Tensor:
    """`words` with everything from the first `<EOS>` on replaced by `<EOS>`. (batch, width)"""
    return words.masked_fill((words == EOS).cumsum(dim=1) > 0, EOS)


TASKS: Registry[type[Task]] = Registry(
    "task",
    rooms=tuple(f"regard.tasks.{room}" for room in ("synthetic", "lookup", "scan", "text")),
    dashes=True,
)
