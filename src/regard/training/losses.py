"""What a model is punished for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.tasks.vocabulary import PAD


def likelihood(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Mean negative log-likelihood of the target words that are there.

    logits (batch, target, vocab), targets and mask (batch, target) -> ()
    """
    words = targets.masked_fill(~mask, PAD)
    return cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=PAD)


@torch.no_grad()
def l2_gradient(parameters: Sequence[Tensor], gradients: Sequence[Tensor], weight: float) -> None:
    """Add the gradient of weight · Σθ², which is 2 · weight · θ, in place (aitken2021's l2 term).

    It goes into the gradient before clipping, exactly as if the term stood in the loss.
    """
    torch._foreach_add_(list(gradients), list(parameters), alpha=2 * weight)
