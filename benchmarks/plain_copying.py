"""snell2021's copying as one writes it from the paper, step by step under autograd: the yardstick.

Two LSTM cells called word by word, and attention, context and output at every decoder step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.plain_loop import PlainLoop, make_trainer, rename
from regard.tasks.batch import Batch
from regard.training import Trainer

NAMES = {
    "embedding.": "source_embedding.",
    "encoder.": "encoder.ahead.0.",
    "decoder.": "decoder.0.",
    "query.": "attention.query.",
    "context.": "readout.context.",
    "hidden.": "readout.hidden.",
    "output.weight": "readout.weight",
    "output.bias": "readout.bias",
}


class PlainCopying(nn.Module):
    """Shared embedding, encoder, decoder, a_tl = (W s_t + b)·h_l, p_t = N([s_t; c_t])."""

    def __init__(self, words: int, hidden: int = 256, embedding: int = 256):
        super().__init__()
        self.embedding = nn.Embedding(words, embedding)
        self.encoder = nn.LSTMCell(embedding, hidden)
        self.decoder = nn.LSTMCell(embedding, hidden)
        self.query = nn.Linear(hidden, hidden)
        self.context = nn.Linear(hidden, hidden)
        self.hidden = nn.Linear(2 * hidden, hidden)
        self.output = nn.Linear(hidden, words)

    def forward(self, batch: Batch) -> tuple[Tensor]:
        """The loss, teacher forced."""
        zeros = self.query.weight.new_zeros(len(batch), self.encoder.hidden_size)
        state, memory, logits = (zeros, zeros), [], []
        for words in batch.source.unbind(1):
            state = self.encoder(self.embedding(words), state)
            memory.append(state[0])
        h = torch.stack(memory, dim=1)  # (batch, source, hidden)
        for words in batch.inputs.unbind(1):
            state = self.decoder(self.embedding(words), state)
            s = state[0]
            weights = torch.bmm(h, self.query(s)[:, :, None]).softmax(dim=1)  # eq. 1
            c = self.context((weights * h).sum(dim=1))  # eq. 2
            logits.append(self.output(torch.tanh(self.hidden(torch.cat([s, c], dim=1)))))
        return (cross_entropy(torch.stack(logits, dim=1).flatten(0, 1), batch.target.flatten()),)


def copying(seed: int = 0, **settings: Any) -> tuple[Trainer, PlainLoop]:
    """The model at the paper's sizes, and the plain one with its weights on the same batches."""
    settings = {"vocabulary": 40, "device": "cpu", **settings}
    ours = make_trainer("copying", "snell-copying", seed, **settings)
    config: Any = ours.model.config
    model = PlainCopying(len(ours.task.target_vocabulary), config.hidden, config.embedding)
    return ours, PlainLoop.beside(ours, model, rename(ours.model.state_dict(), NAMES))
