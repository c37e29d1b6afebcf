"""`pull`: how a word makes its state lean towards time or away (aitken2021, Figs. 6c, 6d)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Bars, Figure, Line, Panel, Table
from regard.errors import RegardError
from regard.instruments._geometry import mean_finite
from regard.instruments._settings import Count
from regard.instruments.components.word_clouds import find_frequent
from regard.instruments.registry import instrument
from regard.instruments.result import Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import HeadSums, StateSums, as_tensor
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

SHOWN = 12


@dataclass(frozen=True)
class Pull(Measured):
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
            finite = np.isfinite(row)
            if finite.sum() > 1:
                slope = np.polyfit(offsets[finite], row[finite], 1)[0]
                found[f"slope of {word}"] = float(slope)
        return found


class PullResult(Result[Pull]):
    """Pulls over seeds."""

    title = "Pull of the input-delta components"

    def table(self) -> Table:
        """A row per word."""
        found = self.estimates()
        words = [word for word in self.first.words if word in found]
        rows = tuple((word, found[word], found.get(f"slope of {word}", "")) for word in words)
        return Table(self.heading(), ("word", "(χ+Δ)·μ at t = s", "slope per step of t − s"), rows)

    def figure(self) -> Figure:
        """Bars at t = s, and lines over the offset."""
        found = self.estimates()
        words = [word for word in self.first.words if word in found][:SHOWN]
        bars = Bars.of("", {word: found[word] for word in words})
        window = self.first.window
        offsets = to_floats(range(-window, window + 1))
        lines = []
        for colour, word in enumerate(words[:8]):
            rows = [seed.by_offset[seed.words.index(word)] for seed in self.seeds]
            mean = mean_finite(rows)
            lines.append(Line(word, offsets, to_floats(mean), colour=colour, points=True))
        return Figure(
            "pull",
            "Dot product of a word's input-delta component with the decoder's temporal component"
            f" (negative: the word makes its step less attended), {self.over_seeds}.",
            (
                Panel("At t = s", "word", "(χ + Δ)·μ", (bars,)),
                Panel("Over the offset", "offset t − s (steps)", "(χ + Δ)·μ", tuple(lines)),
            ),
        )


@dataclass(frozen=True)
class PullSums(Summed):
    """Σ(χ_x + Δ_t)·μ_s per word and offset, how often, and the squares at t = s."""

    site: str
    head: int
    window: int
    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`sums` and `counts` (word, offset), `squares` (word,)"""
        found, window = whole.decomposition.site(self.site), self.window
        (queries, keys), info = found.head(self.head), found.site
        vocabulary = part.words(info.key_side)
        mu = queries.tensors[0][: queries.steps]  # (target, features)
        sums = np.zeros((len(vocabulary), 2 * window + 1))
        counts, squares = np.zeros_like(sums), np.zeros(len(vocabulary))
        array = f"{self.site}.keys"
        for chunk in part.chunks([array, f"{info.key_side}.words", f"{info.key_side}.mask"]):
            read, mask = chunk[f"{info.key_side}.words"], chunk[f"{info.key_side}.mask"]
            states = as_tensor(chunk[array][:, self.head])
            free = states - keys.tensors[0][: states.shape[1]]
            dots = (free @ mu.t()).double().numpy()  # (sample, source, target)
            for index, offset in enumerate(range(-window, window + 1)):
                places = np.arange(max(0, offset), min(states.shape[1], len(mu) + offset))
                if not len(places) or (info.causal and offset > 0):  # nothing looks ahead
                    continue
                values, kept = dots[:, places, places - offset], mask[:, places]
                numbers = read[:, places][kept]
                sums[:, index] += np.bincount(numbers, values[kept], len(vocabulary))
                counts[:, index] += np.bincount(numbers, minlength=len(vocabulary))
                if offset == 0:
                    squares += np.bincount(numbers, values[kept] ** 2, len(vocabulary))
        return {"sums": sums, "counts": counts, "squares": squares}


@instrument(PullResult, sums=(StateSums, HeadSums, PullSums))
def pull(
    recording: Recording,
    window: Count = 5,
    words: Count = SHOWN,
    site: str | None = None,
    head: int = 0,
    layer: int | None = None,
) -> Pull:
    """(χ_x + Δ_t)·μ_s per word, at t = s and against t − s; the `words` most frequent ones.

    μ is that of the queries, χ + Δ that of the keys, in one `head` of one attention `site`.
    """
    parts = recording.decomposition.site(recording.site(site, layer))
    (_, keys), info = parts.head(head), parts.site
    if not info.bilinear:
        raise RegardError(
            f"The score of '{parts.name}' is not a product of queries and keys, so (χ + Δ)·μ is no"
            " part of it. `breakdown` takes such a score apart by substitution."
        )
    vocabulary = recording.words(info.key_side)
    chosen = find_frequent(keys, vocabulary, words)
    stats = add_up(PullSums(parts.name, head, window), recording)
    sums, counts, squares = (stats[name] for name in ("sums", "counts", "squares"))
    mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    n = np.maximum(counts[:, window], 1)
    spread = np.sqrt(np.maximum(squares / n - np.nan_to_num(mean[:, window]) ** 2, 0))
    return Pull(window, tuple(vocabulary[n] for n in chosen), mean[chosen], spread[chosen])
