"""What a model is punished for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.layers.attention import Site
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import PAD

Average = Literal["words", "sequences"]


@dataclass(frozen=True)
class Counts:
    """What a batch's losses are means over, so that the losses of its pieces add up to its own."""

    sequences: int
    words: int
    aligned: int  # words that have an attention target

    @classmethod
    def of(cls, batch: Batch) -> Counts:
        """How many there are in a batch."""
        inside = batch.target_mask
        words = int((inside & (batch.target != PAD)).sum())
        aligned = batch.alignment is not None and int((inside & (batch.alignment >= 0)).sum())
        return cls(len(batch), words, int(aligned))


def likelihood(
    logits: Tensor,
    targets: Tensor,
    mask: Tensor,
    average: Average = "words",
    whole: Counts | None = None,
) -> Tensor:
    """Negative log-likelihood of the target words inside of the mask.

    The mean over words, or over sequences of their sums; of a piece of a `whole` batch, its part
    of that batch's mean. logits (batch, target, vocab), targets and mask (batch, target) -> ()
    """
    words = targets.masked_fill(~mask, PAD).flatten()
    if average == "words" and whole is None:
        return cross_entropy(logits.flatten(0, 1), words, ignore_index=PAD)
    total = cross_entropy(logits.flatten(0, 1), words, ignore_index=PAD, reduction="sum")
    if whole is None:
        return total / len(targets)
    return total / (whole.words if average == "words" else whole.sequences)


def guidance(
    sites: Mapping[str, Site],
    batch: Batch,
    average: Average = "words",
    whole: Counts | None = None,
) -> Tensor:
    """Attentive guidance: −log of the attention that lies on each step's target (baan2019, 2.3).

    The mean over all heads of all attentions from target to source; over steps as `likelihood`
    does it. Steps without a target (-1) are left out. -> ()
    """
    assert batch.alignment is not None
    allowed = batch.source_mask[:, None, None]
    targets = batch.alignment.masked_fill(~batch.target_mask, -1)  # (batch, target)
    losses, whole = [], whole or Counts.of(batch)
    for site in crossing(sites).values():
        scores = site.scores.masked_fill(~allowed, float("-inf"))  # (batch, head, target, source)
        every = targets[:, None].expand(scores.shape[:3]).flatten()
        total = cross_entropy(scores.flatten(0, 2), every, ignore_index=-1, reduction="sum")
        count = whole.sequences if average == "sequences" else max(1, whole.aligned)
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
