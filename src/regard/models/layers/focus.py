"""How the context enters a recurrent step that comes after attention."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Focus(nn.Module, ABC):
    """From a context and a word's vector to the input of the recurrent step."""

    size: int  # of what comes out

    @abstractmethod
    def forward(self, context: Tensor, word: Tensor) -> Tensor:
        """(batch, context), (batch, word) -> (batch, size)"""


class Beside(Focus):
    """[word; context], as in Bahdanau et al. 2015."""

    def __init__(self, context: int, word: int):
        super().__init__()
        self.size = context + word

    def forward(self, context: Tensor, word: Tensor) -> Tensor:
        """See the class."""
        return torch.cat([word, context], dim=1)


class FullFocus(Focus):
    """context ∘ max(0, W [context; word] + b): nothing enters but what was attended to.

    baan2019's program, after Hupkes et al. 2019.
    """

    def __init__(self, context: int, word: int):
        super().__init__()
        self.size = context
        self.weigh = nn.Linear(context + word, context)

    def forward(self, context: Tensor, word: Tensor) -> Tensor:
        """See the class."""
        return context * torch.relu(self.weigh(torch.cat([context, word], dim=1)))


FOCUSES: dict[str, type[Focus]] = {"concatenate": Beside, "full": FullFocus}
