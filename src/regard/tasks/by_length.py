"""Training batches of rows that are about as long as each other, so that little is padding."""

from __future__ import annotations

import numpy as np

from regard.tasks.batch import Ints
from regard.tasks.order import order_rows
from regard.tasks.packed import PackedBatch

ROWS = 2**14  # that are sorted by length together, at least …
BATCHES = 128  # … or so many batches, where batches are large
KEPT = 2  # windows in memory


class ByLength:
    """Batches of one set of rows, each a function of update, size and seed.

    An epoch is all rows in an order of its own (`order_rows`). Some thousand rows of it at a time,
    a window, are sorted by length and cut into batches, whose order is drawn again. Only rows at
    the border of two epochs, which share a batch, are taken as they come.
    """

    def __init__(self, rows: PackedBatch):
        self.rows = rows
        self._windows: dict[tuple[int, ...], PackedBatch] = {}

    def batch(self, update: int, size: int, seed: int) -> PackedBatch:
        """The rows of one update, packed."""
        count = len(self.rows)
        epoch, inside = divmod(update * size, count)
        if inside + size > count:
            return self._at_border(update * size, size, seed)
        head = -epoch * count % size  # rows that ended a batch of the epoch before
        batches, number = (count - head) // size, (inside - head) // size
        windows = -(-batches // max(BATCHES, ROWS // size))
        window = ((number + 1) * windows - 1) // batches
        first, last = window * batches // windows, (window + 1) * batches // windows
        found = self._window(seed, epoch, head + first * size, last - first, size)
        return found[(number - first) * size : (number - first + 1) * size]

    def _at_border(self, start: int, size: int, seed: int) -> PackedBatch:
        count = len(self.rows)
        epochs, inside = np.divmod(np.arange(start, start + size), count)
        parts = [
            order_rows(inside[epochs == epoch], seed, int(epoch), count)
            for epoch in np.unique(epochs)
        ]
        return self.rows[np.concatenate(parts)]

    def _window(self, seed: int, epoch: int, start: int, batches: int, size: int) -> PackedBatch:
        """`batches` batches from place `start` of an epoch on, one behind the other, in memory."""
        key = seed, epoch, start, size
        if key not in self._windows:
            places = np.arange(start, start + batches * size)
            rows = self.rows[order_rows(places, seed, epoch, len(self.rows))]
            order = sort_by_length(*rows.lengths).reshape(batches, size)
            drawn = np.random.default_rng([seed, epoch, start]).permutation(batches)
            made = rows[order[drawn].ravel()].compact()
            self.rows.release()
            while len(self._windows) >= KEPT:
                del self._windows[next(iter(self._windows))]
            self._windows[key] = made
        return self._windows[key]


def sort_by_length(sources: Ints, targets: Ints) -> Ints:
    """Rows in order of their sources' length, then of their targets'. (rows,) -> (rows,)

    Targets rise under one length of the source and fall under the next, so that neighbours are
    alike there, too. Rows that are equally long stay in order.
    """
    return np.lexsort((np.where(sources % 2, -targets, targets), sources))
