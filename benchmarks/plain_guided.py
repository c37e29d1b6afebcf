"""The guided model of baan2019 as one writes it with torch.nn: the yardstick of `lookup`.

One example at a time; attention, full focus and the decoder's GRU are called step by step; each
of the two losses has its own way back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from benchmarks.plain_loop import PlainLoop, make_trainer, rename
from regard.tasks.batch import Batch
from regard.tasks.vocabulary import SOS
from regard.training import Trainer

NAMES = {
    "source_embedding.": "source_embedding.",
    "target_embedding.": "target_embedding.",
    "mlp.bias": "attention.query.bias",
    "score.weight": "attention.v",
    "score.bias": "attention.bias",
    "focus.": "focus.weigh.",
    "output.": "readout.",
}


class PlainGuided(nn.Module):
    """Encoder, attention before the step with an MLP, full focus, decoder, readout."""

    def __init__(
        self, source_words: int, target_words: int, hidden: int = 512, embedding: int = 16
    ):
        super().__init__()
        self.source_embedding = nn.Embedding(source_words, embedding)
        self.encoder = nn.GRU(embedding, hidden, batch_first=True)
        self.target_embedding = nn.Embedding(target_words, hidden)
        self.mlp = nn.Linear(2 * hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        self.focus = nn.Linear(2 * hidden, hidden)
        self.decoder = nn.GRU(hidden, hidden, batch_first=True)
        self.output = nn.Linear(hidden, target_words)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Σ −log p of one example's words, fed its own choices, and Σ −log α of the targets."""
        assert batch.alignment is not None
        memory, state = self.encoder(self.source_embedding(batch.source))
        word = torch.full_like(batch.target[:, :1], SOS)
        likelihood, guidance = memory.new_zeros(()), memory.new_zeros(())
        for goal, place in zip(batch.target.unbind(1), batch.alignment.unbind(1), strict=True):
            query = state[-1][:, None].expand(-1, memory.shape[1], -1)
            bent = torch.relu(self.mlp(torch.cat([memory, query], dim=2)))
            weights = torch.softmax(self.score(bent)[:, :, 0], dim=1)
            context = torch.bmm(weights[:, None], memory)  # (1, 1, hidden)
            both = torch.cat([context, self.target_embedding(word)], dim=2)
            output, state = self.decoder(context * torch.relu(self.focus(both)), state)
            words = torch.log_softmax(self.output(output[:, 0]), dim=1)
            likelihood = likelihood + nll_loss(words, goal)
            guidance = guidance + nll_loss(torch.log(weights), place)
            word = words.detach().argmax(dim=1, keepdim=True)
        return likelihood, guidance


def renamed(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of our model's parameters under the names of `PlainGuided`, in its shapes."""
    query, key = ours["attention.query.weight"], ours["attention.key.weight"]
    both = torch.cat([key, query], dim=1)  # [h_enc; h_dec]
    cells = rename(ours, {"encoder.": "encoder.ahead.0.", "decoder.": "decoder.0."})
    cells = {f"{name}_l0": weight for name, weight in cells.items()}
    return rename(ours, NAMES) | {"mlp.weight": both} | cells


def guided(hidden: int = 512, seed: int = 0) -> tuple[Trainer, PlainLoop, PlainLoop]:
    """The guided model, and plain loops beside it: one way back for each loss, and one for both."""
    settings: dict[str, Any] = {
        "guidance": 1,
        "hidden": hidden,
        "decoder_embedding": hidden,
        "device": "cpu",
    }
    ours = make_trainer("lookup", "baan", seed, **settings)
    words = len(ours.task.source_vocabulary), len(ours.task.target_vocabulary)
    weights = renamed(ours.model.state_dict())
    twice, once = (
        PlainLoop.beside(ours, PlainGuided(*words, hidden), weights, together=both, foreach=False)
        for both in (False, True)
    )
    return ours, twice, once
