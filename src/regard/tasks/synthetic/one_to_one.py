"""One-to-one translation and its reversal (aitken2021, section 3)."""

from __future__ import annotations

from string import ascii_uppercase

import numpy as np
from pydantic import Field

from regard.tasks.batch import Batch
from regard.tasks.synthetic._phrases import LengthsConfig, draw_phrases, order_backwards, reorder
from regard.tasks.task import TASKS, Task
from regard.tasks.vocabulary import Vocabulary


@TASKS.register("one-to-one")
class OneToOne(Task):
    """A phrase of letters, and each letter's number; `reversed=true` turns the numbers round.

    The paper's lengths 15 to 20 are 15 to 19 words and the end token, which is read, attended
    to and predicted like a word.
    """

    class Config(LengthsConfig):
        """Words, lengths, and the direction of the output."""

        words: int = Field(3, ge=2, le=26, description="how many different words")
        reversed: bool = Field(False, description="the output runs backwards")

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        self.source_vocabulary = Vocabulary.of(ascii_uppercase[: config.words])
        self.target_vocabulary = Vocabulary.of(str(n + 1) for n in range(config.words))

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Lengths uniform in the range, words uniform and independent."""
        phrases, lengths = draw_phrases(rng, size, self.config.words, self.config)
        order = np.broadcast_to(np.arange(phrases.shape[1]), phrases.shape)
        if self.config.reversed:
            order = order_backwards(lengths, phrases.shape[1])
        return reorder(phrases, lengths, order)
