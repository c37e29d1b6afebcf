"""`optimal_attention`: where a model had best looked, given what it knows (snell2021, A.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.display import Bars, Figure, Heat, Panel
from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result, to_floats
from regard.instruments.scores._agreement import TOP, agree_by_row
from regard.instruments.scores._optimal_weights import optimal_for_sentences
from regard.instruments.scores._reading import read_words
from regard.instruments.sources import Recordings
from regard.recordings.decomposition import as_tensor
from regard.recordings.recording import Recording

PIECE = 2**24  # numbers of γ, or of logits, that a piece of a recording may have
LOSSES = {"loss": "the model's α", "optimal loss": "α^opt", "uniform loss": "uniform"}
AGREEMENTS = ("A(α^opt, β)", "A(α, α^opt)", "A(α, β)")


class Terms(NamedTuple):
    """A model's logits as a sum: logits = Σ_l α_l γ_l + γ_s, of some samples of a recording."""

    gamma: Tensor  # (sample, source, vocab), γ_l
    gamma_s: Tensor  # (sample, target, vocab), γ_s
    alpha: Tensor  # (sample, target, source), α
    targets: Tensor  # (sample, target)
    source_mask: Tensor  # (sample, source)
    target_mask: Tensor  # (sample, target)


def read_terms(recording: Recording) -> Iterator[Terms]:
    """γ_l = W_c v_l and γ_s = W_s s_t + b of eqs. 27-28, in float64, from one with `values`.

    v_l is what attention mixes, so that W_c v_l is the context's share when position l has all
    weight. The model attends after the step, with one head, and its logits are one linear map of
    state and context; any other is refused. Piece by piece, so that neither γ nor the logits of
    one are large.
    """
    site = _find_site(recording)
    readout = {part: as_tensor(recording.readout(part)).mT for part in recording.metadata.readout}
    vocab = readout["context"].shape[1]
    bias = as_tensor(recording["readout.bias"]) if "readout.bias" in recording else None
    longest = max(recording.shape(f"{side}.words")[1] for side in ("encoder", "decoder"))
    names = ["decoder.states", "targets", "encoder.mask", "decoder.mask"]
    names += [f"{site}.values", f"{site}.weights"]
    for chunk in recording.chunks(names, max(1, PIECE // (longest * vocab))):
        states = as_tensor(chunk["decoder.states"])
        gamma_s = states.new_zeros(*states.shape[:2], vocab)
        if "state" in readout:
            gamma_s = states @ readout["state"]
        if bias is not None:
            gamma_s = gamma_s + bias
        yield Terms(
            (as_tensor(chunk[f"{site}.values"][:, 0]) @ readout["context"]).double(),
            gamma_s.double(),
            as_tensor(chunk[f"{site}.weights"][:, 0]).double(),
            as_tensor(chunk["targets"]).long(),
            as_tensor(chunk["encoder.mask"]),
            as_tensor(chunk["decoder.mask"]),
        )


def _find_site(recording: Recording) -> str:
    """The attention whose weights can be chosen freely, or why there is none."""
    crossing = {n: site for n, site in recording.metadata.sites.items() if site.crosses}
    if not crossing:
        raise _refuse("it has no attention from target to source")
    if len(crossing) > 1:
        raise _refuse(f"it attends to the source in {len(crossing)} layers")
    ((name, site),) = crossing.items()
    if site.lag:
        raise _refuse("it attends before the step, so that weights change the states after them")
    if "readout" not in recording:
        raise _refuse("a hidden layer stands between the context and the logits")
    if "context" not in recording.metadata.readout:
        raise _refuse("its output layer does not see the context")
    if site.heads > 1:
        raise _refuse(f"it has {site.heads} heads, and weights of one are asked for")
    return name


def _refuse(why: str) -> RegardError:
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


class OptimalResult(Result[Optimal]):
    """Losses and agreements of each seed; the heat maps are the first's."""

    within = SHARE
    ranges = dict.fromkeys((*LOSSES, "largest gap"), SIZE)

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
            f" α^opt and the true optimum of a word. {self.over_seeds}; the first is shown.",
            (
                *heats,
                Panel("Loss of the right word", "weights", "nats per word", (losses,)),
                Panel("Agreement", "of what with what", "share of words", (shares,), (0, 1.05)),
            ),
        )


@instrument(
    OptimalResult,
    Recordings(also={"values": {}}, inputs="teacher"),
    renamed={"seed": "samples"},
    not_sum="Its result keeps the best weights of every sentence.",
)
def optimal_attention(recording: Recording, tolerance: float = 1e-6) -> Optimal:
    """The weights α^opt that minimise the loss of an additive model, against its own α and β.

    snell2021, A.1: the model's logits are Σ_l α_l γ_l + γ_s, so that the best α of each target
    word is a convex problem, solved to a proven gap of at most `tolerance`. Reads `values`; the
    teacher's words should be fed.
    """
    sums: dict[str, float] = {}
    words, largest, picture = 0, 0.0, None
    for terms in read_terms(recording):
        rows = solve_rows(terms, tolerance)
        for name, values in _count(rows).items():
            sums[name] = sums.get(name, 0.0) + float(values.double().sum())
        largest = max(largest, float(rows.gap.max()))
        words += len(rows.gap)
        picture = picture or _picture(recording, rows)
    assert picture is not None
    found = {name: value / words for name, value in sums.items()}
    losses = {name: found.pop(name) for name in LOSSES}
    return Optimal({**losses, "largest gap": largest, **found}, words, picture)


def solve_rows(terms: Terms, tolerance: float = 1e-6) -> Rows:
    """α, α^opt and β of every target word of some samples, and what the weights cost."""
    gamma, gamma_s, alpha, targets, mask, steps = terms
    best = optimal_for_sentences(gamma, gamma_s, targets, mask, steps, tolerance)
    uniform = mask / mask.sum(dim=1, keepdim=True, dtype=torch.float64)
    costs = [
        _loss(gamma, gamma_s, weights, targets)
        for weights in (alpha, uniform[:, None].expand_as(best.weights))
    ]
    losses = torch.stack([costs[0], best.loss, costs[1]], dim=2)
    beta = _beta(gamma, gamma_s, targets)
    wide = mask[:, None].expand_as(beta)
    parts = (alpha, best.weights, beta * wide, wide, losses, best.gap)
    return Rows(*(part[steps] for part in parts))


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


def _count(rows: Rows) -> dict[str, Tensor]:
    """What is averaged over target words. (row,) each"""
    found = dict(zip(LOSSES, rows.losses.unbind(dim=1), strict=True))
    pairs = ((rows.best, rows.beta), (rows.alpha, rows.best), (rows.alpha, rows.beta))
    for name, (u, v) in zip(AGREEMENTS, pairs, strict=True):
        ours, theirs, mask = (x.cpu().numpy() for x in (u, v, rows.mask))
        agreed = agree_by_row(ours, theirs, mask, TOP)
        found[name] = torch.from_numpy(agreed).to(u.device)
    strongest = rows.beta.argmax(dim=1, keepdim=True)
    found["largest β passed over"] = rows.best.gather(1, strongest)[:, 0] == 0
    return found


def _picture(recording: Recording, rows: Rows) -> Picture:
    source, target = read_words(recording)
    heats = {
        title: tuple(to_floats(row[: len(source)]) for row in values[: len(target)])
        for title, values in (
            ("α, the model's", rows.alpha),
            ("α^opt, the best", rows.best),
            ("β, one position alone", rows.beta),
        )
    }
    return Picture(tuple(source), tuple(target), heats)
