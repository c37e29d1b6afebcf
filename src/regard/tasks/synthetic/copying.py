"""Copying words that do not repeat, where attention may fail to be learned (snell2021, 3.3)."""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from regard.tasks.batch import Batch
from regard.tasks.task import TASKS, Task, TaskConfig
from regard.tasks.vocabulary import Vocabulary


@TASKS.register("copying")
class Copying(Task):
    """`7 3 12 …` to the same words, none of which occurs twice.

    Where a sentence has every word there is (`length` = `vocabulary`), no word tells anything
    about the others: all pairs occur together equally often. With fewer than all, or with `sets`,
    something is to be learned from what occurs together. Neither side has an end token.
    """

    class Config(TaskConfig):
        """Which words there are, how many of them are drawn, and in which order they come out."""

        vocabulary: int = Field(40, ge=2, description="different words in each set")
        length: int = Field(40, ge=1, description="words in a sentence, all different")
        sets: int = Field(
            1, ge=1, description="disjoint sets of words; a sentence takes its words from one"
        )
        permuted: bool = Field(
            False, description="the output is in another order, the same for all sentences"
        )
        permutation: int = Field(0, ge=0, description="the seed of that order")
        held_out: int = Field(128, ge=1, description="examples in each held-out split")

        @model_validator(mode="after")
        def _check_length(self) -> Copying.Config:
            if self.length > self.vocabulary:
                raise ValueError(
                    f"length is {self.length} but vocabulary is {self.vocabulary}: words do not"
                    " repeat, so a sentence cannot be longer than its set of words"
                )
            return self

    config: Config
    ends = False

    def __init__(self, config: Config):
        super().__init__(config)
        names = (str(number + 1) for number in range(config.sets * config.vocabulary))
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of(names, end=None)
        self.order = np.arange(config.length)  # π: where each output word comes from
        if config.permuted:
            self.order = np.random.default_rng([config.permutation, 26]).permutation(config.length)

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """A set uniformly, then `length` of its words without repetition, in random order.

        target[i] = source[π(i)] (eq. 26), where π keeps the order unless `permuted`.
        """
        count, length = self.config.vocabulary, self.config.length
        every = np.broadcast_to(np.arange(count), (size, count))
        inside = rng.permuted(every, axis=1)[:, :length]
        chosen = rng.integers(self.config.sets, size=(size, 1))
        words = self.source_vocabulary.first + chosen * count + inside  # (size, length)
        lengths, order = np.full(size, length), np.tile(self.order, (size, 1))
        return Batch.of(words, lengths, words[:, self.order], lengths, order)
