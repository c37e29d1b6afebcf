"""What a model is punished for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.layers.attention import Site
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import PAD

Average = Literal["words", "sequences"]


def likelihood(logits: Tensor, targets: Tensor, mask: Tensor, average: Average = "words") -> Tensor:
    """Negative log-likelihood of the target words inside of the mask.

    The mean over words, or over sequences of their sums. logits (batch, target, vocab), targets
    and mask (batch, target) -> ()
    """
    words = targets.masked_fill(~mask, PAD).flatten()
    if average == "words":
        return cross_entropy(logits.flatten(0, 1), words, ignore_index=PAD)
    total = cross_entropy(logits.flatten(0, 1), words, ignore_index=PAD, reduction="sum")
    return total / len(targets)


def guidance(sites: Mapping[str, Site], batch: Batch, average: Average = "words") -> Tensor:
    """Attentive guidance: −log of the attention that lies on each step's target (baan2019, 2.3).

    The mean over all heads of all attentions from target to source; over steps as `likelihood`
    does it. Steps without a target (-1) are left out. -> ()
    """
    assert batch.alignment is not None
    allowed = batch.source_mask[:, None, None]
    targets = batch.alignment.masked_fill(~batch.target_mask, -1)  # (batch, target)
    losses = []
    for site in crossing(sites).values():
        scores = site.scores.masked_fill(~allowed, float("-inf"))  # (batch, head, target, source)
        every = targets[:, None].expand(scores.shape[:3]).flatten()
        total = cross_entropy(scores.flatten(0, 2), every, ignore_index=-1, reduction="sum")
        count = len(targets) if average == "sequences" else int((targets >= 0).sum().clamp(min=1))
        losses.append(total / (count * scores.shape[1]))
    return torch.stack(losses).mean()


def crossing(sites: Mapping[str, Site]) -> dict[str, Site]:
    """The attentions that look from the target to the source."""
    return {name: site for name, site in sites.items() if site.crosses}


@torch.no_grad()
def l2_gradient(parameters: Sequence[Tensor], gradients: Sequence[Tensor], weight: float) -> None:
    """Add the gradient of weight · Σθ², which is 2 · weight · θ, in place (aitken2021's l2 term).

    It goes into the gradient before clipping, exactly as if the term stood in the loss.
    """
    torch._foreach_add_(list(gradients), list(parameters), alpha=2 * weight)
