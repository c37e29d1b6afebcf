"""A sequence-to-sequence model as a newcomer would write it: the yardstick of `training`.

The decoder is called step by step, batches are built letter by letter, nothing is fused.
"""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

from benchmarks.plain_loop import PlainLoop
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import EOS, PAD

LETTERS = 29


class PlainReversal(nn.Module):
    """Embeddings, two LSTMs, a linear layer."""

    def __init__(self, hidden: int = 128, embedding: int = 32):
        super().__init__()
        self.source_embedding = nn.Embedding(LETTERS, embedding, padding_idx=PAD)
        self.target_embedding = nn.Embedding(LETTERS, embedding, padding_idx=PAD)
        self.encoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.decoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, LETTERS)

    def forward(self, batch: Batch) -> tuple[Tensor]:
        """The loss, teacher forced, with one call of the decoder per step."""
        _, state = self.encoder(self.source_embedding(batch.source))
        steps = []
        for words in batch.inputs.unbind(1):
            output, state = self.decoder(self.target_embedding(words[:, None]), state)
            steps.append(self.readout(output[:, 0]))
        logits = torch.stack(steps, dim=1)
        target = batch.target.reshape(-1)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target, ignore_index=PAD)
        return (loss,)


def plain_reversal(seed: int = 0, batch: int = 64) -> PlainLoop:
    """Its training on strings of 5 to 10 letters."""
    torch.manual_seed(seed)
    rng = random.Random(seed)

    def make_batch(_: int) -> Batch:
        sources, targets = [], []
        for _ in range(batch):
            letters = [rng.randint(3, 28) for _ in range(rng.randint(5, 10))]
            sources.append([*letters, EOS])
            targets.append([*letters[::-1], EOS])
        lengths = torch.tensor(list(map(len, sources)))
        return Batch(pad(sources), lengths, pad(targets), lengths)

    return PlainLoop(PlainReversal(), make_batch, learning_rate=5e-3, clip=1.0)


def pad(rows: list[list[int]]) -> Tensor:
    """Rows of numbers, padded to the longest. (row, longest)"""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
