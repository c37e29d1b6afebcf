"""A number for every source word and target word that were seen together: a sparse table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from regard.display import Heat, Panel
from regard.errors import RegardError
from regard.instruments.result import SIZE, Measured, Result, to_floats
from regard.instruments.scores._scores import Scores
from regard.instruments.words._pairs import Pairs, Sentences, Word, cross, sides, training_pairs
from regard.recordings.storage import Array

PICTURED = 40  # words along an axis of a picture


@dataclass(frozen=True, eq=False)
class Lexicon(Measured):
    """What source words (rows) have to do with target words (columns)."""

    matrix: csr_array  # (source word, target word), columns in order in each row
    sources: tuple[Word, ...]
    targets: tuple[Word, ...]

    @cached_property
    def rows(self) -> dict[Word, int]:
        """The row of each source word."""
        return {word: row for row, word in enumerate(self.sources)}

    @cached_property
    def columns(self) -> dict[Word, int]:
        """The column of each target word."""
        return {word: column for column, word in enumerate(self.targets)}

    @cached_property
    def shares(self) -> csr_array:
        """Each row divided by its sum: Trans(o|i) of a table of counts (snell2021, eq. 17)."""
        return normalise(self.matrix)

    def value(self, source: Word, target: Word) -> float:
        """One cell; 0 for words that were never seen together, or never seen."""
        row, column = self.rows.get(source), self.columns.get(target)
        return 0.0 if row is None or column is None else float(self.matrix[row, column])

    def dense(
        self, sources: Sequence[Word] | None = None, targets: Sequence[Word] | None = None
    ) -> Array:
        """The table of some words, or all of it, with its zeros. (source word, target word)"""
        rows = _places(self.rows, sources, "source")
        columns = _places(self.columns, targets, "target")
        return np.asarray(self.matrix[rows].toarray()[:, columns])

    def highest(self, source: Word, n: int = 5) -> list[tuple[Word, float]]:
        """The `n` target words with the highest numbers in a source word's row."""
        (row,) = _places(self.rows, [source], "source")
        start, stop = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        values, places = self.matrix.data[start:stop], self.matrix.indices[start:stop]
        order = np.argsort(-values, kind="stable")[:n]
        return [(self.targets[places[k]], float(values[k])) for k in order]

    def scores(self, pairs: Pairs) -> Scores:
        """The cell of every target word with every source word of its sentence; 0 where none.

        -> Scores (sample, target, source)
        """
        given = sides(list(training_pairs(pairs)))
        ours = Sentences.of(given[0], lambda word: self.rows.get(word, -1))
        theirs = Sentences.of(given[1], lambda word: self.columns.get(word, -1))
        place, at = cross(ours, theirs, ours.starts[theirs.sentence])
        sample = theirs.sentence[at]
        where = sample, at - theirs.starts[sample], place - ours.starts[sample]
        shape = len(ours.lengths), *(int(s.lengths.max(initial=0)) for s in (theirs, ours))
        values, mask = np.zeros(shape), np.zeros(shape, np.bool_)
        values[where], mask[where] = self._cells(ours.words[place], theirs.words[at]), True
        return Scores(values, mask)

    def _cells(self, rows: Array, columns: Array) -> Array:
        """The cells at rows and columns, of which −1 is none. (cell,)"""
        found = np.zeros(len(rows))
        known = (rows >= 0) & (columns >= 0)
        if known.any():
            found[known] = self.matrix[rows[known], columns[known]]
        return found

    def frequent(self) -> tuple[list[Word], list[Word]]:
        """The words with the largest sums, in the order in which they stand: what is pictured."""
        found: list[list[Word]] = []
        for axis, words in ((1, self.sources), (0, self.targets)):
            weight = np.asarray(self.matrix.sum(axis=axis)).ravel()
            places = np.sort(np.argsort(-weight, kind="stable")[:PICTURED])
            found.append([words[place] for place in places])
        return found[0], found[1]

    def heat(self, title: str, label: str) -> Panel:
        """The table of its most frequent words as colours."""
        ours, theirs = self.frequent()
        values = self.dense(ours, theirs)
        marks = Heat(
            tuple(map(str, ours)),
            tuple(map(str, theirs)),
            tuple(to_floats(row) for row in np.round(values, 4)),
            label,
            0.0,
            float(values.max(initial=0)) or 1.0,
            numbers=max(values.shape) <= 8,
        )
        return Panel(title, "target word", "source word", (marks,))

    def values(self) -> dict[str, float]:
        """How large the table is; the cells themselves are in `matrix`."""
        return {
            "source_words": float(len(self.sources)),
            "target_words": float(len(self.targets)),
            "cells": float(self.matrix.nnz),
        }

    def about(self) -> dict[str, Any]:
        """The sizes, as whole numbers, and what is `described`."""
        sizes = {name: int(value) for name, value in Lexicon.values(self).items()}
        return {**sizes, **super().about()}


L = TypeVar("L", bound=Lexicon)


class LexiconResult(Result[L]):
    """Tables of one corpus or of several; what one table can be asked, the first one is asked."""

    within = SIZE

    @property
    def columns(self) -> dict[Word, int]:  # type: ignore[override]
        """The column of each target word in the first table, not of the table that is shown."""
        return self.first.columns

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "seeds" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.first, name)


def normalise(matrix: csr_array) -> csr_array:
    """Each row divided by its sum, where it has one."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    per_cell = np.repeat(np.where(sums > 0, sums, 1.0), np.diff(matrix.indptr))
    return csr_array((matrix.data / per_cell, matrix.indices, matrix.indptr), shape=matrix.shape)


def _places(known: dict[Word, int], words: Sequence[Word] | None, side: str) -> list[int]:
    if words is None:
        return list(known.values())
    strange = [word for word in words if word not in known]
    if strange:
        raise RegardError(
            f"{strange[0]!r} is no {side} word of this table of {len(known)} words."
            " Words are compared as they were given: upper case counts, and 1 is not '1'."
        )
    return [known[word] for word in words]


def list_words(found: Sequence[tuple[Word, float]]) -> str:
    """Words with their numbers, as a text."""
    return ", ".join(f"{word} {value:.3g}" for word, value in found)
