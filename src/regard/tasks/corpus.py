"""Tasks whose examples are a fixed set of rows, gone through epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch
from regard.tasks.task import Task


class CorpusTask(Task):
    """A task that has its examples instead of drawing them.

    A subclass sets `rows` in its constructor: a batch under "train", and one under the name of
    every split, sources forwards. `collate` makes such a batch from lists of word numbers.
    Recordings take the split `looked_at`; it may hold training rows only if it holds them all.
    """

    looked_at: ClassVar[str] = "test"
    rows: dict[str, Batch]

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """`size` training rows, with replacement."""
        train = self.rows["train"]
        return train[torch.from_numpy(rng.integers(len(train), size=size))]

    def train_batch(self, update: int, size: int, seed: int) -> Batch:
        """The next `size` rows of update number `update`, every row once in each epoch.

        Still a function of its arguments only: epoch `e` is a shuffle drawn from `[seed, e]`, and
        a batch may end one epoch and begin the next.
        """
        train = self.rows["train"]
        picked = torch.from_numpy(places(update * size, size, seed, len(train)))
        return self._to_train_on(train[picked])

    def split(self, name: str) -> Batch:
        """All rows of a split, the same for every seed of every model."""
        if name not in self.splits:
            raise RegardError(unknown("split", name, self.splits))
        return self._oriented(self.rows[name])


def places(start: int, size: int, seed: int, count: int) -> NDArray[np.int64]:
    """Which of `count` rows come at places `start` to `start + size` of all epochs. (size,)"""
    epochs, inside = np.divmod(np.arange(start, start + size), count)
    picked = np.empty(size, dtype=np.int64)
    for epoch in np.unique(epochs):
        here = epochs == epoch
        picked[here] = shuffled(seed, int(epoch), count)[inside[here]]
    return picked


@lru_cache(maxsize=4)  # a batch needs one epoch, or two; drawing them anew would cost more than it
def shuffled(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """The order of `count` rows in one epoch. (count,)"""
    order = np.random.default_rng([seed, epoch]).permutation(count)
    order.setflags(write=False)  # it is shared
    return order


def parted(count: int, sizes: Sequence[int], key: str) -> list[NDArray[np.int64]]:
    """The numbers below `count` by one fixed shuffle, in parts of `sizes`, the rest as last part.

    Every part is in rising order. `key` names the setting to lower where nothing would be left.
    """
    if sum(sizes) >= count:
        raise RegardError(
            f"{key}={sizes[0]} sets {sum(sizes)} of {count} training rows aside, which leaves none"
            f" to train on. Lower {key}, or give more data."
        )
    order = np.random.default_rng([count, *sizes]).permutation(count)
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes))]
