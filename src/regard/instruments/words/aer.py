"""`aer`: does a soft alignment link the words that people link (Och and Ney 2003)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.display import Bars, Figure, Line, Panel, Rule
from regard.errors import RegardError
from regard.instruments._settings import Share
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Result
from regard.instruments.scores._scores import Scores
from regard.instruments.sources import Recordings, Settings
from regard.instruments.words._subwords import Pool, pool_recorded
from regard.instruments.words.links import Alignment, Match, Scored, read_alignments
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.recordings.views import first_row, take_rows
from regard.runs.files import content_hash
from regard.statistics import Estimate

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # shares of a row, for the figure


@dataclass(frozen=True)
class Aligned(Scored):
    """What the links of one soft alignment are worth."""

    levels: tuple[float, ...]  # AER with every position above a share of its row, by `LEVELS`


class AERResult(Result[Aligned]):
    """Alignment error over seeds."""

    within = SHARE
    ranges = {"links": None}

    def figure(self) -> Figure:
        """Error, precision and recall; and the error where several positions may be linked."""
        found = self.estimates()
        bars = Bars.of("", {k: v for k, v in found.items() if k != "links"})
        panels = [Panel("Links", "measure", "share", (bars,), (0, 1.05))]
        if self.first.levels:
            over = map(Estimate.share, zip(*(seed.levels for seed in self.seeds), strict=True))
            marks = Line.of("", LEVELS, over), Rule("as measured", y=found["aer"].mean)
            axis = "share of its row that links a position"
            panels.append(Panel("Several links", axis, "AER", marks, (0, 1.05)))
        return Figure(
            "aer",
            f"Alignment error rate {found['aer']}: 0 where the links are those of the gold"
            " standard.",
            tuple(panels),
        )


class SoftAlignments(Recordings):
    """Recordings, or scores of words by themselves."""

    wants = "Give a recording, a run, the path of one, or Scores."

    def is_single(self, things: Any) -> bool:
        """Scores are one source."""
        return isinstance(things, Scores) or super().is_single(things)

    def open(self, thing: Any, settings: Settings, options: Settings) -> Any:
        """Scores as they are; all else as a recording."""
        return thing if isinstance(thing, Scores) else super().open(thing, settings, options)

    def identify(self, source: Any) -> tuple[Any, Any]:
        """Scores say nothing of where they come from."""
        return (None, id(source)) if isinstance(source, Scores) else super().identify(source)


@dataclass(frozen=True)
class LinkCounts(Summed):
    """Links, sure ones, and how many of ours are sure and possible; at the threshold and `LEVELS`.

    `gold` is a file, whose content `digest` tells; without, the recording's own alignments.
    """

    site: str | None
    head: int | None
    threshold: float | None
    pieces: Pool
    gold: str | None = None
    digest: str = ""
    first: Literal[0, 1] | None = None

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`counts` (threshold and levels, 4), `negative` ()"""
        known = None if self.gold is None else read_alignments(Path(self.gold), self.first)
        counts, negative = np.zeros((1 + len(LEVELS), 4), np.int64), 0
        for start in range(0, len(part), part.rows):
            piece = take_rows(part, start, min(len(part), start + part.rows))
            scores = Scores.of_attention(piece, self.site, self.head)
            begin = first_row(piece)
            if known is None:
                links = _read_targets(piece)
            else:
                scores = pool_recorded(piece, scores, self.pieces)
                links = list(known[begin : begin + len(piece)])
            counted, below = _count(scores, links, self.threshold, begin)
            counts, negative = counts + counted, negative + below
        return {"counts": counts, "negative": np.array(negative)}


@instrument(AERResult, SoftAlignments(), renamed={"pool": "pieces"}, sums=(LinkCounts,))
def aer(
    source: Scores | Recording,
    gold: Any = None,
    threshold: Share | None = None,
    site: str | None = None,
    head: int | None = None,
    pieces: Pool = "sum",
    first: Literal[0, 1] | None = None,
    layer: int | None = None,
) -> Aligned:
    """Alignment error rate of attention, or of any `Scores` over words, against given links.

    Each target word is linked to its highest source word; with a `threshold`, to every one that
    has this share of its row's sum. `gold` is a file (see `read_alignments`, also for `first`) or
    a list of alignments; of a recording it may be left out where its task says what to attend to.
    Attention between pieces of words becomes one between words first, by `pieces`.
    """
    known = read_alignments(gold, first) if isinstance(gold, (str, Path)) else _read_links(gold)
    if isinstance(source, Scores):
        return _score(source, known, threshold)
    site = source.site(site, layer)
    if known is None or isinstance(gold, (str, Path)):
        if known is not None:
            _require_as_many(len(known), len(source))
        file = None if known is None else str(Path(gold).absolute())
        digest = "" if file is None else content_hash(Path(file))
        counted = LinkCounts(site, head, threshold, pieces, file, digest, first)
        return _finish(add_up(counted, source))
    scores = Scores.of_attention(source, site, head)
    return _score(pool_recorded(source, scores, pieces), known, threshold)


def _read_links(gold: Sequence[Any] | None) -> Sequence[Alignment] | None:
    """Alignments as they are, or made of lists of links (source, target), from 0."""
    if gold is None:
        return None
    try:
        return [a if isinstance(a, Alignment) else Alignment.of(map(tuple, a)) for a in gold]
    except (TypeError, ValueError):
        raise RegardError(
            "gold= is a file of alignments, or a list with the links of each sentence pair:"
            " [[(source, target), …], …], from 0."
        ) from None


def link_best(scores: Scores, threshold: float | None = None) -> list[Alignment]:
    """Hard links of a soft alignment, from 0: the highest of each row, or all above a share."""
    where = _choose_links(scores, threshold)
    return [Alignment.of((int(s), int(t)) for t, s in np.argwhere(one)) for one in where]


def _choose_links(scores: Scores, threshold: float | None) -> Array:
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
    return np.asarray((values >= threshold * sums) & scores.mask & (sums > 0))


def _score(scores: Scores, gold: Sequence[Alignment] | None, threshold: float | None) -> Aligned:
    counts, negative = _count(scores, gold, threshold)
    return _finish({"counts": counts, "negative": np.array(negative)})


def _finish(stats: Stats) -> Aligned:
    """The errors that follow from counts; shares of rows mean nothing where some are negative."""
    ours, *levels = (Match(*map(int, row)) for row in stats["counts"])
    errors = () if stats["negative"] else tuple(level.error for level in levels)
    return Aligned(ours, errors)


def _count(
    scores: Scores, gold: Sequence[Alignment] | None, threshold: float | None, begin: int = 0
) -> tuple[Array, int]:
    """Links at the threshold and at all levels, and how many scores are negative.

    `begin` is the number of the first sample. -> (threshold and levels, 4)
    """
    if gold is None:
        raise RegardError(
            "There are no links to compare with: give gold, a file of alignments or a list of them."
        )
    sure, possible = _dense(gold, scores, begin)
    negative = int((scores.values[scores.mask] < 0).sum())
    chosen = [_choose_links(scores, threshold)]
    chosen += [] if negative else [_choose_links(scores, level) for level in LEVELS]
    counts = np.zeros((1 + len(LEVELS), 4), np.int64)
    for number, links in enumerate(chosen):
        counts[number] = [x.sum() for x in (links, sure, links & sure, links & possible)]
    return counts, negative


def _require_as_many(links: int, scores: int) -> None:
    if links != scores:
        raise RegardError(
            f"There are {scores} sentence pairs with scores, but {links} with links."
            " They must be the same pairs, in the same order."
        )


def _dense(gold: Sequence[Alignment], scores: Scores, begin: int = 0) -> tuple[Array, Array]:
    """Sure and possible links, (sample, target, source) each; what does not fit is refused."""
    _require_as_many(len(gold), len(scores))
    sure, possible = (np.zeros(scores.values.shape, np.bool_) for _ in range(2))
    for sample, alignment in enumerate(gold):
        for links, part in ((alignment.sure, sure), (alignment.possible, possible)):
            for i, j in links:
                if not _inside((sample, j, i), scores):
                    raise RegardError(
                        f"Sentence pair {begin + sample + 1}: the link {i}-{j} (from 0) is beyond"
                        f" its {_size(sample, scores)}. Are links and words of the same text, and"
                        " is the alignment turned the right way?"
                    )
                part[sample, j, i] = True
    return sure, possible


def _inside(place: tuple[int, int, int], scores: Scores) -> bool:
    fits = all(0 <= k < size for k, size in zip(place, scores.mask.shape, strict=True))
    return fits and bool(scores.mask[place])


def _size(sample: int, scores: Scores) -> str:
    mask = scores.mask[sample]
    return f"{int(mask.any(axis=0).sum())} source and {int(mask.any(axis=1).sum())} target words"


def _read_targets(recording: Recording) -> list[Alignment] | None:
    """The positions that the task says a model should attend to, as sure links."""
    if "alignment" not in recording:
        return None
    return [
        Alignment.of((int(i), j) for j, i in enumerate(row) if i >= 0)
        for row in recording["alignment"]
    ]
