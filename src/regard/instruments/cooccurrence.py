"""`cooccurrence`: which words occur in pairs of sentences together (snell2021, eq. 16)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from regard.display import Table
from regard.errors import RegardError
from regard.instruments.lexicon import Lexicon
from regard.instruments.pairs import (
    Numbers,
    Pair,
    Pairs,
    Sentences,
    Word,
    pieces,
    sides,
    training_pairs,
)
from regard.recordings.storage import Array

SHOWN = 10  # rows of a table


@dataclass(frozen=True, eq=False)
class Cooccurrence(Lexicon):
    """C: for each source word i and target word o, the sum over sentence pairs of 1/L per pair.

    `matrix` is C (source word, target word), sparse; `shares` is Trans(o|i) of eq. 17.
    """

    pairs: int = 0  # sentence pairs that were counted
    name = "cooccurrence"
    title = "Co-occurrence table C"
    label = "C(i, o)"
    caption = "Sum over sentence pairs of 1/L for every time that two words meet; frequent words"

    @property
    def spread(self) -> float:
        """How much Trans(o|i) of the words seen with i varies: standard deviation over mean.

        The mean over source words. 0: C says nothing about which of them i translates to, as with
        permutations of one set of words, or of two disjoint sets (Figs. 4 and 8).
        """
        return float(self.spreads().mean()) if len(self.sources) else 0.0

    def spreads(self) -> Array:
        """`spread` of each source word. (source word,)"""
        shares = self.shares
        counts = np.maximum(np.diff(shares.indptr), 1)
        means = np.asarray(shares.sum(axis=1)).ravel() / counts
        squares = np.asarray(shares.multiply(shares).sum(axis=1)).ravel() / counts
        left = np.maximum(squares - means**2, 0)
        left[left < 1e-14 * means**2] = 0  # rounding
        found: Array = np.sqrt(left) / np.where(means > 0, means, 1)
        return found

    def centred(self) -> Array:
        """C − its mean over target words: what eq. 15 says the proxy learns first. Dense."""
        table = self.matrix.toarray()
        found: Array = table - table.mean(axis=1, keepdims=True)
        return found

    def table(self) -> Table:
        """The words that occur most, with the words that they meet most."""
        ours = sorted(self.frequent()[0], key=lambda w: -float(self.matrix[[self.rows[w]]].sum()))
        rows = tuple(
            (str(w), float(self.matrix[[self.rows[w]]].sum()), _listed(self.highest(w, 3)))
            for w in ours[:SHOWN]
        )
        title = f"Co-occurrence in {self.pairs} sentence pairs, spread {self.spread:.3g}"
        return Table(title, ("source word", "sum of C", "with"), rows)

    def to_json(self) -> dict[str, Any]:
        """Sizes, and the spread."""
        return {**super().to_json(), "pairs": self.pairs, "spread": self.spread}


class Counts:
    """An accumulator of C: memory for the distinct pairs of words, whatever the corpus.

    Counts merge, in any order, up to the rounding of sums.
    """

    def __init__(self) -> None:
        self.sources, self.targets, self.pairs = Numbers(), Numbers(), 0
        self.matrix = csr_array((0, 0), dtype=np.float64)

    def update(self, pairs: Iterable[Pair]) -> Counts:
        """Count some sentence pairs more, piece by piece."""
        for piece in pieces(pairs):
            left, right = _bags(piece, self.sources, self.targets)
            self._add(csr_array(left.T @ right))
            self.pairs += len(piece)
        return self

    def merge(self, other: Counts) -> Counts:
        """Add what another has counted; its words may have other numbers."""
        rows = np.array([self.sources[w] for w in other.sources], np.int64)
        columns = np.array([self.targets[w] for w in other.targets], np.int64)
        cells = other.matrix.tocoo()
        places = rows[cells.coords[0]], columns[cells.coords[1]]
        shape = len(self.sources), len(self.targets)
        self._add(csr_array(coo_array((cells.data, places), shape=shape)))
        self.pairs += other.pairs
        return self

    def result(self) -> Cooccurrence:
        """What was counted so far."""
        self.matrix.sort_indices()
        return Cooccurrence(self.matrix, self.sources.words, self.targets.words, self.pairs)

    def _add(self, more: csr_array) -> None:
        self.matrix.resize(more.shape)
        self.matrix = csr_array(self.matrix + more)

    def to_json(self) -> str:
        """As one line of text: how a worker hands over what it counted."""
        cells = self.matrix.tocoo()
        plain = {
            "sources": list(map(_plain, self.sources)),
            "targets": list(map(_plain, self.targets)),
            "pairs": self.pairs,
            "rows": cells.coords[0].tolist(),
            "columns": cells.coords[1].tolist(),
            "values": cells.data.tolist(),
        }
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> Counts:
        """The inverse of `to_json`; numbers come back to the last bit."""
        data, made = json.loads(text), cls()
        made.sources, made.targets = Numbers(data["sources"]), Numbers(data["targets"])
        shape = len(made.sources), len(made.targets)
        places = np.array(data["rows"], np.int64), np.array(data["columns"], np.int64)
        made.matrix = csr_array(coo_array((np.array(data["values"]), places), shape=shape))
        made.pairs = data["pairs"]
        return made


def count(pairs: Iterable[Pair]) -> Counts:
    """The counts of some sentence pairs; counts of several pieces merge."""
    return Counts().update(pairs)


def cooccurrence(pairs: Pairs, jobs: int = 1, n: int | None = None) -> Cooccurrence:
    """C(i, o) = Σ over sentence pairs of (1/L) · times that i and o meet (snell2021, eq. 16).

    `pairs` is any iterable of (source words, target words), words being strings or integers, read
    once, piece by piece; or a task or a run, whose training pairs are counted (`n` of them). With
    `jobs` above 1, that many processes count pieces.

    >>> c = regard.cooccurrence([("der film".split(), "the movie".split())])
    >>> c.value("film", "movie")
    0.5
    """
    if jobs < 1:
        raise RegardError(f"jobs={jobs} does not fit: it is 1 or more.")
    stream = training_pairs(pairs, n)
    if jobs == 1:
        return _some(count(stream))
    from regard.instruments.counting import counted_by

    return _some(counted_by(jobs, stream))


def _some(counts: Counts) -> Cooccurrence:
    if not counts.pairs:
        raise RegardError("There are no pairs of sentences, so there is nothing to count.")
    return counts.result()


def bags(
    pairs: Sequence[Pair], sources: Iterable[Word], targets: Iterable[Word]
) -> tuple[csr_array, csr_array]:
    """X, the share of each source word in its sentence, and Y, the counts of target words.

    -> sparse (sentence, source word) and (sentence, target word), so that C = Xᵀ Y
    """
    return _bags(pairs, Numbers(sources), Numbers(targets))


def _bags(piece: Sequence[Pair], sources: Numbers, targets: Numbers) -> tuple[csr_array, csr_array]:
    given = sides(piece)
    ours, theirs = Sentences.of(given[0], sources), Sentences.of(given[1], targets)
    shares = (1 / np.maximum(ours.lengths, 1))[ours.sentence]
    return (
        _by_sentence(ours, len(sources), shares),
        _by_sentence(theirs, len(targets), np.ones(len(theirs.words))),
    )


def _by_sentence(side: Sentences, words: int, values: Array) -> csr_array:
    """(sentence, word), with a value for each word that is there; repeated words add up."""
    indptr = np.concatenate([[0], np.cumsum(side.lengths)])
    return csr_array((values, side.words, indptr), shape=(len(side.lengths), words))


def _plain(word: Word) -> Word:
    return word if isinstance(word, str) else int(word)


def _listed(found: Sequence[tuple[Word, float]]) -> str:
    return ", ".join(f"{word} {value:.3g}" for word, value in found)
