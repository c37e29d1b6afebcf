"""BLEU: how alike a model's translations and those of people are (Papineni et al. 2002)."""

from __future__ import annotations

from types import ModuleType
from typing import Protocol, runtime_checkable

from torch import Tensor

from regard.errors import RegardError
from regard.models.decoding import beam
from regard.models.seq2seq import Seq2Seq
from regard.tasks.batch import Batch
from regard.tasks.task import Task
from regard.training.evaluation import evaluating

PIECE = 64  # sentences that go through the beam at once


@runtime_checkable
class Spoken(Protocol):
    """A task whose targets are plain text."""

    def texts(self, numbers: Tensor) -> list[str]:
        """Rows of target words as text. (batch, any width) -> one text per row"""

    def references(self, name: str) -> list[str]:
        """The right texts of a split, row by row."""


def bleu(
    model: Seq2Seq, task: Task, split: str = "test", width: int = 5, n: int | None = None
) -> float:
    """BLEU, 0 to 100, of what a beam of `width` finds for (the first `n` of) a split's sources.

    It is computed by sacrebleu as it comes, on whole texts.
    """
    if not isinstance(task, Spoken):
        raise RegardError(
            "BLEU compares texts, and this task has none. Use a task such as translation."
        )
    sacrebleu, batch, right = scorer(), task.split(split)[:n], task.references(split)[:n]
    said = translations(model, task, batch, width)
    return float(sacrebleu.corpus_bleu(said, [right], force=True).score)


def translations(model: Seq2Seq, task: Spoken, batch: Batch, width: int = 5) -> list[str]:
    """What the model says to each source of a batch, as text.

    Sources of like length go through the beam together; a text may be half as long again.
    """
    said = [""] * len(batch)
    order = batch.source_lengths.argsort(stable=True)
    with evaluating(model) as device:
        for start in range(0, len(batch), PIECE):
            rows = order[start : start + PIECE]
            piece = batch[rows].to(device)
            memory = model.encode(piece.source, piece.source_lengths)
            limit = int(piece.source_lengths.max()) * 3 // 2 + 10
            words = beam(model, memory, limit, width)
            for row, text in zip(rows.tolist(), task.texts(words.cpu()), strict=True):
                said[row] = text
    return said


def scorer() -> ModuleType:
    """The package that scores, or an error that says how to get it."""
    try:
        import sacrebleu
    except ImportError:
        raise RegardError("BLEU needs sacrebleu. Install it: pip install 'regard[text]'.") from None
    package: ModuleType = sacrebleu
    return package
