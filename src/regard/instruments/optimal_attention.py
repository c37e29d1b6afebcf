"""`optimal_attention`: where a model had best looked, given what it knows (snell2021, A.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.display import Bars, Figure, Heat, Panel
from regard.errors import RegardError
from regard.instruments.agreement import TOP, agrees
from regard.instruments.instrument import (
    SIZES,
    Measured,
    Result,
    Runs,
    instruments,
    numbers,
    opened,
)
from regard.instruments.optimal_weights import optimal_for_sentences
from regard.models import EncoderDecoder, Seq2Seq
from regard.recordings.record import samples
from regard.runs import Run
from regard.tasks import Batch, Task
from regard.training.evaluation import evaluating

PIECE = 2**24  # numbers of γ, or of logits, that a piece of a batch may have
LOSSES = {"loss": "the model's α", "optimal loss": "α^opt", "uniform loss": "uniform"}
AGREEMENTS = ("A(α^opt, β)", "A(α, α^opt)", "A(α, β)")


class Terms(NamedTuple):
    """A model's logits as a sum: logits = Σ_l α_l γ_l + γ_s."""

    gamma: Tensor  # (batch, source, vocab), γ_l
    gamma_s: Tensor  # (batch, target, vocab), γ_s
    alpha: Tensor  # (batch, head, target, source), α


def additive_terms(model: Seq2Seq, batch: Batch) -> Terms:
    """γ_l = W_c c_l, γ_s = W_s s_t + b and α of eqs. 27-28, with the teacher's words fed.

    c_l is the context when position l has all weight. The model attends after the step, with one
    head, and its logits are one linear map of state and context (readout `both`, `context` or
    `sum`); any other is refused.
    """
    layer = model.output_layer()
    if not isinstance(model, EncoderDecoder) or model.attention is None:
        raise _refused("it has no attention of a recurrent encoder-decoder")
    if model.focus is not None:
        raise _refused("it attends before the step, so that weights change the states after them")
    if layer is None:
        raise _refused("a hidden layer stands between the context and the logits")
    if "context" not in layer.parts:
        raise _refused("its output layer does not see the context")
    if model.attention.heads > 1:
        raise _refused(f"it has {model.attention.heads} heads, and weights of one are asked for")
    memory = model.encode(batch.source, batch.source_lengths)
    output = model.decode(memory, batch.inputs)
    values = memory.prepared[1][:, 0]  # (batch, source, features)
    columns = {name: layer.weight[:, start:stop] for name, (start, stop) in layer.parts.items()}
    gamma = values @ columns["context"].mT
    gamma_s = torch.zeros_like(output.logits)
    if "state" in columns:
        gamma_s = output.decoder_states @ columns["state"].mT
    if layer.bias is not None:
        gamma_s = gamma_s + layer.bias
    return Terms(gamma, gamma_s, output.sites["attention"].weights)


def _refused(why: str) -> RegardError:
    return RegardError(
        f"optimal_attention needs logits that are a sum over source positions, but of this model"
        f" {why}. Take a recurrent one with attention=dot or bilinear, heads=1, attend=after and"
        " readout=both, context or sum, without a hidden layer."
    )


class Rows(NamedTuple):
    """Target words one below the other, whatever sentence they are of."""

    alpha: Tensor  # (row, source)
    best: Tensor  # (row, source), α^opt
    beta: Tensor  # (row, source)
    mask: Tensor  # (row, source)
    losses: Tensor  # (row, 3): the model's, the best and the uniform weights'
    gap: Tensor  # (row,)


@dataclass(frozen=True)
class Picture:
    """The first sample: words, and what each target word gives each source word."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    heats: dict[str, tuple[tuple[float, ...], ...]]  # title -> (target, source)


@dataclass(frozen=True)
class Optimal(Measured):
    """One model's losses and agreements, over all target words."""

    found: dict[str, float]
    words: int
    picture: Picture

    def values(self) -> dict[str, float]:
        """Losses in nats per word, the certificate, the agreements, and what is passed over."""
        return self.found


@dataclass(frozen=True)
class OptimalResult(Result[Optimal]):
    """Losses and agreements of each seed; the heat maps are the first's."""

    name = "optimal_attention"

    def bounds(self, name: str) -> tuple[float, float]:
        """Losses are sizes, all else are shares."""
        return SIZES if name in LOSSES or name == "largest gap" else (0.0, 1.0)

    def figure(self) -> Figure:
        """α, α^opt and β of one sample, then the losses and the agreements."""
        found, picture = self.estimates(), self.first.picture
        heats = [
            Panel(
                title,
                "source word",
                "target word",
                (Heat(picture.target, picture.source, values, title, numbers=False),),
            )
            for title, values in picture.heats.items()
        ]
        losses = Bars.of("", {label: found[name] for name, label in LOSSES.items()})
        shares = Bars.of("", {name: found[name] for name in AGREEMENTS}, 1)
        return Figure(
            "optimal_attention",
            "One sample: the model's attention α, the weights α^opt that would cost least, and β,"
            " the chance of the right word were one position attended to alone. Then the mean loss"
            f" with each, and agreements. At most {found['largest gap'].mean:.1g} nats lie between"
            f" α^opt and the true optimum of a word. {self.n} seeds; the first's sample is shown.",
            (
                *heats,
                Panel("Loss of the right word", "weights", "nats per word", (losses,)),
                Panel("Agreement", "of what with what", "share of words", (shares,), (0, 1.05)),
            ),
        )


@instruments.register("optimal_attention")
def optimal_attention(
    runs: Runs,
    n: int = 1000,
    checkpoint: str | int = "reported",
    split: str | None = None,
    seed: int = 0,
    tolerance: float = 1e-6,
) -> OptimalResult:
    """The weights α^opt that minimise the loss of an additive model, against its own α and β.

    snell2021, A.1: the model's logits are Σ_l α_l γ_l + γ_s, so that the best α of each target
    word is a convex problem, solved to a proven gap of at most `tolerance`. `n` samples drawn
    with `seed` are looked at, or those of a `split`; the teacher's words are fed.
    """
    found = [_measure(run, n, checkpoint, split, seed, tolerance) for run in opened(runs)]
    return OptimalResult(tuple(found))


def _measure(
    run: Run, n: int, checkpoint: str | int, split: str | None, seed: int, tolerance: float
) -> Optimal:
    task, model = run.task(), run.model(checkpoint)
    sums: dict[str, float] = {}
    words, largest, picture = 0, 0.0, None
    with evaluating(model):
        for batch in _pieces(samples(task, n, seed, split)(), len(task.target_vocabulary)):
            rows = optimal_rows(model, batch, tolerance)
            for name, values in _counted(rows).items():
                sums[name] = sums.get(name, 0.0) + float(values.double().sum())
            largest = max(largest, float(rows.gap.max()))
            words += len(rows.gap)
            picture = picture or _picture(task, batch, rows)
    assert picture is not None
    found = {name: value / words for name, value in sums.items()}
    losses = {name: found.pop(name) for name in LOSSES}
    return Optimal({**losses, "largest gap": largest, **found}, words, picture)


def _pieces(batches: Iterable[Batch], vocabulary: int) -> Iterator[Batch]:
    """Batches cut so that neither γ nor the logits of one are large."""
    for batch in batches:
        longest = max(batch.source.shape[1], batch.target.shape[1])
        yield from batch.pieces(max(1, PIECE // (longest * vocabulary)))


def optimal_rows(model: Seq2Seq, batch: Batch, tolerance: float = 1e-6) -> Rows:
    """α, α^opt and β of every target word of a batch, and what the weights cost."""
    gamma, gamma_s, alpha = (x.double() for x in additive_terms(model, batch))
    mask, there = batch.source_mask, batch.target_mask
    best = optimal_for_sentences(gamma, gamma_s, batch.target, mask, there, tolerance)
    uniform = mask / mask.sum(dim=1, keepdim=True, dtype=torch.float64)
    costs = [
        _loss(gamma, gamma_s, weights, batch.target)
        for weights in (alpha[:, 0], uniform[:, None].expand_as(best.weights))
    ]
    losses = torch.stack([costs[0], best.loss, costs[1]], dim=2)
    beta = _beta(gamma, gamma_s, batch.target)
    wide = mask[:, None].expand_as(beta)
    parts = (alpha[:, 0], best.weights, beta * wide, wide, losses, best.gap)
    return Rows(*(part[there] for part in parts))


def _loss(gamma: Tensor, gamma_s: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """−log p of the right words. (batch, target)"""
    said = (weights @ gamma + gamma_s).log_softmax(dim=2)
    return -said.gather(2, targets[:, :, None])[:, :, 0]


def _beta(gamma: Tensor, gamma_s: Tensor, targets: Tensor) -> Tensor:
    """β = softmax(γ_l + γ_s) of the right word, one position at a time. (batch, target, source)"""
    only = [
        _loss(gamma[:, place, None], gamma_s, torch.ones_like(gamma_s[:, :, :1]), targets)
        for place in range(gamma.shape[1])
    ]
    return torch.stack(only, dim=2).neg().exp()


def _counted(rows: Rows) -> dict[str, Tensor]:
    """What is averaged over target words. (row,) each"""
    found = dict(zip(LOSSES, rows.losses.unbind(dim=1), strict=True))
    pairs = ((rows.best, rows.beta), (rows.alpha, rows.best), (rows.alpha, rows.beta))
    for name, (u, v) in zip(AGREEMENTS, pairs, strict=True):
        ours, theirs, mask = (x.cpu().numpy() for x in (u, v, rows.mask))
        agreed = agrees(ours, theirs, mask, TOP)
        found[name] = torch.from_numpy(agreed).to(u.device)
    strongest = rows.beta.argmax(dim=1, keepdim=True)
    found["largest β passed over"] = rows.best.gather(1, strongest)[:, 0] == 0
    return found


def _picture(task: Task, batch: Batch, rows: Rows) -> Picture:
    source, target = int(batch.source_lengths[0]), int(batch.target_lengths[0])
    heats = {
        title: tuple(numbers(row[:source]) for row in values[:target])
        for title, values in (
            ("α, the model's", rows.alpha),
            ("α^opt, the best", rows.best),
            ("β, one position alone", rows.beta),
        )
    }
    return Picture(
        tuple(task.source_vocabulary.words[i] for i in batch.source[0, :source].tolist()),
        tuple(task.target_vocabulary.words[i] for i in batch.target[0, :target].tolist()),
        heats,
    )
