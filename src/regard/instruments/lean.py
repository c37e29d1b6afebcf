"""`lean`: how a word makes its state lean towards time or away (aitken2021, Figs. 6c, 6d)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Bars, Figure, Line, Panel, Table
from regard.errors import RegardError
from regard.instruments.decomposition import Decomposition, as_tensor, head_of
from regard.instruments.geometry import mean_there
from regard.instruments.inputs import frequent
from regard.instruments.instrument import Measured, Result, Sources, each, instruments, numbers
from regard.recordings.storage import Array

SHOWN = 12


@dataclass(frozen=True)
class Leaning(Measured):
    """Mean (χ_x + Δ_t)·μ_s per word, at t = s and for every offset t − s."""

    window: int
    words: tuple[str, ...]
    by_offset: Array  # (word, offset), NaN where a word never stood so
    spread: Array  # (word,): standard deviation at t = s

    @property
    def at_once(self) -> Array:
        """At t = s. (word,)"""
        return self.by_offset[:, self.window]

    def values(self) -> dict[str, float]:
        """Per word the dot product at t = s, and how it grows with the offset (per step).

        A word that never stood at t = s has no number, and without a second offset no slope.
        """
        offsets = np.arange(-self.window, self.window + 1)
        found = {
            word: float(value)
            for word, value in zip(self.words, self.at_once, strict=True)
            if np.isfinite(value)
        }
        for word, row in zip(self.words, self.by_offset, strict=True):
            there = np.isfinite(row)
            if there.sum() > 1:
                slope = np.polyfit(offsets[there], row[there], 1)[0]
                found[f"slope of {word}"] = float(slope)
        return found


@dataclass(frozen=True)
class LeanResult(Result[Leaning]):
    """Leanings over seeds."""

    name = "lean"

    def table(self) -> Table:
        """A row per word."""
        found = self.estimates()
        words = [word for word in self.first.words if word in found]
        rows = tuple((word, found[word], found.get(f"slope of {word}", "")) for word in words)
        title = f"Lean of the input-delta components, {self.n} seed{'s' * (self.n > 1)}"
        return Table(title, ("word", "(χ+Δ)·μ at t = s", "slope per step of t − s"), rows)

    def figure(self) -> Figure:
        """Bars at t = s, and lines over the offset."""
        found = self.estimates()
        words = [word for word in self.first.words if word in found][:SHOWN]
        bars = Bars.of("", {word: found[word] for word in words})
        window = self.first.window
        offsets = numbers(range(-window, window + 1))
        lines = []
        for colour, word in enumerate(words[:8]):
            rows = [seed.by_offset[seed.words.index(word)] for seed in self.seeds]
            mean = mean_there(rows)
            lines.append(Line(word, offsets, numbers(mean), colour=colour, points=True))
        return Figure(
            "lean",
            "Dot product of a word's input-delta component with the decoder's temporal component"
            f" (negative: the word makes its step less attended), {self.n} seeds.",
            (
                Panel("At t = s", "word", "(χ + Δ)·μ", (bars,)),
                Panel("Over the offset", "offset t − s (steps)", "(χ + Δ)·μ", tuple(lines)),
            ),
        )


@instruments.register("lean")
def lean(
    sources: Sources,
    window: int = 5,
    words: int = SHOWN,
    site: str | None = None,
    head: int = 0,
) -> LeanResult:
    """(χ_x + Δ_t)·μ_s per word, at t = s and against t − s; the `words` most frequent ones.

    μ is that of the queries, χ + Δ that of the keys, in one `head` of one attention `site`.
    """
    if window < 1 or words < 1:
        raise RegardError("window and words are 1 or more.")
    return LeanResult(each(sources, lambda source: _measure(source, window, words, site, head)))


def _measure(
    source: Decomposition, window: int, count: int, name: str | None, head: int
) -> Leaning:
    recording, site = source.recording, source.site(name)
    (asked, answered), info = site.head(head), site.info
    if not info.bilinear:
        raise RegardError(
            f"The score of '{site.name}' is not a product of queries and keys, so (χ + Δ)·μ is no"
            " part of it. `breakdown` takes such a score apart by substitution."
        )
    vocabulary = recording.words(info.answers)
    chosen = frequent(answered, vocabulary, count)
    mu = asked.tensors[0][: asked.steps]  # (target, features)
    sums = np.zeros((len(vocabulary), 2 * window + 1))
    counts, squares = np.zeros_like(sums), np.zeros(len(vocabulary))
    keys = f"{site.name}.keys"
    for chunk in recording.chunks(
        [keys, f"{info.answers}.words", f"{info.answers}.mask"], source.rows
    ):
        words, mask = chunk[f"{info.answers}.words"], chunk[f"{info.answers}.mask"]
        states = as_tensor(head_of(chunk[keys], head, info.heads))
        free = states - answered.tensors[0][: states.shape[1]]
        dots = (free @ mu.t()).double().numpy()  # (sample, source, target)
        for index, offset in enumerate(range(-window, window + 1)):
            places = np.arange(max(0, offset), min(states.shape[1], len(mu) + offset))
            if not len(places):
                continue
            values, there = dots[:, places, places - offset], mask[:, places]
            numbers_ = words[:, places][there]
            sums[:, index] += np.bincount(numbers_, values[there], len(vocabulary))
            counts[:, index] += np.bincount(numbers_, minlength=len(vocabulary))
            if offset == 0:
                squares += np.bincount(numbers_, values[there] ** 2, len(vocabulary))
    mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    n = np.maximum(counts[:, window], 1)
    spread = np.sqrt(np.maximum(squares / n - np.nan_to_num(mean[:, window]) ** 2, 0))
    return Leaning(window, tuple(vocabulary[n] for n in chosen), mean[chosen], spread[chosen])
