"""Scores of source positions as a picture: one sentence, several kinds of scores side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from regard.display import Bars, Figure, Heat, Panel
from regard.instruments.scores._scores import Scores
from regard.recordings.storage import Array

MOST = 24  # words that a heat map can show


def draw_scores(
    name: str,
    caption: str,
    panels: Mapping[str, Scores],
    words: tuple[Sequence[str], Sequence[str]],
    sample: int = 0,
) -> Figure:
    """A panel per kind of scores: a heat map, or bars where there is one target word only.

    `words` are the sentence's source and target. Long sentences are cut, and the caption says so.
    """
    source, target = list(words[0])[:MOST], list(words[1])[:MOST]
    cut = len(words[0]) > MOST or len(words[1]) > MOST
    shown = []
    for title, scores in panels.items():
        values = scores.values[sample, : len(target), : len(source)]
        shown.append(_bars(title, values[0], source) if len(target) == 1 else _heat(
            title, values, source, target
        ))  # fmt: skip
    more = f" The first {MOST} words of each side are shown." if cut else ""
    return Figure(name, caption + more, tuple(shown))


def _bars(title: str, values: Array, source: list[str]) -> Panel:
    bars = Bars("", tuple(_tell_apart(source)), tuple(float(v) for v in values))
    return Panel(title, "source word", title, (bars,), wide=True)


def _heat(title: str, values: Array, source: list[str], target: list[str]) -> Panel:
    low, high = float(values.min()), float(values.max())
    reach = max(abs(low), abs(high), 1e-9)
    signed = low < 0 < high
    bounds = (-reach, reach) if signed else (low, high if high > low else low + 1e-9)
    rows = tuple(tuple(float(v) for v in row) for row in np.asarray(values))
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
