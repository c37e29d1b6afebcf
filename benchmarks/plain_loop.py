"""Training as one writes it with torch.nn, beside a trainer of ours: what all yardsticks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from regard.runs import assemble
from regard.tasks.batch import Batch
from regard.training import Trainer


class PlainLoop:
    """A plain model, Adam, and one update at a time.

    The model takes a batch and gives its losses, of which the first is the likelihood. All go
    back together, or one after the other where `together` is false.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Callable[[int], Batch],
        learning_rate: float,
        clip: float | None = None,
        together: bool = True,
        **adam: Any,
    ):
        self.model, self.batches, self.clip, self.together = model, batches, clip, together
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, **adam)
        self.update = 0

    @classmethod
    def beside(
        cls, ours: Trainer, model: nn.Module, weights: dict[str, Tensor], **more: Any
    ) -> Any:
        """With the weights of ours, on its batches, with its learning rate and clipping."""
        model.load_state_dict(weights)
        size, rates = ours.config.batch, (ours.config.learning_rate, ours.config.clip)
        batches = lambda update: ours.task.train_batch(update, size, ours.seed)  # noqa: E731
        return cls(model, batches, *rates, **more)

    def step(self) -> float:
        """One update. Returns the first of its losses."""
        losses = self.model(self.batches(self.update))
        self.optimizer.zero_grad()
        self.backward(losses)
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.update += 1
        return float(losses[0].detach())

    def backward(self, losses: tuple[Tensor, ...]) -> None:
        """Once through the graph with the sum, or once for each loss."""
        first, *others = (sum(losses[1:], losses[0]),) if self.together else losses[::-1]
        for loss in others:
            loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        first.backward()  # type: ignore[no-untyped-call]


def make_trainer(task: str, model: str, seed: int = 0, **settings: Any) -> Trainer:
    """A trainer of ours, as the command line would make it."""
    config = assemble(task, model, seed, settings)
    made = config.make_task()
    return Trainer(config.make_model(made), made, config.training, seed)


def rename(weights: dict[str, Tensor], names: dict[str, str]) -> dict[str, Tensor]:
    """Tensors of ours under a plain model's names, both given by how they begin."""
    return {
        plain + name.removeprefix(own): weight
        for plain, own in names.items()
        for name, weight in weights.items()
        if name.startswith(own)
    }
