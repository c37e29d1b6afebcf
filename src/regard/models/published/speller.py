"""What the published models share: vocabularies of their own, and how they are asked."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.models import Seq2Seq, greedy
from regard.tasks import EOS, Vocabulary
from regard.tasks.batch import pad

Weights = dict[str, Tensor]  # the arrays of a published file, by their names there

# The logit of a word that the published model does not have: never the largest, yet finite.
NEVER = -1e9
PIECE = 250  # words that are spelled at once


class Published(Seq2Seq):
    """A published model that knows its vocabularies: letters on one side, phonemes on the other."""

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary

    def spell(self, words: Sequence[str], limit: int = 40) -> list[list[str]]:
        """The phonemes of each word, greedily, at most `limit` of them.

        Words are read in lower case; a letter that the model has no unit for is an error.

        >>> load_published("g2p_en_2.1.0").spell(["attention"])           # doctest: +SKIP
        [['AH0', 'T', 'EH1', 'N', 'SH', 'AH0', 'N']]
        """
        rows = [[*self.source_vocabulary.encode(word.lower()), EOS] for word in words]
        device = next(self.parameters()).device
        said: list[list[str]] = []
        for start in range(0, len(rows), PIECE):
            padded = pad(rows[start : start + PIECE])
            source, lengths = (torch.from_numpy(x).to(device) for x in padded)
            memory = self.encode(source, lengths)
            chosen = greedy(self, memory, limit)
            said += [self.target_vocabulary.decode(row) for row in chosen.tolist()]
        return said


def fill(parameter: Tensor, values: Tensor) -> None:
    """Put published numbers into a parameter of the same shape."""
    assert parameter.shape == values.shape, (parameter.shape, values.shape)
    with torch.no_grad():
        parameter.copy_(values)
