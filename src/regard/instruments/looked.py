"""What a model makes of every source position, teacher-forced: α, β and their relatives.

The instruments of snell2021 compare such scores; here they are taken from models, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.instruments.agreement import agreement
from regard.instruments.scores import Scores
from regard.models import Output, Seq2Seq
from regard.models.outputs import Memory
from regard.recordings.record import samples
from regard.recordings.storage import Array
from regard.runs import Run
from regard.tasks import Batch, Task
from regard.training.evaluation import evaluating
from regard.training.losses import crossing

PIECE = 64  # sentences that go through a model at once

Look = Callable[[Seq2Seq, Batch], Tensor]  # -> (batch, target, source)
Performance = Callable[[Seq2Seq, Sequence[Batch]], float]


def batches_of(task: Task, n: int, split: str | None = None, seed: int = 0) -> list[Batch]:
    """Sentences to look at, as recordings take them, in pieces of like length.

    They keep their order: two models that look at the same batches give scores that fit.
    """
    return [piece for batch in samples(task, n, seed, split)() for piece in batch.pieces(PIECE)]


def looked(model: Seq2Seq, batches: Iterable[Batch], look: Look) -> Scores:
    """Scores of all sentences of some batches. -> (sample, target, source)"""
    values, masks = [], []
    with evaluating(model) as device:
        for batch in batches:
            batch = batch.to(device)
            values.append(look(model, batch).detach().cpu().numpy())
            masks.append(pairs(batch).cpu().numpy())
    return Scores(_stacked(values), _stacked(masks))


def pairs(batch: Batch) -> Tensor:
    """Where both a target and a source word are. (batch, target, source)"""
    return batch.target_mask[:, :, None] & batch.source_mask[:, None]


def passed(model: Seq2Seq, batch: Batch) -> tuple[Memory, Output]:
    """One pass, the teacher's words fed to the decoder."""
    memory = model.encode(batch.source, batch.source_lengths)
    return memory, model.decode(memory, batch.inputs)


def attention(model: Seq2Seq, batch: Batch) -> Tensor:
    """α: the weights of the last attention from target to source, the mean over heads."""
    sites = list(crossing(passed(model, batch)[1].sites).values())
    if not sites:
        raise RegardError("This model has no attention to look at. Set model.attention.")
    return sites[-1].weights.mean(dim=1)


def weights_of(model: Seq2Seq, batches: Sequence[Batch]) -> Scores | None:
    """α over some batches, or None where a model has no attention."""
    with evaluating(model) as device:
        sites = crossing(passed(model, batches[0][:1].to(device))[1].sites)
    return looked(model, batches, attention) if sites else None


def flat(scores: Scores) -> bool:
    """Whether every row is all ties, up to rounding, so that no position is the best."""
    rows, mask = scores.rows()
    spread = np.where(mask, rows, -np.inf).max(axis=1) - np.where(mask, rows, np.inf).min(axis=1)
    return bool((spread < 1e-6).all())


def compared(u: Scores, v: Scores, name: str, tau: str, top: float) -> dict[str, float]:
    """A(u, v) with its yardsticks, those that are numbers, by name."""
    agreed = agreement(u, v, top)
    found = {name: float(agreed), "shuffled": agreed.shuffled, tau: agreed.kendall}
    return {key: value for key, value in found.items() if np.isfinite(value)}


def first_words(task: Task, batches: Sequence[Batch]) -> tuple[list[str], list[str]]:
    """The words of the first sentence, source and target."""
    row = batches[0][:1]
    source, target = row.source[0].tolist(), row.target[0].tolist()
    return task.source_vocabulary.shown(source), task.target_vocabulary.shown(target)


def lexical(model: Seq2Seq, batch: Batch) -> Tensor:
    """log β_{t,l} = log N([h_l, s_t])_{y_t} (snell2021, eq. 4 and 9)."""
    memory, output = passed(model, batch)
    return model.lexical(memory, output.decoder_states, batch.target, pairs(batch))


def proxy(model: Seq2Seq, batch: Batch) -> Tensor:
    """log β^px_{t,l} = log softmax(W e_{x_l})_{y_t} (snell2021, eq. 6): no bias."""
    memory, output = passed(model, batch)
    return model.lexical(memory, output.decoder_states, batch.target, pairs(batch), bias=False)


def log_odds(word: int) -> Look:
    """γ_l, the log-odds of one target word if position l had all weight (snell2021, eq. 22)."""

    def look(model: Seq2Seq, batch: Batch) -> Tensor:
        memory, output = passed(model, batch)
        states, there = output.decoder_states, pairs(batch)
        wanted = torch.full_like(batch.target, word)
        said = model.lexical(memory, states, wanted, there)
        # log(1 − p) from p loses everything where p is near 1, so the others are added up instead.
        others = [
            model.lexical(memory, states, torch.full_like(wanted, other), there)
            for other in range(output.logits.shape[2])
            if other != word
        ]
        return (said - torch.stack(others).logsumexp(dim=0)).where(there, 0.0)

    return look


@dataclass(frozen=True)
class Course:
    """How a run learns: at each checkpoint, how its attention agrees with others', and how good
    it is. What ξ (snell2021, eq. 11) is read from, by `contextualised`."""

    agreements: dict[int, list[float]]  # update -> A(α, α̂(τ)), one for each α given
    performances: dict[int, float]

    @property
    def updates(self) -> list[int]:
        """The checkpoints, in order."""
        return sorted(self.performances)


def course(
    run: Run,
    alphas: Sequence[Scores],
    batches: Sequence[Batch],
    performs: Performance | None = None,
) -> Course:
    """A run's attention against given ones, and its performance, over its checkpoints.

    `alphas` are scores over the same sentences as `batches`; only one checkpoint's are in memory.
    `performs` says how good a model is; if it is not given, `performance`.
    """
    performs = performs or performance
    agreements, performances = {}, {}
    for at in run.checkpoints():
        model = run.model(at)
        weights = looked(model, batches, attention)
        agreements[at] = [float(agreement(alpha, weights)) for alpha in alphas]
        performances[at] = performs(model, batches)
    return Course(agreements, performances)


def performance(model: Seq2Seq, batches: Sequence[Batch]) -> float:
    """The share of target words that are right when the teacher's are fed (of labels: of all)."""
    right = count = 0
    with evaluating(model) as device:
        for batch in batches:
            batch = batch.to(device)
            said = passed(model, batch)[1].logits.argmax(dim=2)
            right += int(((said == batch.target) & batch.target_mask).sum())
            count += int(batch.target_lengths.sum())
    return right / max(count, 1)


def _stacked(arrays: list[Array]) -> Array:
    """Arrays (batch, target, source) one after another, padded to common widths."""
    if not arrays:
        raise RegardError("There is nothing to look at: no sentences were given.")
    widths = [max(array.shape[axis] for array in arrays) for axis in (1, 2)]
    return np.concatenate(list(_widened(arrays, widths)))


def _widened(arrays: list[Array], widths: list[int]) -> Iterator[Array]:
    for array in arrays:
        missing = [(0, wide - size) for wide, size in zip(widths, array.shape[1:], strict=True)]
        yield np.pad(array, [(0, 0), *missing])
