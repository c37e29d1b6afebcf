"""AED as one writes it from the paper's equations, step by step under autograd: the yardstick.

An ordinary good loop: inputs are projected for all steps at once where they are known, the rest
is a Python loop over time, the decoder is fed its own arg-max, and l2 stands in the loss.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from benchmarks.plain_loop import PlainLoop, make_trainer, rename
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import PAD
from regard.training import Trainer


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

    def __init__(self, words: int, l2: float, hidden: int = 128):
        super().__init__()
        self.words, self.l2 = words, l2
        self.encoder, self.decoder = PlainGRU(words, hidden), PlainGRU(words, hidden)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.readout = nn.Linear(2 * hidden, words, bias=False)

    def units(self, numbers: Tensor) -> Tensor:
        """Words as unit vectors, `<PAD>` as the zero vector. (…) -> (…, words)"""
        return one_hot(numbers, self.words).float() * (numbers != PAD)[..., None]

    def encode(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All states (batch, source, hidden), and the state at each row's end (batch, hidden)."""
        h, states = self.start.expand(len(source), -1), []
        projected = self.encoder.input(self.units(source)).unbind(1)
        for x, here in zip(projected, mask.unbind(1), strict=True):
            h = torch.where(here[:, None], self.encoder(x, h), h)
            states.append(h)
        return torch.stack(states, dim=1), h

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Cross-entropy on its own predictions, and l2."""
        mask, target = batch.source_mask, batch.target
        memory, h = self.encode(batch.source, mask)
        x = memory.new_full((len(memory), self.words), 1 / self.words)  # uniform over all words
        logits = []
        for _ in range(target.shape[1]):
            h = self.decoder(self.decoder.input(x), h)
            scores = torch.bmm(memory, h[:, :, None])[:, :, 0].masked_fill(~mask, -torch.inf)
            context = torch.bmm(scores.softmax(dim=1)[:, None], memory)[:, 0]
            logits.append(self.readout(torch.cat([h, context], dim=1)))
            x = self.units(logits[-1].argmax(dim=1))
        every = torch.stack(logits, dim=1).flatten(0, 1)
        fit = cross_entropy(every, target.flatten(), ignore_index=PAD)
        return fit, self.l2 * torch.stack([(p * p).sum() for p in self.parameters()]).sum()


def own_predictions(seed: int = 0) -> tuple[Trainer, PlainLoop]:
    """AED on one-to-one at the paper's sizes, and the plain loop on the same batches."""
    settings: dict[str, Any] = {"forcing": "never", "decay": "constant", "learning_rate": 2e-3}
    ours = make_trainer("one-to-one", "aed", seed, **settings)
    weights = ours.model.state_dict()
    own = {"start": weights["encoder.starts.0"][0], "readout.weight": weights["readout.weight"]}
    for plain, theirs in (("encoder", "encoder.ahead.0"), ("decoder", "decoder.0")):
        own |= rename(weights, {f"{plain}.input.weight": f"{theirs}.weight_ih"})
        own |= rename(weights, {f"{plain}.input.bias": f"{theirs}.bias_ih"})
        split = torch.tensor_split(weights[f"{theirs}.weight_hh"], [2 * len(own["start"])])
        own[f"{plain}.gates.weight"], own[f"{plain}.candidate.weight"] = split
    model = PlainAttention(len(ours.task.target_vocabulary), ours.config.l2)
    return ours, PlainLoop.beside(ours, model, own)
