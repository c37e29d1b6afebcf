"""Who meets whom in a corpus: what expectation maximisation goes through again and again.

A group is a different target word of a sentence pair, a cell a source word and a target word that
meet somewhere, and a meeting a source position with a group. In pieces of bounded size, meetings
are a sparse matrix (cell, group) of ones, and both steps of IBM Model 1 are products with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from regard.errors import RegardError
from regard.instruments.pairs import Sentences
from regard.recordings.storage import Array

MEETINGS = 1 << 20  # in a piece: what is sorted at a time
BITS = 63  # of a number that holds a source word, a target word and a group


@dataclass(frozen=True)
class Piece:
    """The meetings of some sentence pairs. Cells are in order."""

    meets: csr_array  # (cell of this piece, group), ones
    cells: Array  # (cell of this piece,), codes first, then places among all cells
    times: Array  # (group,), how often the target word is in its sentence
    lengths: Array  # (group,), positions of the source sentence


@dataclass(frozen=True)
class Meetings:
    """All meetings, and the cells that they fill."""

    pieces: tuple[Piece, ...]
    rows: Array  # (cell,), the source word
    columns: Array  # (cell,), the target word

    @classmethod
    def of(cls, ours: Sentences, theirs: Sentences, words: tuple[int, int]) -> Meetings:
        """Of numbered source and target sentences, and how many words there are on each side."""
        shift = words[1].bit_length()
        longest = int((ours.lengths * theirs.lengths).max())
        ones = np.ones(min(MEETINGS + longest, int(ours.lengths @ theirs.lengths)))
        found = [_piece(*part, words, ones) for part in _parts(ours, theirs)]
        codes = np.sort(np.concatenate([piece.cells for piece in found]))
        codes = codes[np.diff(codes, prepend=-1) > 0]  # np.unique is five times slower
        placed = (replace(p, cells=np.searchsorted(codes, p.cells)) for p in found)
        return cls(tuple(placed), codes >> shift, codes & ((1 << shift) - 1))

    def step(self, translation: Array) -> tuple[Array, float]:
        """Expected counts of the cells, given Trans of each, and the log-likelihood of that Trans.

        (cell,) -> (cell,), Σ log (1/L) Σ_l Trans(y_t|x_l)
        """
        counts, likelihood = np.zeros(len(translation)), 0.0
        for piece in self.pieces:
            part = translation[piece.cells]
            sums = piece.meets.T @ part  # (group,): Σ_l Trans(y_t|x_l)
            likelihood += float(piece.times @ np.log(sums / piece.lengths))
            counts[piece.cells] += part * (piece.meets @ (piece.times / sums))
        return counts, likelihood

    def likelihood(self, translation: Array) -> float:
        """The log-likelihood alone."""
        return sum(
            float(p.times @ np.log((p.meets.T @ translation[p.cells]) / p.lengths))
            for p in self.pieces
        )


def _parts(ours: Sentences, theirs: Sentences) -> Iterator[tuple[Sentences, Sentences]]:
    """Both sides in pieces of sentences, none with many more meetings than `MEETINGS`."""
    ends = np.cumsum(ours.lengths * theirs.lengths)
    stops = np.searchsorted(ends, np.arange(MEETINGS, ends[-1] + MEETINGS, MEETINGS)) + 1
    stops = np.unique(np.minimum(stops, len(ends)))
    for start, stop in zip((0, *stops[:-1]), stops, strict=True):
        yield _cut(ours, start, stop), _cut(theirs, start, stop)


def _cut(side: Sentences, start: int, stop: int) -> Sentences:
    first = side.starts[start]
    lengths = side.lengths[start:stop]
    return Sentences(side.words[first : first + lengths.sum()], lengths)


def _piece(ours: Sentences, theirs: Sentences, words: tuple[int, int], ones: Array) -> Piece:
    """Sort the meetings by cell: source word, target word, group, packed into one number.

    All pieces share the `ones`, so that a meeting takes the four bytes of its group.
    """
    shift = words[1].bit_length()
    grouped, times = np.unique((theirs.sentence << shift) | theirs.words, return_counts=True)
    sentence, word = grouped >> shift, grouped & ((1 << shift) - 1)
    widths = ours.lengths[sentence]
    bits = len(grouped).bit_length()
    _fits(words, bits)
    group = np.repeat(np.arange(len(grouped)), widths)
    place = np.arange(len(group)) + np.repeat(
        ours.starts[sentence] - (np.cumsum(widths) - widths), widths
    )
    packed = (ours.words[place].astype(np.int64) << (shift + bits)) | (
        np.repeat((word << bits) | np.arange(len(grouped)), widths)
    )
    packed.sort()
    codes, groups = packed >> bits, (packed & ((1 << bits) - 1)).astype(np.int32)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    indptr = np.append(first, len(codes))
    shape = len(first), len(grouped)
    meets = csr_array((ones[: len(codes)], groups, indptr.astype(np.int32)), shape=shape)
    return Piece(meets, codes[first], times.astype(np.float64), widths.astype(np.float64))


def _fits(words: Sequence[int], bits: int) -> None:
    if sum(count.bit_length() for count in words) + bits > BITS:
        raise RegardError(
            f"{words[0]} source words and {words[1]} target words are too many to count together."
            " Replace rare words by one, or cut words into pieces."
        )
