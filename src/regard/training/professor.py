"""Professor forcing (Lamb et al. 2016): free running should look like being taught.

A discriminator sees decoder trajectories, forced and free, and tells them apart; the model is
trained, besides its likelihood, to make the free ones pass for forced.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from regard.models.layers.cells import TorchGRU
from regard.models.seq2seq import Output
from regard.tasks.batch import Batch, reverse

# The discriminator learns only while it is not near perfect, and teaches only once it is
# better than chance by some way (Lamb et al. 2016, section 2.3).
LEARNS_BELOW, TEACHES_ABOVE = 0.99, 0.75


class Discriminator(nn.Module):
    """A bidirectional GRU over hidden states and output probabilities, then a small network."""

    def __init__(self, hidden: int, words: int, size: int = 64):
        super().__init__()
        self.ahead, self.back = TorchGRU(hidden + words, size), TorchGRU(hidden + words, size)
        self.judge = nn.Sequential(nn.Linear(2 * size, size), nn.ReLU(), nn.Linear(size, 1))

    def forward(self, output: Output, batch: Batch) -> Tensor:
        """How taught each trajectory looks, as logits. -> (batch,)"""
        seen = torch.cat([output.decoder_states, output.logits.softmax(dim=2)], dim=2)
        lengths = batch.target_lengths
        _, ahead = self.ahead(seen, lengths)
        _, back = self.back(reverse(seen, lengths), lengths)
        return self.judge(torch.cat([ahead[0], back[0]], dim=1))[:, 0]  # type: ignore[no-any-return]


def discriminator_loss(taught: Tensor, free: Tensor) -> tuple[Tensor, float]:
    """The loss of telling them apart, and the accuracy of doing so. Logits (batch,) each."""
    loss = bce(taught, torch.ones_like(taught)) + bce(free, torch.zeros_like(free))
    right = (taught > 0).float().mean() + (free <= 0).float().mean()
    return loss, float(right) / 2


def generator_loss(free: Tensor) -> Tensor:
    """The loss of free-running trajectories that do not pass for taught ones."""
    return bce(free, torch.ones_like(free))
