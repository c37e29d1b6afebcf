"""What a model is punished for."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.tasks.vocabulary import PAD


def likelihood(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Mean negative log-likelihood of the target words that are there.

    logits (batch, target, vocab), targets and mask (batch, target) -> ()
    """
    words = targets.masked_fill(~mask, PAD)
    return cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=PAD)
