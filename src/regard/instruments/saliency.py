"""`saliency`: how much each source word bears on each target word, by gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.display import Figure, Table
from regard.errors import RegardError
from regard.instruments import looked
from regard.instruments.agreement import agreement
from regard.instruments.instrument import Measured, Result, Runs, instruments, opened
from regard.instruments.positions import drawn
from regard.instruments.scores import Scores
from regard.models import Seq2Seq
from regard.models.inputs import Embedding
from regard.runs import Run
from regard.tasks import Batch
from regard.training.evaluation import evaluating

Method = Literal["gradient", "integrated"]
STEP = 1e-3  # of the finite differences that check the sign
CHECKED = 4  # sentences that they are taken on


@contextmanager
def scaled(model: Seq2Seq, by: Tensor) -> Iterator[None]:
    """Every source word's vector times a number of its own. by (batch, source)"""
    embedding: Any = getattr(model, "source_embedding", None)
    place = embedding.vectors if isinstance(embedding, Embedding) else embedding
    if place is None:
        raise RegardError("This model has no embedding of source words to take a gradient at.")
    hook = place.register_forward_hook(lambda _module, _args, out: out * by[:, :, None])
    try:
        yield
    finally:
        hook.remove()


def said(model: Seq2Seq, batch: Batch, by: Tensor) -> Tensor:
    """log p(y_t) with the source words' vectors scaled. -> (batch, target)"""
    with scaled(model, by):
        memory = model.encode(batch.source, batch.source_lengths)
    logits = model.decode(memory, batch.inputs).logits
    return logits.log_softmax(dim=2).gather(2, batch.target[:, :, None])[:, :, 0]


def gradient(model: Seq2Seq, batch: Batch, at: float = 1.0) -> Tensor:
    """Δ_{t,l} = ∂ log p(y_t) / ∂ w_l, where w_l multiplies the vector of source word l.

    At w = 1 this is the vector's gradient times the vector: positive where the word speaks for
    y_t. (snell2021, section 5.1, after Ebrahimi et al. 2018.) -> (batch, target, source)
    """
    by = torch.full(batch.source.shape, at, device=batch.source.device, requires_grad=True)
    found = []
    with torch.enable_grad():
        words = said(model, batch, by)
        for step in range(words.shape[1]):
            keep = step + 1 < words.shape[1]
            (slope,) = torch.autograd.grad(words[:, step].sum(), by, retain_graph=keep)
            found.append(slope)
    return torch.stack(found, dim=1) * looked.pairs(batch)


def integrated(model: Seq2Seq, batch: Batch, steps: int = 32) -> Tensor:
    """Integrated gradients (Sundararajan et al. 2017) from empty words to the words as they are.

    The mean of Δ along w from 0 to 1, by the midpoint rule; over source words they add up to
    log p(y_t) − log p(y_t | no words). -> (batch, target, source)
    """
    places = [(step + 0.5) / steps for step in range(steps)]
    return torch.stack([gradient(model, batch, place) for place in places]).mean(dim=0)


@dataclass(frozen=True)
class Salient(Measured):
    """Saliency of one model, its attention, and how well the numbers can be trusted."""

    scores: Scores  # Δ
    weights: Scores | None  # α, where the model has attention
    words: tuple[list[str], list[str]]  # source and target of the first sentence
    found: dict[str, float]

    def values(self) -> dict[str, float]:
        """Agreements with attention, and the checks."""
        return self.found


@dataclass(frozen=True)
class SaliencyResult(Result[Salient]):
    """Saliency over seeds; the figure shows the first's first sentence."""

    method: Method = "gradient"
    name = "saliency"

    def bounds(self, name: str) -> tuple[float, float] | None:
        """Agreements are shares; errors cannot be negative."""
        return (0.0, 1.0) if name.startswith("A(") else None

    def figure(self) -> Figure:
        """Δ, and α beside it, for one sentence."""
        seed = self.first
        panels = {"saliency Δ": seed.scores}
        if seed.weights is not None:
            panels["attention α"] = seed.weights
        how = "by gradient" if self.method == "gradient" else "by integrated gradients"
        return drawn(
            "saliency",
            f"How much each source word bears on the log-probability of each target word ({how}),"
            f" for one sentence. {self.n} seeds; the first is shown.",
            panels,
            seed.words,
        )

    def table(self) -> Table:
        """The numbers."""
        plain = super().table()
        return Table(f"Saliency ({self.method}), {self.n} seeds", plain.columns, plain.rows)

    def to_json(self) -> dict[str, Any]:
        """The estimates, and the method."""
        return {**super().to_json(), "method": self.method}


@instruments.register("saliency")
def saliency(
    runs: Runs,
    n: int = 200,
    checkpoint: str | int = "reported",
    split: str | None = None,
    method: Method = "gradient",
    steps: int = 32,
    top: float = 0.05,
) -> SaliencyResult:
    """How much each source word bears on each target word, and whether attention agrees.

    `gradient` is Δ, `integrated` the stronger reference. The sign is checked by central
    differences on a few sentences, `finite differences` being the largest error relative to the
    largest Δ there; `completeness` is the error of the integrated sum.
    """
    if steps < 1:
        raise RegardError(f"steps={steps} does not fit: take 1 or more.")
    found = (_measure(run, n, checkpoint, split, method, steps, top) for run in opened(runs))
    return SaliencyResult(tuple(found), method)


def _measure(
    run: Run,
    n: int,
    checkpoint: str | int,
    split: str | None,
    method: Method,
    steps: int,
    top: float,
) -> Salient:
    task, model = run.task(), run.model(checkpoint)
    batches = looked.batches_of(task, n, split)

    def look(model: Seq2Seq, batch: Batch) -> Tensor:
        if method == "gradient":
            return gradient(model, batch)
        return integrated(model, batch, steps)

    scores = looked.looked(model, batches, look)
    first = batches[0][:CHECKED].to(next(model.parameters()).device)
    found = {"finite differences": _checked(model, first)}
    if method == "integrated":
        found["completeness"] = _complete(model, first, steps)
    weights = looked.weights_of(model, batches)
    if weights is not None and not looked.flat(weights):
        found |= looked.compared(weights, scores, "A(α, Δ)", "Kendall τ", top)
        found["A(Δ, α)"] = float(agreement(scores, weights, top))
    return Salient(scores, weights, looked.first_words(task, batches), found)


def _checked(model: Seq2Seq, batch: Batch) -> float:
    """The largest difference between Δ and central differences, relative to the largest Δ."""
    with evaluating(model):
        slopes = gradient(model, batch)
        worst = 0.0
        for place in range(batch.source.shape[1]):
            by = torch.ones(batch.source.shape, device=batch.source.device)
            by[:, place] = 1 + STEP
            above = said(model, batch, by)
            by[:, place] = 1 - STEP
            rise = (above - said(model, batch, by)) / (2 * STEP)
            there = looked.pairs(batch)[:, :, place]
            error = (rise - slopes[:, :, place]).abs()[there]
            worst = max(worst, float(error.max()) if error.numel() else 0.0)
    return worst / max(float(slopes.abs().max()), 1e-12)


def _complete(model: Seq2Seq, batch: Batch, steps: int) -> float:
    """How far the integrated gradients are from adding up, relative to what they add up to."""
    with evaluating(model):
        total = integrated(model, batch, steps).sum(dim=2)
        ones = torch.ones(batch.source.shape, device=batch.source.device)
        change = said(model, batch, ones) - said(model, batch, 0 * ones)
        there = batch.target_mask
    errors, sizes = (total - change)[there].abs(), change[there].abs()
    return float(errors.mean() / np.maximum(float(sizes.mean()), 1e-12))
