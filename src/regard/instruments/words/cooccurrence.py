"""`cooccurrence`: which words occur in pairs of sentences together (snell2021, eq. 16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from regard.display import Figure, Table
from regard.errors import RegardError
from regard.instruments._settings import Count
from regard.instruments.registry import instrument
from regard.instruments.words._lexicon import Lexicon, LexiconResult, list_words
from regard.instruments.words._pairs import (
    Numbers,
    Pair,
    SentencePairs,
    Sentences,
    Word,
    pieces,
    sides,
)
from regard.instruments.words._sparse_sum import SparseSum
from regard.recordings.storage import Array

SHOWN = 10  # rows of a table
AT_ONCE = 2_000  # sentence pairs that a process counts at a time


@dataclass(frozen=True, eq=False)
class Cooccurrence(Lexicon):
    """C: for each source word i and target word o, the sum over sentence pairs of 1/L per pair.

    `matrix` is C (source word, target word), sparse; `shares` is Trans(o|i) of eq. 17.
    """

    pairs: int = 0  # sentence pairs that were counted
    described = ("pairs", "spread")

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
        return np.asarray(np.sqrt(left) / np.where(means > 0, means, 1))

    def centred(self) -> Array:
        """C − its mean over target words: what eq. 15 says the proxy learns first. Dense."""
        table = self.matrix.toarray()
        return np.asarray(table - table.mean(axis=1, keepdims=True))

    def values(self) -> dict[str, float]:
        """Sizes, and the spread."""
        return {**super().values(), "pairs": float(self.pairs), "spread": self.spread}


class CooccurrenceResult(LexiconResult[Cooccurrence]):
    """Count tables of one corpus or of several; the first is shown."""

    def table(self) -> Table:
        """The words that occur most, with the words that they meet most."""
        first = self.first
        sums = {w: float(first.matrix[[first.rows[w]]].sum()) for w in first.frequent()[0]}
        words = sorted(sums, key=lambda word: -sums[word])[:SHOWN]
        rows = tuple((str(w), sums[w], list_words(first.highest(w, 3))) for w in words)
        title = f"Co-occurrence in {first.pairs} sentence pairs, spread {first.spread:.3g}"
        return Table(title, ("source word", "sum of C", "with"), rows)

    def figure(self) -> Figure:
        """The table as a heat map (snell2021, Figs. 4, 5 and 8)."""
        return Figure(
            "cooccurrence",
            "Sum over sentence pairs of 1/L for every time that two words meet; frequent words.",
            (self.first.heat("Co-occurrence table C", "C(i, o)"),),
        )


class Counts:
    """An accumulator of C: memory for the distinct pairs of words, whatever the corpus.

    Counts merge, in any order, up to the rounding of sums.
    """

    def __init__(self) -> None:
        self.sources, self.targets, self.pairs = Numbers(), Numbers(), 0
        self.table = SparseSum()

    def update(self, pairs: Iterable[Pair]) -> Counts:
        """Count some sentence pairs more, piece by piece."""
        for piece in pieces(pairs):
            left, right = _make_bags(piece, self.sources, self.targets)
            self.table.add(csr_array(left.T @ right))
            self.pairs += len(piece)
        return self

    def merge(self, other: Counts) -> Counts:
        """Add what another has counted; its words may have other numbers."""
        rows = np.array([self.sources[w] for w in other.sources], np.int64)
        columns = np.array([self.targets[w] for w in other.targets], np.int64)
        cells = other.table.total.tocoo()
        places = rows[cells.coords[0]], columns[cells.coords[1]]
        shape = len(self.sources), len(self.targets)
        self.table.add(csr_array(coo_array((cells.data, places), shape=shape)))
        self.pairs += other.pairs
        return self

    def result(self) -> Cooccurrence:
        """What was counted so far."""
        return Cooccurrence(self.table.total, self.sources.words, self.targets.words, self.pairs)


def count_pairs(pairs: Iterable[Pair]) -> Counts:
    """The counts of some sentence pairs; counts of several pieces merge."""
    return Counts().update(pairs)


@instrument(CooccurrenceResult, SentencePairs())
def cooccurrence(pairs: Iterable[Pair], jobs: Count = 1) -> Cooccurrence:
    """C(i, o) = Σ over sentence pairs of (1/L) · times that i and o meet (snell2021, eq. 16).

    `pairs` is any iterable of (source words, target words), words being strings or integers, read
    once, piece by piece; or a task or a run, whose training pairs are counted (`n` of them). With
    `jobs` above 1, that many processes count pieces.

    >>> c = regard.cooccurrence([("der film".split(), "the movie".split())])
    >>> c.value("film", "movie")
    0.5
    """
    counts = count_pairs(pairs) if jobs == 1 else count_in_processes(jobs, pairs)
    if not counts.pairs:
        raise RegardError("There are no pairs of sentences, so there is nothing to count.")
    return counts.result()


def count_in_processes(jobs: int, pairs: Iterable[Pair]) -> Counts:
    """The counts of all pairs, piece by piece, by so many processes; merged in order."""
    from joblib import Parallel, delayed

    work = (delayed(count_pairs)(piece) for piece in pieces(pairs, AT_ONCE))
    total = Counts()
    for counts in Parallel(n_jobs=jobs, return_as="generator")(work):
        total.merge(counts)
    return total


def make_bags(
    pairs: Sequence[Pair], sources: Iterable[Word], targets: Iterable[Word]
) -> tuple[csr_array, csr_array]:
    """X, the share of each source word in its sentence, and Y, the counts of target words.

    -> sparse (sentence, source word) and (sentence, target word), so that C = Xᵀ Y
    """
    return _make_bags(pairs, Numbers(sources), Numbers(targets))


def _make_bags(
    piece: Sequence[Pair], sources: Numbers, targets: Numbers
) -> tuple[csr_array, csr_array]:
    given = sides(piece)
    ours = Sentences.of(given[0], sources.__getitem__)
    theirs = Sentences.of(given[1], targets.__getitem__)
    shares = (1 / np.maximum(ours.lengths, 1))[ours.sentence]
    return (
        _by_sentence(ours, len(sources), shares),
        _by_sentence(theirs, len(targets), np.ones(len(theirs.words))),
    )


def _by_sentence(side: Sentences, words: int, values: Array) -> csr_array:
    """(sentence, word), with a value for each word that is there; repeated words add up."""
    indptr = np.concatenate([[0], np.cumsum(side.lengths)])
    return csr_array((values, side.words, indptr), shape=(len(side.lengths), words))
