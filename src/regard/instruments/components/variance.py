"""`variance`: what is left of a word's states without the temporal part (aitken2021, Fig. 5c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Bars, Figure, Panel, Table
from regard.errors import RegardError
from regard.instruments._geometry import rank_frequent
from regard.instruments.registry import instrument
from regard.instruments.result import SIZE, Measured, Result, estimate_over_seeds
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.statistics import Estimate

SHOWN = 20
ROUNDING = 1e-10  # a variance this small beside the squared states is float32's rounding


@dataclass(frozen=True)
class Spread(Measured):
    """tr cov(h − μ) / tr cov(h) for the states that follow each word."""

    words: tuple[str, ...]
    ratios: Array  # (word,)
    counts: Array  # (word,)

    def values(self) -> dict[str, float]:
        """The mean over words, and the drop that it is."""
        left = float(self.ratios.mean())
        return {"left": left, "drop": 1 - left}


class VarianceResult(Result[Spread]):
    """Ratios over seeds."""

    title = "Variance left without μ, encoder"
    ranges = {"left": SIZE}

    def table(self) -> Table:
        """The mean over words, then the most frequent words."""
        rows = [("all words", self.estimates()["left"])]
        rows += self._by_word().items()
        return Table(self.heading(), ("word", "left"), tuple(rows))

    def _by_word(self) -> dict[str, Estimate]:
        """Of the most frequent words of the first seed, those that all seeds have."""
        found = estimate_over_seeds(
            [dict(zip(s.words, map(float, s.ratios), strict=True)) for s in self.seeds]
        )
        words = [self.first.words[n] for n in rank_frequent(self.first.counts)[:SHOWN]]
        return {word: found[word] for word in words if word in found}

    def figure(self) -> Figure:
        """One bar per word."""
        bars = Bars.of("", self._by_word())
        left = self.estimates()["left"]
        return Figure(
            "variance",
            "Variance of the encoder's states that follow a word, after the temporal component is"
            f" taken away, as a share of before. Mean over words: {left}, {self.over_seeds}.",
            (
                Panel(
                    "What time does not explain", "word", "share of variance left", (bars,), (0, 1)
                ),
            ),
        )


@dataclass(frozen=True)
class Moments(Summed):
    """Σ‖h‖² and Σh per input word, of the states and of the states without μ."""

    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`squares` (2, word), `sums` (2, word, features)"""
        encoder = whole.decomposition.encoder
        words, features = encoder.input.shape
        squares = np.zeros((2, words))
        sums = np.zeros((2, words, features))
        for chunk in part.chunks(["encoder.states", "encoder.words", "encoder.mask"]):
            mask = chunk["encoder.mask"]
            states = chunk["encoder.states"].astype(np.float64)
            free = states - encoder.temporal[: states.shape[1]]
            numbers = chunk["encoder.words"][mask]
            for number, values in enumerate((states[mask], free[mask])):
                squares[number] += np.bincount(numbers, (values**2).sum(axis=1), words)
                np.add.at(sums[number], numbers, values)
        return {"squares": squares, "sums": sums}


@instrument(VarianceResult, sums=(StateSums, Moments))
def variance(recording: Recording, least: int = 20) -> Spread:
    """tr cov(h − μ) / tr cov(h) per input word that was seen `least` times or more.

    A word whose states do not vary at all, as one that always stands at the same step may, has no
    such ratio and is left out.
    """
    encoder = recording.decomposition.encoder
    found = add_up(Moments(), recording)
    squares, sums = found["squares"], found["sums"]
    counts = encoder.counts.sum(axis=1)
    n = np.maximum(counts, 1)
    total = squares / n - ((sums / n[:, None]) ** 2).sum(axis=2)
    varies = total[0] > ROUNDING * squares[0] / n
    kept = np.flatnonzero((counts >= max(least, 2)) & varies)
    if not len(kept):
        raise RegardError(
            f"No word was seen {max(least, 2)} times with states that vary."
            " Record more samples, or give a smaller least."
        )
    vocabulary = recording.words("encoder")
    return Spread(tuple(vocabulary[k] for k in kept), total[1, kept] / total[0, kept], counts[kept])
