"""A batch cut up: among processes, and one piece after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from regard.errors import RegardError
from regard.tasks.batch import Batch
from regard.training.losses import Counts
from regard.training.ranks import Ranks

# What mixes the rows of a batch, or draws random numbers that know nothing of the whole one.
ENTANGLED = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm, nn.RNNBase)


@dataclass(frozen=True)
class Piece:
    """Some rows of a batch of `rows`, from row `start` on, with the whole batch's padding."""

    batch: Batch
    start: int
    rows: int
    whole: Counts | None  # of what the piece is a part; none: it is all of it

    @property
    def share(self) -> float:
        """The part of the sequences that are here."""
        return len(self.batch) / self.rows


def cut(batch: Batch, ranks: Ranks, pieces: int) -> Iterator[Piece]:
    """The pieces that are this process's, in order: the rows of the batch in even parts."""
    parts, rows = ranks.size * pieces, len(batch)
    if parts == 1:
        yield Piece(batch, 0, rows, None)
        return
    if rows < parts:
        raise RegardError(
            f"A batch has {rows} rows, too few for training.processes={ranks.size} times"
            f" training.accumulate={pieces}. Lower them, or raise training.batch."
        )
    whole = Counts.of(batch)
    for number in range(ranks.rank * pieces, (ranks.rank + 1) * pieces):
        start, end = number * rows // parts, (number + 1) * rows // parts
        yield Piece(batch.part(start, end), start, rows, whole)


def require_separable(model: nn.Module) -> None:
    """Refuse a model whose rows know of each other, or have random numbers by place in a piece."""
    for name, module in model.named_modules():
        idle = getattr(module, "p", getattr(module, "dropout", 1)) == 0
        if isinstance(module, ENTANGLED) and not idle:
            raise RegardError(
                f"The model's part {name} ({type(module).__name__}) would give other numbers for a"
                " piece of a batch than for all of it, so training.processes and"
                " training.accumulate cannot be used. Draw with"
                " regard.models.layers.dropping.drop_out, or leave them at 1."
            )
