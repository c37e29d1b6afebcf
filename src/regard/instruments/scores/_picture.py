"""Scores of one model beside something to compare them with, and a picture of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from regard.display import Bars, Figure, Heat, Panel
from regard.instruments.result import Measured, Result, to_floats
from regard.instruments.scores._scores import Scores
from regard.recordings.storage import Array

MOST = 24  # words that a heat map can show


@dataclass(frozen=True)
class Pictured(Measured):
    """Scores of one model, and what they are compared with."""

    scores: Scores
    beside: Scores | None  # α, or what was asked to be compared
    words: tuple[list[str], list[str]]  # source and target of the first sentence
    found: dict[str, float]

    @property
    def drawn(self) -> Scores:
        """What is drawn."""
        return self.scores

    def values(self) -> dict[str, float]:
        """Agreements, and what describes the scores."""
        return self.found


S = TypeVar("S", bound=Pictured)


class PicturedResult(Result[S]):
    """Scores over seeds; the figure shows the first's first sentence."""

    shown: ClassVar[str]
    compared: ClassVar[str]
    caption: ClassVar[str]

    def figure(self) -> Figure:
        """A panel per kind of scores: a heat map, or bars where there is one target word only.

        Long sentences are cut, and the caption says so.
        """
        first = self.first
        source, target = (side[:MOST] for side in first.words)
        panels = []
        for title, scores in ((self.shown, first.drawn), (self.compared, first.beside)):
            if scores is not None:
                values = scores.values[0, : len(target), : len(source)]
                panels.append(draw_scores(title, values, source, target))
        cut = max(map(len, first.words)) > MOST
        more = f" The first {MOST} words of each side are shown." if cut else ""
        about = f"{self.caption.format(first=first)} {self.over_seeds}; the first is shown."
        return Figure(self.name, about + more, tuple(panels))


def draw_scores(title: str, values: Array, source: list[str], target: list[str]) -> Panel:
    """values (target, source)"""
    if len(target) == 1:
        bars = Bars("", tuple(_tell_apart(source)), to_floats(values[0]))
        return Panel(title, "source word", title, (bars,), wide=True)
    low, high = float(values.min()), float(values.max())
    reach = max(abs(low), abs(high), 1e-9)
    signed = low < 0 < high
    bounds = (-reach, reach) if signed else (low, high if high > low else low + 1e-9)
    rows = tuple(map(to_floats, values))
    heat = Heat(
        tuple(_tell_apart(target)), tuple(_tell_apart(source)), rows, title, *bounds,
        numbers=False, signed=signed,
    )  # fmt: skip
    return Panel(title, "source word", "target word", (heat,))


def _tell_apart(words: list[str]) -> list[str]:
    """Words that differ, so that equal ones keep their own places on an axis."""
    seen: dict[str, int] = {}
    names = []
    for word in words:
        seen[word] = seen.get(word, 0) + 1
        names.append(word if seen[word] == 1 else f"{word} ({seen[word]})")
    return names
