"""Random phrases of several lengths, and the same words in another order."""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from regard.tasks.batch import Batch, Ints
from regard.tasks.task import TaskConfig
from regard.tasks.vocabulary import EOS, PAD, SPECIAL


class LengthsConfig(TaskConfig):
    """How many words a phrase has; its end token comes on top."""

    shortest: int = Field(15, ge=1, description="words in the shortest phrase, without its end")
    longest: int = Field(19, ge=1, description="words in the longest phrase, without its end")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest is {self.shortest} but longest is {self.longest}")
        return self


def draw_phrases(
    rng: np.random.Generator, size: int, words: int, config: LengthsConfig
) -> tuple[Ints, Ints]:
    """Phrases with `<EOS>`, (size, longest + 1), and their lengths without it, (size,).

    Lengths are uniform in the range, words uniform and independent.
    """
    lengths = rng.integers(config.shortest, config.longest + 1, size=size)
    places, first = np.arange(lengths.max() + 1), len(SPECIAL)
    phrases = rng.integers(first, first + words, size=(size, len(places)), dtype=np.int64)
    phrases[places >= lengths[:, None]] = PAD
    phrases[places == lengths[:, None]] = EOS
    return phrases, lengths


def order_backwards(lengths: Ints, width: int) -> Ints:
    """For each place of a phrase turned round, the place that its word comes from.

    `<EOS>` and padding stay where they are. (batch,) -> (batch, width)
    """
    places = np.arange(width)
    backwards = lengths[:, None] - 1 - places
    return np.where(backwards >= 0, backwards, places)


def reorder(phrases: Ints, lengths: Ints, order: Ints) -> Batch:
    """Phrases, and their words in another order, each aligned with where it comes from.

    phrases, order (batch, time); lengths without `<EOS>`, (batch,)
    """
    mask = np.arange(phrases.shape[1]) <= lengths[:, None]
    target, alignment = np.take_along_axis(phrases, order, axis=1), np.where(mask, order, -1)
    return Batch.of(phrases, lengths + 1, target, lengths + 1, alignment)
