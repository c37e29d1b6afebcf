"""`breakdown`: which of the nine terms make the alignment (aitken2021, eq. 3 and Fig. 5a)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.display import Bars, Figure, Line, Panel, Table
from regard.instruments._geometry import mean_finite, rank_frequent
from regard.instruments._settings import Count
from regard.instruments.components._terms import TERMS, nine_terms, substituted_terms
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import (
    Components,
    HeadSums,
    SiteComponents,
    StateSums,
    as_tensor,
)
from regard.recordings.recording import Chunk, Recording
from regard.recordings.site import Site
from regard.recordings.storage import Array

BIAS = "position bias"
COMMON = 30  # words per side whose pairs are told apart


@dataclass(frozen=True)
class Shares(Measured):
    """The terms of one recording's alignments at the top positions.

    A share is |term| / Σ|terms|, a signed one term / Σ|terms|, at one decoder step and one source
    position; they are averaged over positions, steps, samples and heads.
    """

    absolute: Array  # (term,)
    signed: Array  # (term,)
    by_step: Array  # (term, target), absolute, up to the last step that occurred
    by_head: Array  # (head, term), absolute
    by_pair: dict[tuple[str, str], Array]  # (decoder word, encoder word) -> (term + 1,): count last
    by_sample: Array | None  # (sample, term), absolute, mean over steps, positions and heads
    site: str
    exact: bool  # the score is bilinear, so that the terms add up to it
    top: int
    terms: tuple[str, ...] = TERMS  # with a position bias there is a tenth
    described = ("top", "site", "exact")

    def values(self) -> dict[str, float]:
        """The absolute shares."""
        return dict(zip(self.terms, map(float, self.absolute), strict=True))


class Totals:
    """Sums of shares over everything seen so far; those of other pieces add up."""

    def __init__(
        self, target: int, heads: int, common: tuple[Array, Array], terms: int = len(TERMS)
    ):
        self.terms = terms
        self.absolute = np.zeros((heads, terms, target))
        self.signed = np.zeros((heads, terms, target))
        self.counts = np.zeros((heads, target))
        self.common = common  # word number -> place among the common ones, or -1
        pairs = (common[0].max() + 1) * (common[1].max() + 1)
        self.pairs = np.zeros((terms + 1, int(pairs)))
        self.samples: list[Array] = []  # per piece (sample, term), sums over all else
        self.places: list[Array] = []  # per piece (sample,), how many were summed

    @classmethod
    def of(cls, stats: Stats, common: tuple[Array, Array]) -> Totals:
        """The totals that some statistics are of."""
        heads, terms, target = stats["absolute"].shape
        made = cls(target, heads, common, terms)
        made.absolute, made.signed = stats["absolute"], stats["signed"]
        made.counts, made.pairs = stats["counts"], stats["pairs"]
        made.samples = [stats[name] for name in ("samples",) if name in stats]
        made.places = [stats[name] for name in ("places",) if name in stats]
        return made

    def stats(self) -> Stats:
        """The totals as plain arrays."""
        found = {name: getattr(self, name) for name in ("absolute", "signed", "counts", "pairs")}
        if self.samples:
            found["samples"] = np.concatenate(self.samples)  # (sample, term)
            found["places"] = np.concatenate(self.places)  # (sample,)
        return found

    def update(
        self, head: int, terms: Tensor, mask: Tensor, words: tuple[Tensor, Tensor], keep: bool
    ) -> None:
        """terms (9, sample, target, k), mask (sample, target, k), words at the same places."""
        absolute = terms.abs()
        size = absolute.sum(dim=0)
        mask = mask & (size > 0)
        weight = mask / size.clamp(min=torch.finfo(size.dtype).tiny)
        absolute.mul_(weight)
        steps = slice(terms.shape[2])
        self.absolute[head, :, steps] += _per_step(absolute)
        self.signed[head, :, steps] += _per_step(terms * weight)
        self.counts[head, steps] += mask.sum(dim=(0, 2)).double().numpy()
        self._pairs(absolute, mask, words)
        if not keep:
            return
        if head == 0:  # a new piece; the other heads of it add to the same samples
            self.samples.append(np.zeros((terms.shape[1], self.terms)))
            self.places.append(np.zeros(terms.shape[1]))
        self.samples[-1] += absolute.sum(dim=(2, 3)).double().t().numpy()
        self.places[-1] += mask.sum(dim=(1, 2)).double().numpy()

    def _pairs(self, absolute: Tensor, mask: Tensor, words: tuple[Tensor, Tensor]) -> None:
        """Sums over the pairs of common words; all others go to one more place, left out."""
        ours, theirs = (torch.from_numpy(c)[w] for c, w in zip(self.common, words, strict=True))
        width, bins = int(self.common[1].max()) + 1, self.pairs.shape[1]
        kept = mask & (ours >= 0) & (theirs >= 0)
        index = torch.where(kept, ours * width + theirs, bins).flatten()
        sums = torch.zeros(self.terms, bins + 1, dtype=torch.float64)
        sums.index_add_(1, index, absolute.flatten(1).double())
        self.pairs[:-1] += sums[:, :bins].numpy()
        self.pairs[-1] += torch.bincount(index, minlength=bins + 1)[:bins].numpy()


def _per_step(shares: Tensor) -> Array:
    """Sums over samples and positions. (term, sample, target, k) -> (term, target)"""
    return np.asarray(shares.sum(dim=1).sum(dim=2).double())  # far faster than both at once


class Breakdown(Result[Shares]):
    """The nine shares over seeds."""

    title = "Breakdown of the alignment, top {first.top}"
    within = SHARE

    @property
    def shares(self) -> dict[str, float]:
        """The nine absolute shares, means over seeds; they add up to 1."""
        return {name: value.mean for name, value in self.estimates().items()}

    @property
    def signed(self) -> dict[str, float]:
        """The nine signed shares, means over seeds."""
        mean = np.mean([seed.signed for seed in self.seeds], axis=0)
        return dict(zip(self.first.terms, map(float, mean), strict=True))

    def table(self) -> Table:
        """Absolute and signed share of each term."""
        rows = tuple((name, value, self.signed[name]) for name, value in self.estimates().items())
        return Table(self.heading(), ("term (decoder-encoder)", "share", "signed"), rows)

    def pairs(self, least: int = 20) -> Table:
        """Word pairs by how often they are among the top positions, with their shares."""
        found = sorted(self.first.by_pair.items(), key=lambda item: -item[1][-1])
        rows = tuple(
            (f"{ours} ← {theirs}", int(values[-1]), *(float(v) for v in values[:-1]))
            for (ours, theirs), values in found
            if values[-1] >= least
        )
        return Table("Shares by word pair, first seed", ("pair", "count", *self.first.terms), rows)

    def figure(self) -> Figure:
        """The nine shares as bars, and the three groups of Fig. 5a over decoder steps."""
        found = self.estimates()
        bars = Bars.of("", found)
        by_step = mean_finite([seed.by_step for seed in self.seeds])  # (term, target)
        steps = to_floats(range(1, by_step.shape[1] + 1))
        groups = (
            ("μ·μ", by_step[0]),
            ("μ·χ + μ·Δ", by_step[1] + by_step[2]),
            ("other six", by_step[3 : len(TERMS)].sum(axis=0)),
            *(("position bias", row) for row in by_step[len(TERMS) :]),
        )
        lines = tuple(
            Line(label, steps, to_floats(values), colour=colour, points=True)
            for colour, (label, values) in enumerate(groups)
        )
        how = "" if self.first.exact else " The score is not bilinear: terms by substitution."
        return Figure(
            "breakdown",
            f"Shares of the nine terms at the top {self.first.top} source positions,"
            f" {self.over_seeds}.{' Whiskers are 95 % intervals.' * (self.n > 1)}{how}",
            (
                Panel("Nine terms", "decoder part - encoder part", "share", (bars,), (0, 1)),
                Panel("Over the output", "decoder step", "share", lines, (0, 1)),
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """`shares` and `signed` by term, and the shares by step, by head and by word pair."""
        by_step = mean_finite([seed.by_step for seed in self.seeds])
        by_head = np.mean([seed.by_head for seed in self.seeds], axis=0)
        return {
            **super().to_json(),
            "shares": self.shares,
            "signed": self.signed,
            "by_step": dict(zip(self.first.terms, by_step.tolist(), strict=True)),
            "by_head": [
                dict(zip(self.first.terms, head, strict=True)) for head in by_head.tolist()
            ],
            "by_pair": self.pairs().records(),
        }


@dataclass(frozen=True)
class NineTerms(Summed):
    """Sums of the shares of the nine terms; see `breakdown` for the settings."""

    top: int
    site: str
    per_sample: bool = False
    head: int | None = None
    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """As `Totals` has them."""
        parts = whole.decomposition.site(self.site)
        info = parts.site
        biased = f"{self.site}.bias" in part
        wanted = range(info.heads) if self.head is None else [self.head]
        target = part.shape(f"{info.query_side}.words")[1]
        totals = Totals(target, len(wanted), _common(parts), len(TERMS) + biased)
        for chunk in part.chunks(_arrays(parts, biased)):
            words, masks = _read_sides(chunk, info)
            for number, one in enumerate(wanted):
                index, mask, terms = _split(chunk, parts, one, words, masks, self.top)
                places = (
                    words[0][:, :, None].expand_as(index),
                    words[1][:, None, :].expand(-1, index.shape[1], -1).gather(2, index),
                )
                totals.update(number, terms, mask, places, self.per_sample)
        return totals.stats()

    def merge(self, one: Stats, other: Stats) -> Stats:
        """Sums add up; shares of single samples stand one after the other."""
        kept = [name for name in ("samples", "places") if name in one]
        rows = {name: np.concatenate([one[name], other[name]]) for name in kept}
        return {name: one[name] + other[name] for name in one if name not in kept} | rows


@instrument(Breakdown, sums=(StateSums, HeadSums, NineTerms))
def breakdown(
    recording: Recording,
    top: Count = 5,
    site: str | None = None,
    per_sample: bool = False,
    head: int | None = None,
    layer: int | None = None,
) -> Shares:
    """Shares of the nine terms of the alignment, over the `top` source positions of each step.

    aitken2021, eq. 3 and Fig. 5a: for each sample and decoder step, the `top` encoder positions
    with the largest score; share = |term| / Σ|nine terms|, averaged. Where the score is not
    bilinear, terms are found by substitution (`substituted_terms`). `per_sample` keeps the
    shares of every sample, which takes memory for each. Where a position bias is added to the
    scores, it is a tenth term. `head` looks at one head instead of all,
    `layer` at the attention of one layer.
    """
    parts = recording.decomposition.site(recording.site(site, layer))
    info, name = parts.site, parts.name
    if head is not None:
        parts.head(head)  # it is there
    stats = add_up(NineTerms(top, name, per_sample, head), recording)
    totals = Totals.of(stats, _common(parts))
    terms = (*TERMS, BIAS) if f"{name}.bias" in recording else TERMS
    return replace(_average(totals, recording, name, info, top), terms=terms)


def _common(parts: SiteComponents) -> tuple[Array, Array]:
    """The places of both sides' words among their most frequent ones."""
    return _rank_common(parts.queries[0]), _rank_common(parts.keys[0])


def _arrays(parts: SiteComponents, biased: bool) -> list[str]:
    """What is read of the recording."""
    sides = (parts.site.query_side, parts.site.key_side)
    scores = [] if parts.site.bilinear else [f"{parts.name}.scores"]
    both = [f"{side}.{what}" for side in sides for what in ("words", "mask")]
    bias = [f"{parts.name}.bias"] if biased else []
    return sorted({f"{parts.name}.queries", f"{parts.name}.keys", *scores, *bias, *both})


def _read_sides(chunk: Chunk, site: Site) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The words of queries and keys, and their masks. (sample, time) each"""
    queries, keys = site.query_side, site.key_side
    words = site.shift_words(chunk[f"{queries}.words"]), chunk[f"{keys}.words"]
    masks = as_tensor(chunk[f"{queries}.mask"]), as_tensor(chunk[f"{keys}.mask"])
    return (as_tensor(words[0]).long(), as_tensor(words[1]).long()), masks


def _split(
    chunk: Chunk,
    parts: SiteComponents,
    head: int,
    words: tuple[Tensor, Tensor],
    masks: tuple[Tensor, Tensor],
    top: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best positions of one head, which of them count, and the nine terms there."""
    name, site = parts.name, parts.site
    queries, keys = (as_tensor(chunk[f"{name}.{what}"][:, head]) for what in ("queries", "keys"))
    if parts.vector is None:
        scores = queries @ keys.transpose(1, 2)
    else:
        scores = as_tensor(chunk[f"{name}.scores"][:, head])
    bias = chunk.get(f"{name}.bias")
    total = scores if bias is None else scores + as_tensor(bias[:, head])
    allowed = masks[1][:, None, :]
    if site.causal:
        allowed = allowed & torch.ones_like(scores[0], dtype=torch.bool).tril()
    count = min(top, scores.shape[2])
    values, index = total.masked_fill(~allowed, -torch.inf).topk(count, dim=2)
    mask = (values > -torch.inf) & masks[0][:, :, None]
    both = (parts.queries[head], parts.keys[head])
    if parts.vector is None:
        terms = nine_terms(queries, keys, *words, *both, scores, index)
        if bias is not None:
            terms = torch.cat([terms, (total - scores).gather(2, index)[None]])
        return index, mask, terms
    vector = torch.from_numpy(parts.vector[head])
    return index, mask, substituted_terms(queries, keys, *words, *both, vector, index, site.score)


def _rank_common(components: Components) -> Array:
    """Each word's place among the most frequent ones, -1 for the others."""
    counts = components.counts.sum(axis=1)
    places = np.full(len(counts), -1, dtype=np.int64)
    order = rank_frequent(counts)[:COMMON]
    places[order] = np.arange(len(order))
    return places


def _average(totals: Totals, recording: Recording, name: str, site: Site, top: int) -> Shares:
    count = max(1.0, totals.counts.sum())
    per_step = np.maximum(totals.counts.sum(axis=0), 1)
    steps = int(np.flatnonzero(totals.counts.sum(axis=0)).max(initial=0)) + 1
    heads = np.maximum(totals.counts.sum(axis=1), 1)[:, None]
    sides = (recording.words(side) for side in (site.query_side, site.key_side))
    ours, theirs = (
        {int(place): word for word, place in zip(words, common, strict=True) if place >= 0}
        for words, common in zip(sides, totals.common, strict=True)
    )
    pairs = {}
    for index in np.flatnonzero(totals.pairs[-1]):
        own, other = divmod(int(index), int(totals.common[1].max()) + 1)
        sums, times = totals.pairs[:-1, index], totals.pairs[-1, index]
        pairs[ours[own], theirs[other]] = np.append(sums / times, times)
    return Shares(
        totals.absolute.sum(axis=(0, 2)) / count,
        totals.signed.sum(axis=(0, 2)) / count,
        (totals.absolute.sum(axis=0) / per_step)[:, :steps],
        totals.absolute.sum(axis=2) / heads,
        pairs,
        _per_sample(totals),
        name,
        site.bilinear,
        top,
    )


def _per_sample(totals: Totals) -> Array | None:
    if not totals.samples:
        return None
    places = np.concatenate(totals.places)[:, None]
    return np.asarray(np.concatenate(totals.samples) / np.maximum(places, 1))
