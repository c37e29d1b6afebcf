"""What a task is: vocabularies, training batches, splits, and a metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal
from zlib import crc32

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from regard.config import Config
from regard.registry import Registry
from regard.tasks.batch import Batch, turned
from regard.tasks.vocabulary import EOS, PAD, Vocabulary


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

    @classmethod
    def files(cls, config: TaskConfig) -> tuple[Path, ...]:
        """The files whose content, besides `config`, determines the task; most tasks have none."""
        return ()

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """`size` fresh examples; the same generator state gives the same examples."""

    def train_batch(self, update: int, size: int, seed: int) -> Batch:
        """The training batch of one update: a function of its arguments and nothing else.

        Because no state is carried from batch to batch, a run that was killed goes on with
        exactly the batches that it would have seen.
        """
        return self._to_train_on(self.draw(np.random.default_rng([seed, update]), size))

    def split(self, name: str) -> Batch:
        """A held-out set: the same for every seed of every model."""
        rng = np.random.default_rng([crc32(name.encode()), self.config.held_out])
        return self._oriented(self.draw(rng, self.config.held_out))

    def fresh(self, size: int, seed: int, number: int = 0) -> Batch:
        """Examples to look at, which no training has seen as such: a function of the arguments."""
        return self._oriented(self.draw(np.random.default_rng([seed, number, 7]), size))

    def correct(self, predictions: Tensor, batch: Batch) -> Tensor:
        """Which predictions are right, word for word up to `<EOS>`.

        Where targets have no `<EOS>`, what is said after their last word does not count.

        predictions (batch, any width) -> (batch,) bool
        """
        if not self.ends:
            width = batch.target.shape[1]
            said = pad(predictions, (0, max(0, width - predictions.shape[1])), value=PAD)
            return ((said[:, :width] == batch.target) | ~batch.target_mask).all(dim=1)
        width = max(predictions.shape[1], batch.target.shape[1])
        return (trimmed(predictions, width) == trimmed(batch.target, width)).all(dim=1)

    def _to_train_on(self, batch: Batch) -> Batch:
        """`batch` as training gets it: turned, and with padding to be read, where asked."""
        batch = self._oriented(batch)
        if self.config.padding == "masked":
            return batch
        width = torch.full_like(batch.source_lengths, batch.source.shape[1])
        return replace(batch, source_lengths=width)

    def _oriented(self, batch: Batch) -> Batch:
        if not self.config.reverse_source:
            return batch
        return turned(batch, self.starts, self.source_vocabulary.ends)


def trimmed(words: Tensor, width: int) -> Tensor:
    """`words` with everything from the first `<EOS>` on replaced by `<EOS>`, at one width."""
    filled = pad(words, (0, width - words.shape[1]), value=EOS)
    ended = (filled == EOS).cumsum(dim=1) > 0
    return filled.masked_fill(ended, EOS)


tasks: Registry[type[Task]] = Registry("task")
