"""One-to-one translation, its reversal, and sorting (aitken2021, section 3)."""

from __future__ import annotations

from string import ascii_uppercase

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from regard.tasks.batch import Batch, mask, reverse
from regard.tasks.task import Task, TaskConfig, tasks
from regard.tasks.vocabulary import EOS, PAD, SPECIAL, Vocabulary


class LengthsConfig(TaskConfig):
    """How many words a phrase has; its end token comes on top."""

    words: int = Field(3, ge=2, le=26, description="how many different words")
    shortest: int = Field(15, ge=1, description="words in the shortest phrase, without its end")
    longest: int = Field(19, ge=1, description="words in the longest phrase, without its end")

    @model_validator(mode="after")
    def _ordered(self) -> LengthsConfig:
        if self.shortest > self.longest:
            raise ValueError(f"shortest is {self.shortest} but longest is {self.longest}")
        return self


def phrases(rng: np.random.Generator, size: int, config: LengthsConfig) -> tuple[Tensor, Tensor]:
    """Random phrases with `<EOS>`, (size, longest + 1), and their lengths without it, (size,)."""
    lengths = rng.integers(config.shortest, config.longest + 1, size=size)
    places = np.arange(lengths.max() + 1)
    first = len(SPECIAL)
    words = rng.integers(first, first + config.words, size=(size, len(places)), dtype=np.int64)
    words[places >= lengths[:, None]] = PAD
    words[places == lengths[:, None]] = EOS
    return torch.from_numpy(words), torch.from_numpy(lengths)


def straight(words: Tensor, lengths: Tensor) -> Tensor:
    """Each place aligned with itself, -1 in the padding. (batch, time)"""
    places = torch.arange(words.shape[1]).expand_as(words)
    return places.masked_fill(~mask(lengths, words.shape[1]), -1)


@tasks.register("one-to-one")
class OneToOne(Task):
    """A phrase of letters, and each letter's number; `reversed=true` turns the numbers round.

    The paper's lengths 15 to 20 are 15 to 19 words and the end token, which is read, attended
    to and predicted like a word.
    """

    class Config(LengthsConfig):
        """Words, lengths, and the direction of the output."""

        reversed: bool = Field(False, description="the output runs backwards")

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        letters = ascii_uppercase[: config.words]
        self.source_vocabulary = Vocabulary.of(letters)
        self.target_vocabulary = Vocabulary.of(str(n + 1) for n in range(config.words))

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Lengths uniform in the range, words uniform and independent."""
        source, words = phrases(rng, size, self.config)
        alignment = straight(source, words + 1)
        target = source
        if self.config.reversed:
            target, alignment = reverse(source, words), reverse(alignment, words)
        return Batch(source, words + 1, target, words + 1, alignment)


@tasks.register("sorting")
class Sorting(Task):
    """A phrase of letters, and the same letters in alphabetical order.

    A letter that occurs more than once is put out as often; equal letters keep their order, and
    that is what the alignment says, although any order among them would be right.
    """

    class Config(LengthsConfig):
        """Letters and lengths."""

        words: int = Field(8, ge=2, le=26, description="how many different letters")
        shortest: int = Field(8, ge=1, description="letters in the shortest phrase")
        longest: int = Field(12, ge=1, description="letters in the longest phrase")

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        vocabulary = Vocabulary.of(ascii_uppercase[: config.words])
        self.source_vocabulary = self.target_vocabulary = vocabulary

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Letters uniform and independent; `<EOS>` and padding stay behind all letters."""
        source, words = phrases(rng, size, self.config)
        inside = mask(words, source.shape[1])
        behind = torch.arange(source.shape[1]) + len(self.source_vocabulary)
        order = torch.where(inside, source, behind.expand_as(source)).argsort(dim=1, stable=True)
        alignment = order.masked_fill(~mask(words + 1, source.shape[1]), -1)
        return Batch(source, words + 1, source.gather(1, order), words + 1, alignment)
