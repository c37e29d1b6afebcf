"""The sum of many sparse tables, added in order, in time that grows with their cells alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from regard.recordings.storage import Array

SHIFT = 32  # bits of the column in the number of a cell
WAITING = 1 << 22  # cells that wait to be added, at least …
SHARE = 4  # … or a fourth of the cells of the sum
CELLS = 1 << 21  # that are added at a time, about


class SparseSum:
    """((a + b) + c) + …, to the bit, but many tables at a time.

    Each sum reads and writes the whole table, so tables wait until they are worth it together.
    """

    def __init__(self) -> None:
        self._sum = csr_array((0, 0), dtype=np.float64)
        self._waiting: list[csr_array] = []
        self._cells = 0

    def add(self, table: csr_array) -> None:
        """Add a table, which may be larger than those before it. (row, column)"""
        self._waiting.append(table)
        self._cells += table.nnz
        if self._cells > max(WAITING, self._sum.nnz // SHARE):
            self._settle()

    @property
    def total(self) -> csr_array:
        """The sum so far, columns in order in each row."""
        self._settle()
        return self._sum

    def _settle(self) -> None:
        if not self._waiting:
            return
        tables = [self._sum, *self._waiting]
        shape = tuple(max(table.shape[axis] for table in tables) for axis in (0, 1))
        for table in tables:
            table.resize(shape)
        most = sum(table.nnz for table in tables)
        values, columns = np.empty(most), np.empty(most, np.int32)  # what is not filled costs none
        sizes, end = np.zeros(shape[0] + 1, np.int64), 0
        entries = np.sum([np.diff(table.indptr) for table in tables], axis=0)
        for first, last in pairwise(split_rows(entries, CELLS)):
            codes, found = _add_rows(tables, first, last)
            place = slice(end, end + len(codes))
            columns[place], values[place] = codes & ((1 << SHIFT) - 1), found
            sizes[first + 1 : last + 1] = np.bincount(codes >> SHIFT, minlength=last - first)
            end += len(codes)
        self._waiting, self._cells = [], 0
        self._sum = csr_array((values[:end], columns[:end], np.cumsum(sizes)), shape=shape)


def _add_rows(tables: list[csr_array], first: int, last: int) -> tuple[Array, Array]:
    """The cells of some rows, each once and in order, and their sums, added table by table."""
    codes, values = [], []
    for table in tables:
        cells = slice(table.indptr[first], table.indptr[last])
        rows = np.repeat(np.arange(last - first), np.diff(table.indptr[first : last + 1]))
        codes.append((rows << SHIFT) | table.indices[cells])
        values.append(table.data[cells])
    every, places = np.unique(np.concatenate(codes), return_inverse=True)
    sums = np.bincount(places, np.concatenate(values), len(every))  # one after the other
    return every, sums


def split_rows(entries: Array, most: int) -> list[int]:
    """Rows in ranges with about `most` entries each: where they begin, and the end. (row,)"""
    ends = np.cumsum(entries)
    starts = [0]
    while starts[-1] < len(entries):
        before = ends[starts[-1] - 1] if starts[-1] else 0
        after = int(np.searchsorted(ends, before + most, side="right"))
        starts.append(max(starts[-1] + 1, after))
    return starts
