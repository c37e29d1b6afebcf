"""`simplex`: are the input components the corners of a regular simplex (aitken2021, fn. 5)?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Figure, Heat, Panel
from regard.errors import RegardError
from regard.instruments._geometry import cosines, rank_frequent
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SIZE, Measured, Result, count_nouns, to_floats
from regard.recordings.decomposition import StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array


@dataclass(frozen=True)
class Corners(Measured):
    """The cosines between the centred input components of N words; a regular simplex has
    −1/(N−1) between any two."""

    words: tuple[str, ...]
    cosines: Array  # (word, word)
    distances: Array  # (word, word)

    def values(self) -> dict[str, float]:
        """`cosine` (mean off the diagonal), what it should be, and how uneven distances are."""
        count = len(self.words)
        off = ~np.eye(count, dtype=bool)
        distances = self.distances[off]
        return {
            "cosine": float(self.cosines[off].mean()),
            "cosine of a simplex": -1 / (count - 1),
            "worst cosine error": float(np.abs(self.cosines[off] + 1 / (count - 1)).max()),
            "unevenness of distances": float(distances.std() / max(distances.mean(), 1e-300)),
        }


class SimplexResult(Result[Corners]):
    """The corners of each seed; the figure shows the mean cosines of those with equal words."""

    ranges = {
        "cosine": CORRELATION,
        **dict.fromkeys(("worst cosine error", "unevenness of distances"), SIZE),
    }

    def figure(self) -> Figure:
        """The cosines as a matrix."""
        words = self.first.words
        alike = [seed for seed in self.seeds if seed.words == words]
        mean = np.mean([seed.cosines for seed in alike], axis=0)
        heat = Heat(words, words, tuple(to_floats(row) for row in mean), "cosine", -1.0, 1.0)
        expected = -1 / (len(words) - 1)
        return Figure(
            "simplex",
            "Cosines between centred input components, mean of"
            f" {count_nouns(len(alike), 'seed')}. The corners of a"
            f" regular simplex have {expected:.2f} between any two.",
            (Panel("Input components", "word", "word", (heat,)),),
        )


@instrument(SimplexResult, sums=(StateSums,))
def simplex(recording: Recording, words: str = "") -> Corners:
    """Whether the input components of the encoder's words are the corners of a regular simplex.

    `words`, separated by commas, chooses some; the default is all but the special ones, at most
    the 30 most frequent.
    """
    encoder = recording.decomposition.encoder
    vocabulary = recording.vocabulary("encoder")
    if words:
        chosen = vocabulary.encode([word.strip() for word in words.split(",")])
    else:
        plain = [word not in vocabulary.special for word in vocabulary.words]
        chosen = sorted(rank_frequent(encoder.counts.sum(axis=1) * plain)[:30])
    if len(chosen) < 3:
        raise RegardError(f"A simplex needs three words or more; there are {len(chosen)}.")
    chi = encoder.input[chosen]
    centred = chi - chi.mean(axis=0)
    distances = np.linalg.norm(chi[:, None] - chi[None], axis=2)
    return Corners(tuple(vocabulary.words[n] for n in chosen), cosines(centred, centred), distances)
