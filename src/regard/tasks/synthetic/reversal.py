"""String reversal, the smallest sequence-to-sequence task (chapter36, section 36.2)."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase

import numpy as np
from pydantic import Field

from regard.tasks.batch import Batch
from regard.tasks.synthetic._phrases import LengthsConfig, draw_phrases, order_backwards, reorder
from regard.tasks.task import TASKS, Task
from regard.tasks.vocabulary import Vocabulary


@TASKS.register("reversal")
class Reversal(Task):
    """A random string over the first letters of the alphabet, and the same string backwards."""

    class Config(LengthsConfig):
        """The alphabet and the lengths to draw from."""

        alphabet: int = Field(26, ge=2, le=26, description="how many letters")
        shortest: int = Field(5, ge=1, description="letters in the shortest string")
        longest: int = Field(10, ge=1, description="letters in the longest string")

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        vocabulary = Vocabulary.of(ascii_lowercase[: config.alphabet])
        self.source_vocabulary = self.target_vocabulary = vocabulary

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Lengths uniform in the range, letters uniform and independent; nothing is aligned."""
        strings, lengths = draw_phrases(rng, size, self.config.alphabet, self.config)
        order = order_backwards(lengths, strings.shape[1])
        return replace(reorder(strings, lengths, order), alignment=None)
