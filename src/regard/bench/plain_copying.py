"""snell2021's copying as one writes it from the paper, step by step under autograd: the yardstick.

Two LSTM cells called word by word, and attention, context and output at every decoder step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.runs import assemble
from regard.tasks.batch import Batch
from regard.training import Trainer


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

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """Teacher forced. (batch, source), (batch, target) -> logits (batch, target, words)"""
        zeros = torch.zeros(len(source), self.encoder.hidden_size)
        state, memory = (zeros, zeros), []
        for l in range(source.shape[1]):  # noqa: E741
            state = self.encoder(self.embedding(source[:, l]), state)
            memory.append(state[0])
        h, logits = torch.stack(memory, dim=1), []  # (batch, source, hidden)
        for t in range(inputs.shape[1]):
            state = self.decoder(self.embedding(inputs[:, t]), state)
            s = state[0]
            weights = torch.bmm(h, self.query(s)[:, :, None]).softmax(dim=1)  # eq. 1
            c = self.context((weights * h).sum(dim=1))  # eq. 2
            logits.append(self.output(torch.tanh(self.hidden(torch.cat([s, c], dim=1)))))
        return torch.stack(logits, dim=1)


class Copying:
    """The model at the paper's sizes, and the plain one with its weights on the same batches."""

    def __init__(self, seed: int = 0, **settings: Any):
        overrides = {"vocabulary": 40, "device": "cpu", **settings}
        config = assemble("copying", "snell-copying", seed, overrides)
        task, made = config.make_task(), config.model.model_dump()
        self.ours = Trainer(config.make_model(task), task, config.training, seed)
        words = len(task.target_vocabulary)
        self.plain = PlainCopying(words, made["hidden"], made["embedding"])
        self.plain.load_state_dict(renamed(self.ours.model.state_dict()))
        rate = config.training.learning_rate
        self.optimizer = torch.optim.Adam(self.plain.parameters(), lr=rate)
        self.update = 0

    def plain_step(self) -> float:
        """One update of the plain loop, on the batch that ours has at this update."""
        ours = self.ours
        batch: Batch = ours.task.train_batch(self.update, ours.config.batch, ours.seed)
        logits = self.plain(batch.source, batch.inputs)
        loss = cross_entropy(logits.flatten(0, 1), batch.target.flatten())
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.update += 1
        return float(loss.detach())


def renamed(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of our model's parameters under the names of `PlainCopying`."""
    names = {
        "embedding": "source_embedding",
        "encoder": "encoder.ahead.0",
        "decoder": "decoder.0",
        "query": "attention.query",
        "context": "readout.context",
        "hidden": "readout.hidden",
        "output": "readout",
    }
    kinds = ("weight", "bias", "weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return {
        f"{plain}.{kind}": ours[f"{name}.{kind}"]
        for plain, name in names.items()
        for kind in kinds
        if f"{name}.{kind}" in ours
    }
