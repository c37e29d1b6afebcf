"""A corpus to translate that is on no disk: pairs as long as captions in pieces of words."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.tasks import Task, TaskConfig
from regard.tasks.batch import Batch, mask
from regard.tasks.vocabulary import EOS, PAD, SOS, Vocabulary

# Measured on the 29,000 pairs of Multi30k, German to English, in 8,000 pieces: the logarithms of
# lengths, special words counted, are about normal and go together.
LOG_MEANS = np.log([15.5, 14.4])
LOG_DEVIATIONS = np.array([0.31, 0.30])
CORRELATION = 0.84
SHORTEST, LONGEST = 4, 60


class Captions(Task):
    """Sources `<SOS> … <EOS>`, targets `… <EOS>`, words as frequent as Zipf's law says.

    There is nothing to learn in them but frequencies: they are to measure speed with. Batches of
    16 are about 60 % words and 40 % padding, as those of Multi30k are.
    """

    starts = True

    def __init__(self, words: int = 8000):
        super().__init__(TaskConfig())
        names = (str(number) for number in range(words - EOS - 1))
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of(names)
        self.total = np.cumsum(1 / np.arange(1, words - EOS))

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Lengths of both sides together, then words one by one."""
        shared = np.array([[1, CORRELATION], [CORRELATION, 1]])
        normal = rng.multivariate_normal(np.zeros(2), shared, size)
        lengths = np.exp(LOG_MEANS + LOG_DEVIATIONS * normal).round().clip(SHORTEST, LONGEST)
        source, target = torch.from_numpy(lengths.astype(np.int64)).unbind(1)
        words = self._words(rng, source)
        words[:, 0] = SOS
        return Batch(words, source, self._words(rng, target), target)

    def _words(self, rng: np.random.Generator, lengths: Tensor) -> Tensor:
        """Rows that end in `<EOS>`. (batch,) -> (batch, longest)"""
        width = int(lengths.max())
        places = rng.random((len(lengths), width)) * self.total[-1]
        words = torch.from_numpy(EOS + 1 + np.searchsorted(self.total, places))
        words = words.where(mask(lengths, width), torch.tensor(PAD))
        words[torch.arange(len(lengths)), lengths - 1] = EOS
        return words
