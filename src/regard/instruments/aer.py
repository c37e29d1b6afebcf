"""`aer`: does a soft alignment link the words that people link (Och and Ney 2003)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.display import Bars, Figure, Line, Panel, Rule
from regard.errors import RegardError
from regard.instruments.alignments import Alignment, Match, read_alignments
from regard.instruments.decomposition import Decomposition
from regard.instruments.instrument import Measured, Result, instruments
from regard.instruments.scores import Scores
from regard.instruments.subwords import Pool, recorded_words
from regard.recordings import Recording
from regard.recordings.storage import Array
from regard.statistics import Estimate

Soft = Scores | Recording | Decomposition
LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # shares of a row, for the figure


@dataclass(frozen=True)
class Aligned(Measured):
    """What the links of one soft alignment are worth."""

    match: Match
    levels: tuple[float, ...]  # AER with every position above a share of its row, by `LEVELS`

    def values(self) -> dict[str, float]:
        """AER, precision and recall where there are any, and how many links were found."""
        found = self.match
        named = {
            "aer": found.error,
            "precision": found.precision,
            "recall": found.recall,
            "links": float(found.found),
        }
        return {name: value for name, value in named.items() if np.isfinite(value)}


@dataclass(frozen=True)
class AERResult(Result[Aligned]):
    """Alignment error over seeds."""

    name = "aer"

    def bounds(self, name: str) -> tuple[float, float] | None:
        """Shares, and a count."""
        return None if name == "links" else (0.0, 1.0)

    def figure(self) -> Figure:
        """Error, precision and recall; and the error where several positions may be linked."""
        found = self.estimates()
        bars = Bars.of("", {k: v for k, v in found.items() if k != "links"})
        over = [
            Estimate.share(seed.levels[k] for seed in self.seeds)
            for k in range(len(self.first.levels))
        ]
        means, low, high = (tuple(getattr(e, n) for e in over) for n in ("mean", "low", "high"))
        lines: list[Line] = [Line("", LEVELS, means, low, high)] if over else []
        panels = [Panel("Links", "measure", "share", (bars,), (0, 1.05))]
        if lines:
            rule = Rule("as measured", y=found["aer"].mean)
            axis = "share of its row that links a position"
            panels.append(Panel("Several links", axis, "AER", (*lines, rule), (0, 1.05)))
        return Figure(
            "aer",
            f"Alignment error rate {found['aer']}: 0 where the links are those of the gold"
            " standard.",
            tuple(panels),
        )


@instruments.register("aer")
def aer(
    sources: Soft | Sequence[Soft],
    gold: str | Path | list[Alignment] | None = None,
    threshold: float | None = None,
    site: str | None = None,
    head: int | None = None,
    pool: Pool = "sum",
    first: int | None = None,
) -> AERResult:
    """Alignment error rate of attention, or of any `Scores` over words, against given links.

    Each target word is linked to its highest source word; with a `threshold`, to every one that
    has this share of its row's sum. `gold` is a file (see `read_alignments`, also for `first`) or
    a list of alignments; of a recording it may be left out where its task says what to attend to.
    Attention between pieces of words becomes one between words first, by `pool`.
    """
    if threshold is not None and not 0 < threshold <= 1:
        raise RegardError(f"threshold={threshold:g} does not fit: it is a share of a row, 0 to 1.")
    many = [sources] if isinstance(sources, (Scores, Recording, Decomposition)) else list(sources)
    if not many:
        raise RegardError("There is nothing to inspect: no recordings were given.")
    known = read_alignments(gold, first) if isinstance(gold, (str, Path)) else gold  # type: ignore[arg-type]
    found = []
    for one in many:
        source = one.recording if isinstance(one, Decomposition) else one
        scores = source if isinstance(source, Scores) else Scores.recorded(source, site, head)
        links = known
        if isinstance(source, Recording) and known is not None:
            scores = recorded_words(source, scores, pool)
        elif isinstance(source, Recording):
            links = _taught(source)
        found.append(_measure(scores, links, threshold))
    return AERResult(tuple(found))


def linked(scores: Scores, threshold: float | None = None) -> list[Alignment]:
    """Hard links of a soft alignment, from 0: the highest of each row, or all above a share."""
    where = _linked(scores, threshold)
    return [Alignment.of((int(s), int(t)) for t, s in np.argwhere(one)) for one in where]


def _linked(scores: Scores, threshold: float | None) -> Array:
    """(sample, target, source) bool"""
    if threshold is None:
        values = np.where(scores.mask, scores.values, -np.inf)
        best = np.zeros(values.shape, np.bool_)
        if values.size:
            np.put_along_axis(best, values.argmax(axis=2)[:, :, None], True, axis=2)
        return best & scores.mask
    values = np.where(scores.mask, scores.values, 0.0)
    if (values < 0).any():
        raise RegardError(
            "A threshold is a share of a row, and some scores are negative. Leave it out, or give"
            " probabilities instead of their logarithms."
        )
    sums = values.sum(axis=2, keepdims=True)
    above: Array = (values >= threshold * sums) & scores.mask & (sums > 0)
    return above


def _measure(scores: Scores, gold: Sequence[Alignment] | None, threshold: float | None) -> Aligned:
    if gold is None:
        raise RegardError(
            "There are no links to compare with: give gold, a file of alignments or a list of them."
        )
    sure, possible = _dense(gold, scores)
    negative = bool((scores.values[scores.mask] < 0).any())
    levels = (
        () if negative else tuple(_match(_linked(scores, x), sure, possible).error for x in LEVELS)
    )
    return Aligned(_match(_linked(scores, threshold), sure, possible), levels)


def _match(links: Array, sure: Array, possible: Array) -> Match:
    counts = (links, sure, links & sure, links & possible)
    return Match(*(int(part.sum()) for part in counts))


def _dense(gold: Sequence[Alignment], scores: Scores) -> tuple[Array, Array]:
    """Sure and possible links, (sample, target, source) each; what does not fit is refused."""
    if len(gold) != len(scores):
        raise RegardError(
            f"There are {len(scores)} sentence pairs with scores, but {len(gold)} with links."
            " They must be the same pairs, in the same order."
        )
    sure, possible = (np.zeros(scores.values.shape, np.bool_) for _ in range(2))
    for sample, alignment in enumerate(gold):
        for links, part in ((alignment.sure, sure), (alignment.possible, possible)):
            for i, j in links:
                if not _inside((sample, j, i), scores):
                    raise RegardError(
                        f"Sentence pair {sample + 1}: the link {i}-{j} (from 0) is beyond its"
                        f" {_size(sample, scores)}. Are links and words of the same text, and is"
                        " the alignment turned the right way?"
                    )
                part[sample, j, i] = True
    return sure, possible


def _inside(place: tuple[int, int, int], scores: Scores) -> bool:
    fits = all(0 <= k < size for k, size in zip(place, scores.mask.shape, strict=True))
    return fits and bool(scores.mask[place])


def _size(sample: int, scores: Scores) -> str:
    there = scores.mask[sample]
    return f"{int(there.any(axis=0).sum())} source and {int(there.any(axis=1).sum())} target words"


def _taught(recording: Recording) -> list[Alignment] | None:
    """The positions that the task says a model should attend to, as sure links."""
    if "alignment" not in recording:
        return None
    return [
        Alignment.of((int(i), j) for j, i in enumerate(row) if i >= 0)
        for row in recording["alignment"]
    ]
