"""Another program's numbers of words, and Regard's: the order of tables and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.models.layers.embedding import Embedding
from regard.tasks import SPECIAL, Vocabulary


class Numbering(nn.Module):
    """The words of a published vocabulary in Regard's order: the special ones first.

    `special` says which of their words stand for `<PAD>`, `<SOS>` and `<EOS>`, where there are
    such; `renamed` gives some of the others a name. `theirs` (vocab,) holds their number of each
    word of Regard's, and `count` where they have none. A module, so that it moves with its model.
    """

    def __init__(
        self,
        words: Sequence[str],
        special: Mapping[str, str],
        renamed: Mapping[str, str] | None = None,
    ):
        super().__init__()
        self.count = len(words)
        rest = [n for n, word in enumerate(words) if word not in special.values()]
        first = [words.index(special[w]) if w in special else self.count for w in SPECIAL]
        names = renamed or {}
        self.vocabulary = Vocabulary.of(names.get(words[n], words[n]) for n in rest)
        self.register_buffer("theirs", torch.tensor([*first, *rest]), persistent=False)

    def ours(self, values: Tensor, missing: float) -> Tensor:
        """Values of their words as values of ours, `missing` where they have no such word.

        (count, …) -> (vocab, …)
        """
        assert isinstance(self.theirs, Tensor)
        return torch.cat([values, torch.full_like(values[:1], missing)])[self.theirs]


class Renumbered(Embedding):
    """A published table of vectors, looked up by Regard's numbers.

    weight (their words, size) stays as published; a word that they do not have enters as zeros.
    """

    def __init__(self, weight: Tensor, numbering: Numbering, learned: bool = True):
        nn.Module.__init__(self)
        self.size, self.uniform_start = weight.shape[1], False
        self.weight = nn.Parameter(weight.clone(), requires_grad=learned)
        self.numbering = numbering

    @property
    def table(self) -> Tensor:
        """The vectors of all words in Regard's order. (vocab, size)"""
        return self.numbering.ours(self.weight, 0.0)

    def look_up(self, numbers: Tensor) -> Tensor:
        """(batch,) -> (batch, size)"""
        return nn.functional.embedding(numbers, self.table)
