"""Whether a keyword occurs: where the lexical probe does not stay local (snell2021, 6.1)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from regard.tasks.batch import Batch
from regard.tasks.task import TASKS, Task, TaskConfig
from regard.tasks.vocabulary import Vocabulary

LABELS = ("negative", "positive")


@TASKS.register("keyword")
class Keyword(Task):
    """`17 4 1 38 …` to `positive`, as the keyword `1` is in it; without it, `negative`.

    The label is one word, aligned with the keyword, or with nothing where there is none.
    Neither side has an end token.
    """

    class Config(TaskConfig):
        """How many words a sentence has, and of how many they are."""

        vocabulary: int = Field(40, ge=2, description="different words, the keyword among them")
        length: int = Field(40, ge=1, description="words in a sentence")

    config: Config
    ends = False

    def __init__(self, config: Config):
        super().__init__(config)
        names = (str(number + 1) for number in range(config.vocabulary))
        self.source_vocabulary = Vocabulary.of(names, end=None)
        self.target_vocabulary = Vocabulary.of(LABELS, end=None)

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Uniform sentences, given that the keyword occurs once, or not at all; half of each.

        Given that, the other words are independent and uniform over all but the keyword, and its
        place is uniform: what rejection would leave over, without its cost. Of an odd number of
        sentences, a coin decides which label has one more.
        """
        keyword, label = self.source_vocabulary.first, self.target_vocabulary.first
        length, last = self.config.length, len(self.source_vocabulary)
        words = rng.integers(keyword + 1, last, size=(size, length), dtype=np.int64)
        positive = rng.permuted((np.arange(size) + rng.integers(2)) % 2)  # (size,), 0 or 1
        place = np.where(positive, rng.integers(length, size=size), -1)
        words[np.arange(length) == place[:, None]] = keyword
        lengths = np.full(size, length), np.full(size, 1)
        labels = (label + positive)[:, None]
        return Batch.of(words, lengths[0], labels, lengths[1], place[:, None])
