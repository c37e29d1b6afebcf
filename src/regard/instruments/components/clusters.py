"""`clusters`: do the states of one word remember the word before it (aitken2021, Fig. 6a)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.display import Figure
from regard.errors import RegardError
from regard.instruments._geometry import Axes
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SHARE, SIZE, Measured, Result
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

SHOWN = 150  # points per group in the figure


@dataclass(frozen=True)
class Groups(Measured):
    """χ + Δ of one word's states, by the word before it."""

    word: str
    before: tuple[str, ...]  # the groups
    states: Array  # (state, features)
    group: Array  # (state,)
    others: dict[str, Array]  # the words before: their own χ, (features,)

    @property
    def silhouette(self) -> float:
        """−1..1: how much nearer a state is to its own group than to the next; 0: no groups."""
        if not 2 <= len(self.before) < len(self.states) or self._still:
            return 0.0
        from sklearn.metrics import silhouette_score  # takes a second to import

        return float(silhouette_score(self.states, self.group))

    @property
    def between(self) -> float:
        """The share of the variance that lies between the groups; 0 where nothing varies."""
        if self._still:
            return 0.0
        total = float(((self.states - self.states.mean(axis=0)) ** 2).sum())
        means = np.stack(
            [self.states[self.group == g].mean(axis=0) for g in range(len(self.before))]
        )
        within = float(((self.states - means[self.group]) ** 2).sum())
        return 1 - within / total

    @property
    def _still(self) -> bool:
        return bool(np.allclose(self.states, self.states[0]))

    def values(self) -> dict[str, float]:
        """The silhouette, the variance between groups, and how many groups there are."""
        return {
            "silhouette": self.silhouette,
            "between": self.between,
            "groups": float(len(self.before)),
        }


class ClustersResult(Result[Groups]):
    """Groups of each seed; the figure shows the first."""

    ranges = {"silhouette": CORRELATION, "between": SHARE, "groups": SIZE}

    def figure(self) -> Figure:
        """The word's states in their principal components, coloured by the word before."""
        seed = self.first
        vectors = np.concatenate([seed.states, np.array(list(seed.others.values()))])
        axes = Axes.of(vectors)
        marks = []
        for colour, word in enumerate(seed.before):
            states = seed.states[seed.group == colour][:SHOWN]
            marks.append(axes.draw_points(f"{word} {seed.word}", states, colour))
            own, cross = seed.others[word][None], {"shape": "cross", "size": 1.4}
            marks.append(axes.draw_points("", own, colour, **cross, names=(word,)))
        return Figure(
            "clusters",
            f"Encoder states of '{seed.word}' without their temporal component, by the word before"
            " it (dots), and those words' own input components (crosses). Silhouette"
            f" {self.estimates()['silhouette']}, {self.over_seeds}; the first is shown.",
            (axes.draw_panel(f"'{seed.word}'", marks),),
        )


@dataclass(frozen=True)
class Restlessness(Summed):
    """Σ‖Δ‖² per input word."""

    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`squares` (word,)"""
        encoder = whole.decomposition.encoder
        squares = np.zeros(len(encoder.input))
        for chunk in part.chunks(["encoder.states", "encoder.words", "encoder.mask"]):
            mask = chunk["encoder.mask"]
            delta = encoder.delta(chunk["encoder.states"], chunk["encoder.words"])
            size = np.square(delta[mask], dtype=np.float64).sum(axis=1)
            squares += np.bincount(chunk["encoder.words"][mask], size, len(squares))
        return {"squares": squares}


@instrument(
    ClustersResult,
    at_once=True,
    not_sum="A silhouette compares every state with every other, of the first `limit` ones.",
)
def clusters(
    recordings: Sequence[Recording], word: str = "", least: int = 10, limit: int = 2000
) -> tuple[Groups, ...]:
    """States of one word by the word before it, with a silhouette score.

    Without `word`, the one whose states vary most beyond time and word (largest E‖Δ‖²) is taken,
    of those seen `least` times; it is the first seed's for all seeds. Groups of fewer than `least`
    states are left out; at most `limit` states are looked at.
    """
    chosen = word or _find_restless(recordings[0], least)
    return tuple(_group(recording, chosen, least, limit) for recording in recordings)


def _group(recording: Recording, word: str, least: int, limit: int) -> Groups:
    encoder = recording.decomposition.encoder
    vocabulary = recording.vocabulary("encoder")
    number = vocabulary.encode([word])[0]
    states, before = [], []
    for chunk in recording.chunks(["encoder.states", "encoder.words", "encoder.mask"]):
        words = chunk["encoder.words"]
        mask = (words[:, 1:] == number) & chunk["encoder.mask"][:, 1:]
        free = chunk["encoder.states"] - encoder.temporal[: words.shape[1]]
        states.append(free[:, 1:][mask])
        before.append(words[:, :-1][mask])
        if sum(map(len, before)) >= limit:
            break
    joined, names = np.concatenate(states)[:limit], np.concatenate(before)[:limit]
    kinds = [int(n) for n in np.unique(names) if (names == n).sum() >= least]
    if not kinds:
        raise RegardError(
            f"'{vocabulary.words[number]}' never follows one word {least} times in this recording."
            " Record more samples, or choose another word."
        )
    kept = np.isin(names, kinds)
    group = np.searchsorted(np.array(kinds), names[kept])
    return Groups(
        vocabulary.words[number],
        tuple(vocabulary.words[n] for n in kinds),
        joined[kept],
        group,
        {vocabulary.words[n]: encoder.input[n] for n in kinds},
    )


def _find_restless(recording: Recording, least: int) -> str:
    """The word whose states vary most beyond time and word."""
    encoder, vocabulary = recording.decomposition.encoder, recording.vocabulary("encoder")
    words = vocabulary.words
    squares = add_up(Restlessness(), recording)["squares"]
    counts = encoder.counts.sum(axis=1)
    mean = squares / np.maximum(counts, 1)
    mean[[word in vocabulary.special for word in words] | (counts < least)] = -1
    if mean.max() < 0:
        raise RegardError(f"No word was seen {least} times. Record more samples.")
    return words[int(mean.argmax())]
