"""Who meets whom in a corpus: what expectation maximisation goes through again and again.

A group is a different target word of a sentence pair, a cell a source word and a target word that
meet somewhere, and a meeting a source position with a group. Some thousand pairs at a time make a
piece: a sparse matrix (cells of the piece, group) of ones; both steps of IBM Model 1 are products
with it. Of the whole corpus only the cells are in memory: pieces that are too many are in files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from regard.errors import RegardError
from regard.instruments.words._pairs import Sentences
from regard.instruments.words._sparse_sum import split_rows
from regard.instruments.words._spool import Piece, Spool
from regard.recordings.storage import Array

SHIFT = 32  # bits of the target word in the number of a cell
MEETINGS = 1 << 21  # in a piece, about
CELLS = 1 << 22  # that are sorted at a time, about
MOST = 2**31 - 1  # cells that a table can have
BITS = 63  # of the number that a meeting is while it is sorted


@dataclass(frozen=True)
class Groups:
    """The different target words of each sentence pair, in order of pair and word."""

    sentence: Array  # (group,)
    word: Array  # (group,)
    times: Array  # (group,), how often the word is in the sentence

    @classmethod
    def of(cls, theirs: Sentences) -> Groups:
        """Of target sentences."""
        codes, times = np.unique((theirs.sentence << SHIFT) | theirs.words, return_counts=True)
        return cls(codes >> SHIFT, codes & ((1 << SHIFT) - 1), times)


class Meetings:
    """The meetings of a corpus, piece by piece, and the cells that they fill.

    Cells are in order of source word and target word: `indptr` says where those of each source
    word begin, `columns` has their target words.
    """

    def __init__(self, pieces: Iterable[tuple[Sentences, Sentences]]):
        """Of source and target sentences in word numbers, some pairs at a time."""
        self.spool = Spool()
        entries = np.zeros(0, np.int64)  # of each source word, in all pieces
        for ours, theirs in chain.from_iterable(map(_part, pieces)):
            codes, meetings = _meet(ours, theirs)
            more = np.bincount(codes >> SHIFT)
            entries = _add(entries, more)
            self.spool.append(codes=codes, cells=np.zeros(len(codes), np.int32), **meetings)
        self.indptr, self.columns = self._find_cells(entries)

    def _find_cells(self, entries: Array) -> tuple[Array, Array]:
        """Every cell once, for some source words at a time; pieces note the places of theirs."""
        sizes, columns, start = np.zeros(len(entries) + 1, np.int64), [], 0
        for first, last in pairwise(split_rows(entries, CELLS)):
            borders = np.array([first, last], np.int64) << SHIFT
            slices = [slice(*np.searchsorted(p["codes"], borders)) for p in self.spool]
            found = _unite(p["codes"][part] for p, part in zip(self.spool, slices, strict=True))
            for piece, part in zip(self.spool.changing(), slices, strict=True):
                if part.start < part.stop:
                    piece["cells"][part] = start + np.searchsorted(found, piece["codes"][part])
            sizes[first + 1 : last + 1] = np.bincount(found >> SHIFT, minlength=last)[first:]
            columns.append((found & ((1 << SHIFT) - 1)).astype(np.int32))
            start += len(found)
            if start > MOST:
                raise RegardError(
                    f"More than {MOST} pairs of words meet in this corpus, which is the limit."
                    " Replace rare words by one, or cut words into pieces."
                )
        self.spool.drop("codes")
        return np.cumsum(sizes), np.concatenate(columns)

    def expect(self, translation: Array) -> Expected:
        """Expected counts of all cells, given Trans of each. (cell,)"""
        expected = Expected(translation)
        for piece in self.spool:
            expected.update(piece)
        return expected


class Expected:
    """An accumulator of what Trans makes of pieces: expected counts, and how likely they are.

    Its memory is a number for each cell; those of several pieces merge.
    """

    def __init__(self, translation: Array):
        self.translation, self.likelihood = translation, 0.0
        self.shares = np.zeros(len(translation))  # (cell,), Σ times / Σ_l Trans(y_t|x_l)

    def update(self, piece: Piece) -> Expected:
        """Add a piece."""
        cells, times = piece["cells"], piece["times"].astype(np.float64)
        groups, lengths = piece["groups"], piece["lengths"]  # (meeting,), and (group,) of sources
        indptr = np.concatenate([[0], np.cumsum(piece["sizes"])])
        shape = len(cells), len(lengths)
        met = csr_array((np.ones(len(groups)), groups, indptr), shape=shape)
        sums = met.T @ self.translation[cells]
        self.shares[cells] += met @ (times / sums)
        self.likelihood += float(times @ np.log(sums / lengths))
        return self

    def merge(self, other: Expected) -> Expected:
        """Add what another one found with the same Trans."""
        self.shares += other.shares
        self.likelihood += other.likelihood
        return self

    def result(self) -> tuple[Array, float]:
        """Expected counts of the cells, and Σ log (1/L) Σ_l Trans(y_t|x_l). (cell,)"""
        self.shares *= self.translation
        return self.shares, self.likelihood


def normalise_rows(values: Array, indptr: Array) -> None:
    """Divide the cells of each source word by their sum, in place, some words at a time."""
    for first, last in pairwise(split_rows(np.diff(indptr), CELLS)):
        part = slice(indptr[first], indptr[last])
        sizes = np.diff(indptr[first : last + 1])
        rows = np.repeat(np.arange(last - first), sizes)
        values[part] /= np.bincount(rows, values[part], last - first)[rows]


def _part(piece: tuple[Sentences, Sentences]) -> Iterator[tuple[Sentences, Sentences]]:
    """A piece in parts with about as many meetings, so that long sentences do not fill memory."""
    ours, theirs = piece
    number = np.cumsum(ours.lengths * theirs.lengths) // MEETINGS
    for part in np.unique(number):
        yield ours.keep(number == part), theirs.keep(number == part)


def _meet(ours: Sentences, theirs: Sentences) -> tuple[Array, dict[str, Array]]:
    """The cells of a piece as numbers, in order, and its meetings: groups, cell by cell."""
    groups = Groups.of(theirs)
    lengths = ours.lengths[groups.sentence]
    before = np.cumsum(lengths) - lengths
    positions = np.arange(lengths.sum()) + np.repeat(ours.starts[groups.sentence] - before, lengths)
    found = _sort(ours.words[positions], groups.word, lengths)
    words, group = found[0] << SHIFT | found[1], found[2]
    first = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
    small: dict[str, Any] = {
        "groups": group,
        "sizes": np.diff(first, append=len(words)),
        "lengths": lengths,
        "times": groups.times,
    }
    return words[first], {name: values.astype(np.int32) for name, values in small.items()}


def _sort(sources: Array, targets: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """Source word, target word and group of each meeting, in this order.

    sources (meeting,), targets and lengths (group,). The three are sorted as one number.
    """
    low, high = len(targets).bit_length(), int(targets.max()).bit_length()
    if int(sources.max()).bit_length() + high + low > BITS:
        raise RegardError(
            "There are too many different words to count together."
            " Replace rare words by one, or cut words into pieces."
        )
    codes = np.repeat((targets << low) | np.arange(len(targets)), lengths)
    codes |= sources.astype(np.int64) << (high + low)
    codes.sort()
    return codes >> (high + low), (codes >> low) & ((1 << high) - 1), codes & ((1 << low) - 1)


def _unite(arrays: Iterator[Array]) -> Array:
    """What is in any of some arrays that are in order, in order."""
    every = np.sort(np.concatenate([*arrays]), kind="stable")
    new = np.concatenate([[True], every[1:] != every[:-1]])
    return np.asarray(every[new[: len(every)]])


def _add(one: Array, other: Array) -> Array:
    """The sum of two arrays, of which the shorter has zeros at its end."""
    total = np.zeros(max(len(one), len(other)), np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
