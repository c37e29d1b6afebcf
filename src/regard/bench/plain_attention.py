"""AED as one writes it from the paper's equations, step by step under autograd: the yardstick.

An ordinary good loop: inputs are projected for all steps at once where they are known, the rest
is a Python loop over time, the decoder is fed its own arg-max, and l2 stands in the loss.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from regard.tasks.batch import Batch
from regard.tasks.vocabulary import PAD


class PlainGRU(nn.Module):
    """r, u = σ(W x + U h + b); c = tanh(W x + U (r∘h) + b); h' = u∘h + (1−u)∘c."""

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.input = nn.Linear(inputs, 3 * hidden)
        self.gates = nn.Linear(hidden, 2 * hidden, bias=False)
        self.candidate = nn.Linear(hidden, hidden, bias=False)

    def forward(self, projected: Tensor, h: Tensor) -> Tensor:
        """One step from a projected input. (batch, 3·hidden), (batch, hidden) -> (batch, hidden)"""
        hidden = h.shape[1]
        gates = torch.sigmoid(projected[:, : 2 * hidden] + self.gates(h))
        reset, update = gates.chunk(2, dim=1)
        candidate = torch.tanh(projected[:, 2 * hidden :] + self.candidate(reset * h))
        return update * h + (1 - update) * candidate


class PlainAttention(nn.Module):
    """Encoder, decoder with dot attention, and a readout of state and context."""

    def __init__(self, words: int, hidden: int = 128):
        super().__init__()
        self.words = words
        self.encoder, self.decoder = PlainGRU(words, hidden), PlainGRU(words, hidden)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.readout = nn.Linear(2 * hidden, words, bias=False)

    def units(self, numbers: Tensor) -> Tensor:
        """Words as unit vectors, `<PAD>` as the zero vector. (…) -> (…, words)"""
        return one_hot(numbers, self.words).float() * (numbers != PAD)[..., None]

    def encode(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All states (batch, source, hidden), and the state at each row's end (batch, hidden)."""
        h, states = self.start.expand(len(source), -1), []
        for x, there in zip(
            self.encoder.input(self.units(source)).unbind(1), mask.unbind(1), strict=True
        ):
            h = torch.where(there[:, None], self.encoder(x, h), h)
            states.append(h)
        return torch.stack(states, dim=1), h

    def forward(self, source: Tensor, mask: Tensor, steps: int) -> Tensor:
        """The decoder on its own predictions. -> logits (batch, steps, words)"""
        memory, h = self.encode(source, mask)
        x = memory.new_full((len(source), self.words), 1 / self.words)  # uniform over all words
        logits = []
        for _ in range(steps):
            h = self.decoder(self.decoder.input(x), h)
            scores = torch.bmm(memory, h[:, :, None])[:, :, 0].masked_fill(~mask, -torch.inf)
            context = torch.bmm(scores.softmax(dim=1)[:, None], memory)[:, 0]
            logits.append(self.readout(torch.cat([h, context], dim=1)))
            x = self.units(logits[-1].argmax(dim=1))
        return torch.stack(logits, dim=1)


class PlainAttentionTraining:
    """Model, optimiser, and one update at a time."""

    def __init__(self, words: int, l2: float, learning_rate: float, clip: float):
        self.model = PlainAttention(words)
        self.l2, self.clip = l2, clip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=learning_rate)

    def step(self, batch: Batch) -> float:
        """One update. Returns its cross-entropy."""
        logits = self.model(batch.source, batch.source_mask, batch.target.shape[1])
        fit = cross_entropy(logits.flatten(0, 1), batch.target.flatten(), ignore_index=PAD)
        weights = torch.stack([(p * p).sum() for p in self.model.parameters()]).sum()
        self.optimizer.zero_grad()
        (fit + self.l2 * weights).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return float(fit.detach())

    def take(self, weights: dict[str, Tensor]) -> None:
        """The weights of one of our models of the same kind."""
        hidden = len(self.model.start)
        own: dict[str, Tensor] = {
            "start": weights["encoder.starts.0"][0],
            "readout.weight": weights["readout.weight"],
        }
        for ours, theirs in (("encoder", "encoder.ahead.0"), ("decoder", "decoder.0")):
            gates, candidate = torch.tensor_split(weights[f"{theirs}.weight_hh"], [2 * hidden])
            own[f"{ours}.input.weight"] = weights[f"{theirs}.weight_ih"]
            own[f"{ours}.input.bias"] = weights[f"{theirs}.bias_ih"]
            own[f"{ours}.gates.weight"], own[f"{ours}.candidate.weight"] = gates, candidate
        self.model.load_state_dict(own)
