"""The guided model of baan2019 as one writes it with torch.nn, and its training: the yardstick.

One example at a time, made into tensors when its turn comes; attention, full focus and the
decoder's GRU are called step by step; each of the two losses has its own way back.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from regard.tasks.batch import Batch
from regard.tasks.vocabulary import SOS

Example = tuple[list[int], list[int], list[int]]  # source, target, attention targets


def examples(batch: Batch) -> list[Example]:
    """The rows of a batch as lists of numbers, without padding."""
    assert batch.alignment is not None
    columns = (batch.source, batch.target, batch.alignment)
    sizes = zip(batch.source_lengths.tolist(), batch.target_lengths.tolist(), strict=True)
    return [
        (source[:words], target[:steps], alignment[:steps])
        for source, target, alignment, (words, steps) in zip(
            *(column.tolist() for column in columns), sizes, strict=True
        )
    ]


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

    def forward(self, source: Tensor, steps: int) -> tuple[list[Tensor], list[Tensor]]:
        """Fed its own choices. -> per step, log p of words (1, vocab) and attention (1, source)"""
        memory, state = self.encoder(self.source_embedding(source))
        word = torch.tensor([[SOS]])
        words, attention = [], []
        for _ in range(steps):
            asking = state[-1][:, None].expand(-1, memory.shape[1], -1)
            bent = torch.relu(self.mlp(torch.cat([memory, asking], dim=2)))
            weights = torch.softmax(self.score(bent)[:, :, 0], dim=1)
            context = torch.bmm(weights[:, None], memory)  # (1, 1, hidden)
            both = torch.cat([context, self.target_embedding(word)], dim=2)
            x = context * torch.relu(self.focus(both))
            output, state = self.decoder(x, state)
            words.append(torch.log_softmax(self.output(output[:, 0]), dim=1))
            attention.append(weights)
            word = words[-1].detach().argmax(dim=1, keepdim=True)
        return words, attention


class PlainGuidedTraining:
    """Model, optimiser, and one update at a time."""

    def __init__(
        self,
        source_words: int,
        target_words: int,
        hidden: int = 512,
        learning_rate: float = 1e-3,
        clip: float = 5.0,
        passes: int = 2,
    ):
        self.clip, self.passes = clip, passes
        self.model = PlainGuided(source_words, target_words, hidden)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=learning_rate, foreach=False, fused=False
        )

    def losses(self, example: Example) -> tuple[Tensor, Tensor]:
        """Σ −log p of the words, and Σ −log of the attention on its targets."""
        source, target, alignment = (torch.tensor([numbers]) for numbers in example)
        words, attention = self.model(source, target.shape[1])
        likelihood, guidance = torch.zeros(()), torch.zeros(())
        for t, (found, weights) in enumerate(zip(words, attention, strict=True)):
            likelihood = likelihood + nll_loss(found, target[:, t])
            guidance = guidance + nll_loss(torch.log(weights), alignment[:, t])
        return likelihood, guidance

    def step(self, example: Example) -> float:
        """One update. Returns the first of its losses."""
        likelihood, guidance = self.losses(example)
        self.optimizer.zero_grad()
        self.backward(likelihood, guidance)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return float(likelihood.detach())

    def backward(self, likelihood: Tensor, guidance: Tensor) -> None:
        """Twice through the graph, or once with the sum."""
        if self.passes == 1:
            (likelihood + guidance).backward()  # type: ignore[no-untyped-call]
            return
        likelihood.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        guidance.backward()  # type: ignore[no-untyped-call]

    def take(self, weights: dict[str, Tensor]) -> None:
        """The weights of one of our models of the same kind."""
        self.model.load_state_dict(renamed(weights))


def renamed(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of our model's parameters under the names of `PlainGuided`, in its shapes."""
    query, key = ours["attention.query.weight"], ours["attention.key.weight"]
    found = {
        "source_embedding.weight": ours["source_embedding.weight"],
        "target_embedding.weight": ours["target_embedding.weight"],
        "mlp.weight": torch.cat([key, query], dim=1),  # [h_enc; h_dec]
        "mlp.bias": ours["attention.query.bias"],
        "score.weight": ours["attention.v"],
        "score.bias": ours["attention.bias"],
        "focus.weight": ours["focus.weigh.weight"],
        "focus.bias": ours["focus.weigh.bias"],
        "output.weight": ours["readout.weight"],
        "output.bias": ours["readout.bias"],
    }
    for here, there in (("encoder", "encoder.ahead.0"), ("decoder", "decoder.0")):
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            found[f"{here}.{kind}_l0"] = ours[f"{there}.{kind}"]
    return found
