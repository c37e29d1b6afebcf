"""A sequence-to-sequence model as a newcomer would write it: the yardstick for speed.

The decoder is called step by step, batches are built letter by letter, nothing is fused.
"""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

LETTERS, PAD, SOS, EOS = 29, 0, 1, 2


class Plain(nn.Module):
    """Embeddings, two LSTMs, a linear layer."""

    def __init__(self, hidden: int = 128, embedding: int = 32):
        super().__init__()
        self.source_embedding = nn.Embedding(LETTERS, embedding, padding_idx=PAD)
        self.target_embedding = nn.Embedding(LETTERS, embedding, padding_idx=PAD)
        self.encoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.decoder = nn.LSTM(embedding, hidden, batch_first=True)
        self.output = nn.Linear(hidden, LETTERS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forced, one decoder call per step. target starts with <SOS>."""
        _, state = self.encoder(self.source_embedding(source))
        steps = []
        for t in range(target.shape[1] - 1):
            output, state = self.decoder(self.target_embedding(target[:, t : t + 1]), state)
            steps.append(self.output(output[:, 0]))
        return torch.stack(steps, dim=1)


class PlainTraining:
    """Model, optimiser, and one update at a time."""

    def __init__(self, seed: int = 0, batch: int = 64):
        torch.manual_seed(seed)
        self.random = random.Random(seed)
        self.batch = batch
        self.model = Plain()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)

    def make_batch(self) -> tuple[Tensor, Tensor]:
        """Strings of 5 to 10 letters and their reversals, padded."""
        sources, targets = [], []
        for _ in range(self.batch):
            letters = [self.random.randint(3, 28) for _ in range(self.random.randint(5, 10))]
            sources.append([*letters, EOS])
            targets.append([SOS, *letters[::-1], EOS])
        width = max(map(len, sources))
        return (
            torch.tensor([row + [PAD] * (width - len(row)) for row in sources]),
            torch.tensor([row + [PAD] * (width + 1 - len(row)) for row in targets]),
        )

    def step(self) -> float:
        """One update."""
        source, target = self.make_batch()
        logits = self.model(source, target)
        loss = nn.functional.cross_entropy(
            logits.reshape(-1, LETTERS), target[:, 1:].reshape(-1), ignore_index=PAD
        )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return float(loss.detach())
