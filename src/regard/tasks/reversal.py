"""String reversal, the smallest sequence-to-sequence task (chapter36, section 36.2)."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np
import torch
from pydantic import Field, model_validator

from regard.tasks.batch import Batch, reverse
from regard.tasks.task import Task, TaskConfig, tasks
from regard.tasks.vocabulary import EOS, PAD, SPECIAL, Vocabulary


@tasks.register("reversal")
class Reversal(Task):
    """A random string over the first letters of the alphabet, and the same string backwards."""

    class Config(TaskConfig):
        """The alphabet and the lengths to draw from."""

        alphabet: int = Field(26, ge=2, le=26, description="how many letters")
        shortest: int = Field(5, ge=1, description="letters in the shortest string")
        longest: int = Field(10, ge=1, description="letters in the longest string")

        @model_validator(mode="after")
        def _ordered(self) -> Reversal.Config:
            if self.shortest > self.longest:
                raise ValueError(f"shortest is {self.shortest} but longest is {self.longest}")
            return self

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        vocabulary = Vocabulary.of(ascii_lowercase[: config.alphabet])
        self.source_vocabulary = self.target_vocabulary = vocabulary

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Lengths uniform in the range, letters uniform and independent."""
        lengths = rng.integers(self.config.shortest, self.config.longest + 1, size=size)
        places = np.arange(lengths.max() + 1)  # one more, for <EOS>
        letters = rng.integers(
            len(SPECIAL), len(self.source_vocabulary), size=(size, len(places)), dtype=np.int64
        )
        letters[places >= lengths[:, None]] = PAD
        letters[places == lengths[:, None]] = EOS
        source, words = torch.from_numpy(letters), torch.from_numpy(lengths)
        return Batch(source, words + 1, reverse(source, words), words + 1)
