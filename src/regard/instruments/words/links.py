"""`links`: word alignments by hand or by program: reading, joining and scoring them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from regard.display import Bars, Figure, Panel
from regard.errors import RegardError, kind_of, unknown
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result
from regard.instruments.sources import Settings, Takes
from regard.tasks.text_files import EMPTY, Faults, read_lines

Link = tuple[int, int]
Links = frozenset[Link]
Free = Callable[[Iterable[bool]], bool]
Method = Literal["intersection", "union", "grow-diag-final", "grow-diag-final-and", "strict"]

LINK = re.compile(r"(\d+)([-p])(\d+)")
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
MEND = "A line holds links such as 0-0 (sure) or 1p2 (possible), parted by spaces."


@dataclass(frozen=True)
class Alignment:
    """The links of one sentence pair: (source position, target position), counted from 0.

    `possible` includes `sure`. A program's alignment has no doubts: both are the same.
    """

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)

    @classmethod
    def of(cls, links: Iterable[Link]) -> Alignment:
        """Of sure links alone."""
        sure = frozenset((int(source), int(target)) for source, target in links)
        return cls(sure, sure)

    @property
    def turned(self) -> Alignment:
        """The same links as (target position, source position)."""
        return Alignment(
            *(frozenset((j, i) for i, j in part) for part in (self.sure, self.possible))
        )


def read_alignments(path: str | Path, first: Literal[0, 1] | None = None) -> list[Alignment]:
    """Alignments from a file, plain or gzipped, a sentence pair a line, `i-j` sure, `ipj` possible.

    i is a source position and j a target position; take `turned` of a file that was made in the
    other direction. An empty line is a pair without links. `first` is the number of a sentence's
    first word in this file, 1 or 0. Left out, it is 0 if any link of the file has a 0, and 1 if
    none has: right for any file but one from 0 in which no first word is ever linked. Positions
    are counted from 0 in what is returned, so files of either kind can be compared.

    >>> regard.alignment_error_rate(
    ...     regard.read_alignments("giza.talp.gz"), regard.read_alignments("gold.gz")
    ... )  # doctest: +SKIP
    """
    if first not in (None, 0, 1):
        raise RegardError(f"first={first} does not fit: sentences begin at 0 or at 1.")
    path = Path(path)
    faults, ignored = Faults(MEND), Faults(MEND)  # empty lines are reported; here they are none
    rows = read_lines(path, ignored, named_by="the path given")
    if set(ignored.counts) - {EMPTY}:
        ignored.stop()
    found = [_links(row or "", str(path), number, faults) for number, row in enumerate(rows, 1)]
    faults.stop()
    least = min((min(i, j) for row in found for i, _, j in row), default=1)
    start = min(least, 1) if first is None else first
    if least < start:
        line = next(n for n, row in enumerate(found, 1) if any(0 in (i, j) for i, _, j in row))
        raise RegardError(
            f"{path}, line {line}: a link has a 0, but first=1 says that words count from 1."
            " Leave first out, or say first=0."
        )
    return [_alignment(row, start) for row in found]


def _links(row: str, name: str, number: int, faults: Faults) -> list[tuple[int, str, int]]:
    found = []
    for text in row.split():
        match = LINK.fullmatch(text)
        if match is None:
            faults.add("links", name, number, f"{text[:40]!r} is no link")
            break
        found.append((int(match[1]), match[2], int(match[3])))
    return found


def _alignment(row: Sequence[tuple[int, str, int]], start: int) -> Alignment:
    moved = [((i - start, j - start), kind) for i, kind, j in row]
    sure = frozenset(link for link, kind in moved if kind == "-")
    return Alignment(sure, frozenset(link for link, _ in moved))


@dataclass(frozen=True)
class Match:
    """How many links were found and how many of them are right, over a corpus."""

    found: int  # |A|
    sure: int  # |S|
    found_sure: int  # |A ∩ S|
    found_possible: int  # |A ∩ P|

    @property
    def precision(self) -> float:
        """|A ∩ P| / |A|: which of the links found are at least possible."""
        return self.found_possible / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        """|A ∩ S| / |S|: which of the sure links were found."""
        return self.found_sure / self.sure if self.sure else float("nan")

    @property
    def error(self) -> float:
        """AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 where there was nothing to find."""
        total = self.found + self.sure
        return 1 - (self.found_sure + self.found_possible) / total if total else 0.0


def match_links(hypothesis: Sequence[Alignment], gold: Sequence[Alignment]) -> Match:
    """Count links over all sentence pairs; of the hypothesis, sure and possible ones alike."""
    for pair in (*hypothesis, *gold):
        if not isinstance(pair, Alignment):
            raise RegardError(
                f"{kind_of(pair)} is no alignment. Read them with `regard.read_alignments`,"
                " or make one of links: `regard.instruments.words.Alignment.of({(0, 0), (1, 2)})`."
            )
    if len(hypothesis) != len(gold):
        raise RegardError(
            f"{len(hypothesis)} sentence pairs are aligned, but {len(gold)} have human links."
            " They must be the same pairs, in the same order."
        )
    both = [(ours.possible, theirs) for ours, theirs in zip(hypothesis, gold, strict=True)]
    return Match(
        sum(len(links) for links, _ in both),
        sum(len(theirs.sure) for _, theirs in both),
        sum(len(links & theirs.sure) for links, theirs in both),
        sum(len(links & theirs.possible) for links, theirs in both),
    )


def alignment_error_rate(hypothesis: Sequence[Alignment], gold: Sequence[Alignment]) -> float:
    """AER over a corpus (Och and Ney 2003): 0 is perfect, 1 has nothing right.

    1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), with A the links of the hypothesis, S the sure and P the
    possible ones of the gold standard, all counted over the whole corpus.
    """
    return match_links(hypothesis, gold).error


def symmetrise(
    forward: Sequence[Alignment],
    backward: Sequence[Alignment],
    method: Method = "grow-diag-final",
) -> list[Alignment]:
    """One alignment of two: of source to target, and of target to source, already `turned`.

    `intersection`, `union`, or `grow-diag-final` (Koehn et al. 2003): from the intersection, add
    links of the union next to a link, diagonally too, where one of the two words has none yet;
    then what either direction has for a word without one. With `grow-diag-final-and` these last
    links need two such words, and with `strict` those next to a link do, too.
    """
    ways: dict[str, Callable[[Links, Links], Links]] = {
        "intersection": lambda one, two: one & two,
        "union": lambda one, two: one | two,
        "grow-diag-final": partial(_grow, near=any, last=any),
        "grow-diag-final-and": partial(_grow, near=any, last=all),
        "strict": partial(_grow, near=all, last=all),
    }
    if method not in ways:
        raise RegardError(unknown("way to join alignments", method, ways))
    if len(forward) != len(backward):
        raise RegardError(
            f"There are {len(forward)} sentence pairs in one direction and {len(backward)} in the"
            " other. They must be the same pairs, in the same order."
        )
    return [
        Alignment.of(ways[method](one.possible, two.possible))
        for one, two in zip(forward, backward, strict=True)
    ]


def _grow(one: Links, two: Links, near: Free, last: Free) -> Links:
    """From the intersection outwards; `near` and `last` say how many words must be free."""
    union, grown = one | two, set(one & two)
    linked = {i for i, _ in grown}, {j for _, j in grown}  # the words that have a link

    def add(link: Link, needed: Free) -> bool:
        if not needed(word not in side for word, side in zip(link, linked, strict=True)):
            return False
        grown.add(link)
        for word, side in zip(link, linked, strict=True):
            side.add(word)
        return True

    added = True
    while added:
        added = False
        for i, j in sorted(grown):
            for link in ((i + down, j + right) for down, right in NEIGHBOURS):
                added |= link in union and add(link, near)
    for direction in (one, two):
        for link in sorted(direction):
            add(link, last)
    return frozenset(grown)


@dataclass(frozen=True)
class Scored(Measured):
    """What some links are worth beside those of people."""

    match: Match

    def values(self) -> dict[str, float]:
        """AER, precision and recall where there are any, and how many links were found."""
        found = self.match
        named = {
            "aer": found.error,
            "precision": found.precision,
            "recall": found.recall,
            "links": float(found.found),
        }
        return {name: value for name, value in named.items() if math.isfinite(value)}


class LinksResult(Result[Scored]):
    """Alignment error over several alignments of one text."""

    title = "Links against the gold standard"
    within = SHARE
    ranges = {"links": SIZE}

    def figure(self) -> Figure:
        """Error, precision and recall."""
        found = {name: value for name, value in self.estimates().items() if name != "links"}
        panel = Panel("Links", "measure", "share", (Bars.of("", found),), (0, 1.05))
        caption = "Alignment error rate: 0 where the links are those of the gold standard."
        return Figure("links", caption, (panel,))


class LinkFiles(Takes):
    """Links of a text: a file of them, or a list of alignments."""

    noun = "alignments"
    wants = "Give a file of links such as 0-0 1-2, or a list of alignments."

    def is_single(self, things: Any) -> bool:
        """A list of alignments is one source, a list of files is several."""
        listed = isinstance(things, Sequence) and not isinstance(things, str)
        return not listed or all(isinstance(thing, Alignment) for thing in things)

    def open(self, thing: Any, settings: Settings, options: Settings) -> Sequence[Alignment]:
        """The alignments that were given, or in a file."""
        if isinstance(thing, (str, Path)):
            return read_alignments(thing, settings.get("first"))
        if not isinstance(thing, Sequence):
            raise self.refuse(thing)
        return thing


@instrument(LinksResult, LinkFiles())
def links(
    alignments: Sequence[Alignment], gold: Any = None, first: Literal[0, 1] | None = None
) -> Scored:
    """Alignment error rate, precision and recall of links against those of people (`gold`).

    Files have a sentence pair a line, `i-j` sure, `ipj` possible; `first` is the number of a
    sentence's first word in them, told from the links by default (Och and Ney 2003).
    """
    if gold is None:
        raise RegardError("There are no links to compare with: give gold, a file of links.")
    right = read_alignments(gold, first) if isinstance(gold, (str, Path)) else gold
    return Scored(match_links(alignments, right))
