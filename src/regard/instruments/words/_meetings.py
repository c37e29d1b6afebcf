"""Who meets whom in a corpus: what expectation maximisation goes through again and again.

A group is a different target word of a sentence pair, a cell a source word and a target word that
meet somewhere, and a meeting a source position with a group. Meetings are sparse matrices
(cell, group) of ones, one for each range of source words, so that no cell is in two of them; both
steps of IBM Model 1 are products with them. A meeting takes four bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from regard.errors import RegardError
from regard.instruments.words._pairs import Sentences
from regard.recordings.storage import Array

MEETINGS = 1 << 20  # in a piece, about: what is sorted at a time
BITS = 63  # of the number that a meeting is while it is sorted


@dataclass(frozen=True)
class Groups:
    """The different target words of each sentence pair, in order of pair and word."""

    sentence: Array  # (group,)
    word: Array  # (group,)
    times: Array  # (group,), how often the word is in the sentence
    first: Array  # (sentence + 1,), where the groups of each sentence begin

    @classmethod
    def of(cls, theirs: Sentences, shift: int) -> Groups:
        """Of target sentences whose word numbers have at most `shift` bits."""
        codes, times = np.unique((theirs.sentence << shift) | theirs.words, return_counts=True)
        sentence = codes >> shift
        first = np.searchsorted(sentence, np.arange(len(theirs.lengths) + 1))
        return cls(sentence, codes & ((1 << shift) - 1), times.astype(np.float64), first)


@dataclass(frozen=True)
class Meetings:
    """All meetings, and the cells that they fill, in order of source word and target word."""

    pieces: tuple[csr_array, ...]  # (cells of the piece, group), ones
    rows: Array  # (cell,), the source word
    columns: Array  # (cell,), the target word
    times: Array  # (group,), how often its word is in its sentence
    lengths: Array  # (group,), positions of the source sentence

    @classmethod
    def of(cls, ours: Sentences, theirs: Sentences, words: tuple[int, int]) -> Meetings:
        """Of numbered source and target sentences, and how many words there are on each side."""
        shift = words[1].bit_length()
        groups = Groups.of(theirs, shift)
        bits = len(groups.word).bit_length()
        _fits(words, bits)
        tags = (groups.word << bits) | np.arange(len(groups.word))  # word and group as one number
        found, cells, ones = [], [], np.ones(0)
        sentence = ours.sentence
        for places in _pieces(ours, sentence, groups, words[0]):
            high = ours.words[places].astype(np.int64) << (shift + bits)
            meetings = _meetings(high, groups, sentence[places], tags)
            ones = ones if len(ones) >= len(meetings) else np.ones(len(meetings))
            codes, piece = _sparse(meetings, bits, len(tags), ones)
            found.append(piece)
            cells.append(codes)
        codes = np.concatenate(cells)
        lengths = ours.lengths[groups.sentence].astype(np.float64)
        split = codes >> shift, codes & ((1 << shift) - 1)
        return cls(tuple(found), *split, groups.times, lengths)

    def step(self, translation: Array) -> tuple[Array, float]:
        """Expected counts of the cells, given Trans of each, and the log-likelihood of that Trans.

        (cell,) -> (cell,), Σ log (1/L) Σ_l Trans(y_t|x_l)
        """
        sums = self._sums(translation)
        due = self.times / sums
        counts: Array = translation * np.concatenate([piece @ due for piece in self.pieces])
        return counts, float(self.times @ np.log(sums / self.lengths))

    def likelihood(self, translation: Array) -> float:
        """The log-likelihood alone."""
        return float(self.times @ np.log(self._sums(translation) / self.lengths))

    def _sums(self, translation: Array) -> Array:
        """Σ_l Trans(y_t|x_l) of each group. (cell,) -> (group,)"""
        sums, start = np.zeros(len(self.times)), 0
        for piece in self.pieces:
            sums += piece.T @ translation[start : start + piece.shape[0]]
            start += piece.shape[0]
        return sums


def _pieces(ours: Sentences, sentence: Array, groups: Groups, words: int) -> Iterator[Array]:
    """The source positions in order of their words, whole words at a time."""
    order = np.argsort(ours.words, kind="stable")
    widths = np.diff(groups.first)[sentence]
    ends = np.cumsum(np.bincount(ours.words, widths, words))  # meetings up to each word
    stops = np.cumsum(np.bincount(ours.words, minlength=words))  # positions up to each word
    word = 0
    while word < words:
        before = ends[word - 1] if word else 0
        after = max(word + 1, int(np.searchsorted(ends, before + MEETINGS, side="right")))
        yield order[stops[word - 1] if word else 0 : stops[after - 1]]
        word = after


def _meetings(words: Array, groups: Groups, sentence: Array, tags: Array) -> Array:
    """Source word, target word and group of every meeting of some positions, as sorted numbers.

    words, sentence (position,) -> (meeting,)
    """
    first = groups.first[sentence]
    widths = groups.first[sentence + 1] - first
    group = np.arange(widths.sum()) + np.repeat(first - (np.cumsum(widths) - widths), widths)
    found: Array = tags[group]
    found |= np.repeat(words, widths)
    found.sort()
    return found


def _sparse(meetings: Array, bits: int, groups: int, ones: Array) -> tuple[Array, csr_array]:
    """Sorted meetings as the codes of their cells and a matrix (cell, group)."""
    codes = meetings >> bits
    inner = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    indptr = np.concatenate([[0], inner, [len(codes)]]).astype(np.int32)
    places = (meetings & ((1 << bits) - 1)).astype(np.int32)
    matrix = csr_array((ones[: len(codes)], places, indptr), shape=(len(indptr) - 1, groups))
    return codes[indptr[:-1]], matrix


def _fits(words: tuple[int, int], bits: int) -> None:
    if sum(count.bit_length() for count in words) + bits > BITS:
        raise RegardError(
            f"{words[0]} source words and {words[1]} target words are too many to count together."
            " Replace rare words by one, or cut words into pieces."
        )
