"""How good a model is on a split: forced and free running."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.functional import pad

from regard.models.decoding import greedy
from regard.models.seq2seq import Memory, Seq2Seq
from regard.tasks.batch import Batch
from regard.tasks.task import Task
from regard.tasks.vocabulary import EOS, PAD
from regard.training.forcing import encode
from regard.training.losses import likelihood

PIECE = 256  # sequences that go through the model at once
# Words that free running may go on past the longest target, as in chapter36.
MARGIN = 5
LARGEST = 700.0  # a loss whose exponential is still a number
UNBOUNDED = ("loss", "perplexity", "bleu")  # the metrics of a run that are not shares


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode; then each of its parts is in the mode that it was in."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[torch.device]:
    """The model in evaluation mode, without gradients; yields its device."""
    with without_dropout(model), torch.no_grad():
        yield next(model.parameters(), torch.empty(0)).device


def evaluate(
    model: Seq2Seq, task: Task, batch: Batch, size: int = PIECE, forced_alignment: bool = False
) -> dict[str, float]:
    """Metrics over a held-out batch.

    `accuracy` is the share of sequences that free running gets right as the task defines it;
    `token_accuracy` the share of their words; `forced_token_accuracy` the same when the teacher
    feeds the decoder; `loss` the forced likelihood, `perplexity` its exponential. The gap between
    the two token accuracies is the exposure bias. Whole sequences cannot show it: greedy decoding
    gets one right exactly when every forced step is right. With `forced_alignment`, attention
    is forced to its targets.
    """
    totals = dict.fromkeys(("accuracy", "token_accuracy", "forced_token_accuracy", "loss"), 0.0)
    words = 0
    with evaluating(model) as device:
        for piece in batch.pieces(size):
            piece = piece.to(device)
            mask, count = piece.target_mask, int(piece.target_lengths.sum())
            memory = encode(model, piece, forced_alignment)
            output = model.decode(memory, piece.inputs)
            forced = output.logits.argmax(dim=2)
            free = run_freely(model, memory, piece, task.ends)
            missing = piece.target.shape[1] - free.shape[1]
            same = pad(free, (0, max(0, missing)), value=PAD)[:, : mask.shape[1]] == piece.target
            totals["loss"] += float(likelihood(output.logits, piece.target, mask)) * count
            totals["token_accuracy"] += float((same & mask).sum())
            totals["accuracy"] += float(task.correct(free.cpu(), piece.to("cpu")).sum())
            totals["forced_token_accuracy"] += float(((forced == piece.target) & mask).sum())
            words += count
    for name in totals:
        totals[name] /= len(batch) if name == "accuracy" else words
    return {**totals, "perplexity": math.exp(min(totals["loss"], LARGEST))}


def predict(model: Seq2Seq, batch: Batch, ends: bool = True) -> torch.Tensor:
    """What the model says when it runs freely. -> (batch, at most target + margin)

    Where targets do not end in `<EOS>` (`ends=False`), it says as many words as the longest has.
    """
    return run_freely(model, model.encode(batch.source, batch.source_lengths), batch, ends)


def run_freely(model: Seq2Seq, memory: Memory, batch: Batch, ends: bool) -> torch.Tensor:
    """As `predict`, from what the encoder remembers."""
    width = batch.target.shape[1]
    return (
        greedy(model, memory, width + MARGIN, EOS) if ends else greedy(model, memory, width, None)
    )
