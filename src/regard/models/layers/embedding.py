"""How words enter a network: as learned vectors or as units, with positions where wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.cells import Inputs, Words, vectors
from regard.models.layers.hook_point import HookPoint
from regard.tasks.vocabulary import PAD, SOS


@contextmanager
def draw_with(seed: int | None) -> Iterator[None]:
    """Draw random numbers with a seed of their own; with none, from where torch stands."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def pass_point(point: HookPoint, words: Inputs) -> Inputs:
    """The words as they enter, past a hook point: as vectors where a hook is there."""
    return point(vectors(words)) if point.watched else words


class Embedding(nn.Module):
    """Words as learned vectors; `<PAD>`'s is zero unless all are drawn alike, and is not learned.

    With `uniform_start`, the vector of `<SOS>` is the mean of all words' vectors, which is what
    a uniform distribution over the vocabulary enters as (aitken2021's first decoder input).
    """

    def __init__(self, words: int, size: int, uniform_start: bool = False):
        super().__init__()
        self.size, self.uniform_start = size, uniform_start
        self.weight = nn.Parameter(torch.randn(words, size))
        with torch.no_grad():
            self.weight[PAD] = 0

    @property
    def table(self) -> Tensor:
        """The vectors of all words, of which `<PAD>`'s is not learned. (vocab, size)"""
        start = self.weight[SOS : SOS + 1]
        if self.uniform_start:
            start = self.weight[1:].sum(dim=0, keepdim=True) / len(self.weight)
        return torch.cat([self.weight[:1].detach(), start, self.weight[SOS + 1 :]])

    def forward(self, numbers: Tensor) -> Inputs:
        """(batch, time) -> the table with the numbers, or the vectors of a few of many words."""
        if numbers.numel() < len(self.weight):
            return self.look_up(numbers)
        return Words(numbers, self.table)

    def look_up(self, numbers: Tensor) -> Tensor:
        """The vectors of some words. (batch, …) -> (batch, …, size)"""
        if self.uniform_start:
            return nn.functional.embedding(numbers, self.table)
        return nn.functional.embedding(numbers, self.weight, padding_idx=PAD)


class OneHot(Embedding):
    """Words as unit vectors, `<PAD>` as the zero vector; further dimensions, if any, are zero.

    aitken2021 pads the units so that a positional encoding has room of its own.
    """

    def __init__(self, words: int, size: int | None = None, uniform_start: bool = False):
        nn.Module.__init__(self)
        self.size = size or words
        if self.size < words:
            raise RegardError(
                f"model.one_hot_size={size} does not fit: the vocabulary has {words} words."
                f" Give {words} or more, or leave it out."
            )
        units = torch.eye(words, self.size).index_fill_(0, torch.tensor(PAD), 0.0)
        if uniform_start:
            units[SOS] = 0.0
            units[SOS, :words] = 1 / words
        self.register_buffer("units", units, persistent=False)

    @property
    def table(self) -> Tensor:
        """(vocab, size)"""
        assert isinstance(self.units, Tensor)
        return self.units

    def forward(self, numbers: Tensor) -> Inputs:
        """(batch, time) -> the units with the numbers."""
        return Words(numbers, self.table)

    def look_up(self, numbers: Tensor) -> Tensor:
        """(batch, …) -> (batch, …, size)"""
        return nn.functional.embedding(numbers, self.table)
