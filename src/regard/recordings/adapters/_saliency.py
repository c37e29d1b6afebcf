"""Saliency: how much each source word bears on the log-probability of each target word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from regard.models.seq2seq import Seq2Seq
from regard.tasks.batch import Batch

METHODS = ("gradient", "integrated")
STEP = 1e-3  # of the finite differences that check the sign
CHECKED = 4  # sentences that they are taken on


@contextmanager
def scale_words(model: Seq2Seq, by: Tensor) -> Iterator[None]:
    """Every source word's vector times a number of its own. by (batch, source)"""
    point = model.hook_points()["encoder.embedding"]
    hook = point.register_forward_hook(lambda _module, _args, out: out * by[:, :, None])
    try:
        yield
    finally:
        hook.remove()


def score_targets(model: Seq2Seq, batch: Batch, fed: Tensor, by: Tensor) -> Tensor:
    """log p(y_t) with the source words' vectors scaled. -> (batch, target)"""
    with scale_words(model, by):
        memory = model.encode(batch.source, batch.source_lengths)
        logits = model.decode(memory, fed).logits  # some models read the source only now
    return logits.log_softmax(dim=2).gather(2, batch.target[:, :, None])[:, :, 0]


def differentiate(model: Seq2Seq, batch: Batch, fed: Tensor, at: float = 1.0) -> Tensor:
    """Δ_{t,l} = ∂ log p(y_t) / ∂ w_l, where w_l multiplies the vector of source word l.

    At w = 1 this is the vector's gradient times the vector: positive where the word speaks for
    y_t. (snell2021, section 5.1, after Ebrahimi et al. 2018.) -> (batch, target, source)
    """
    by = torch.full(batch.source.shape, at, device=batch.source.device, requires_grad=True)
    found = []
    with torch.enable_grad():
        words = score_targets(model, batch, fed, by)
        for step in range(words.shape[1]):
            keep = step + 1 < words.shape[1]
            (slope,) = torch.autograd.grad(words[:, step].sum(), by, retain_graph=keep)
            found.append(slope)
    pairs = batch.target_mask[:, :, None] & batch.source_mask[:, None]
    return torch.stack(found, dim=1) * pairs


def integrate(model: Seq2Seq, batch: Batch, fed: Tensor, steps: int = 32) -> Tensor:
    """Integrated gradients (Sundararajan et al. 2017) from empty words to the words as they are.

    The mean of Δ along w from 0 to 1, by the midpoint rule; over source words they add up to
    log p(y_t) − log p(y_t | no words). -> (batch, target, source)
    """
    places = [(step + 0.5) / steps for step in range(steps)]
    return torch.stack([differentiate(model, batch, fed, p) for p in places]).mean(dim=0)


def check(
    model: Seq2Seq, batch: Batch, method: str = "gradient", steps: int = 32
) -> dict[str, float]:
    """How far Δ is from central differences, and integrated gradients from adding up."""
    found = {"finite differences": compare_with_differences(model, batch)}
    if method == "integrated":
        found["completeness"] = compare_with_sum(model, batch, steps)
    return found


def compare_with_differences(model: Seq2Seq, batch: Batch) -> float:
    """The largest difference between Δ and central differences, relative to the largest Δ."""
    fed, slopes = batch.inputs, differentiate(model, batch, batch.inputs)
    mask = batch.target_mask[:, :, None] & batch.source_mask[:, None]
    worst = 0.0
    for place in range(batch.source.shape[1]):
        by = torch.ones(batch.source.shape, device=batch.source.device)
        by[:, place] = 1 + STEP
        above = score_targets(model, batch, fed, by)
        by[:, place] = 1 - STEP
        rise = (above - score_targets(model, batch, fed, by)) / (2 * STEP)
        error = (rise - slopes[:, :, place]).abs()[mask[:, :, place]]
        worst = max(worst, float(error.max()) if error.numel() else 0.0)
    return worst / max(float(slopes.abs().max()), 1e-12)


def compare_with_sum(model: Seq2Seq, batch: Batch, steps: int) -> float:
    """How far the integrated gradients are from adding up, relative to what they add up to."""
    fed = batch.inputs
    total = integrate(model, batch, fed, steps).sum(dim=2)
    ones = torch.ones(batch.source.shape, device=batch.source.device)
    change = score_targets(model, batch, fed, ones) - score_targets(model, batch, fed, 0 * ones)
    errors = (total - change)[batch.target_mask].abs()
    sizes = change[batch.target_mask].abs()
    return float(errors.mean() / np.maximum(float(sizes.mean()), 1e-12))
