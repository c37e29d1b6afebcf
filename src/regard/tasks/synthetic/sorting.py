"""Sorting letters (aitken2021, section 3)."""

from __future__ import annotations

from string import ascii_uppercase

import numpy as np
from pydantic import Field

from regard.tasks.batch import Batch
from regard.tasks.synthetic._phrases import LengthsConfig, draw_phrases, reorder
from regard.tasks.task import TASKS, Task
from regard.tasks.vocabulary import Vocabulary


@TASKS.register("sorting")
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
        phrases, lengths = draw_phrases(rng, size, self.config.words, self.config)
        places = np.arange(phrases.shape[1])
        behind = len(self.source_vocabulary) + places
        keys = np.where(places < lengths[:, None], phrases, behind)
        return reorder(phrases, lengths, keys.argsort(axis=1, kind="stable"))
