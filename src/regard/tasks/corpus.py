"""Tasks whose examples are a fixed set of rows, gone through epoch by epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, TypeVar

import numpy as np

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch, Ints
from regard.tasks.by_length import ByLength
from regard.tasks.order import Permutation
from regard.tasks.packed import PackedBatch
from regard.tasks.task import Task, TaskConfig

H = TypeVar("H", bound=Hashable)

SHUFFLED = 2**22  # rows of which a shuffle is held in memory


class CorpusTask(Task):
    """A task that has its examples instead of drawing them.

    A subclass sets `rows` in its constructor: a batch under "train", and one under the name of
    every split, sources forwards. `collate` makes such a batch from lists of word numbers; a
    `PackedBatch` takes no memory for padding, which a corpus of uneven lengths would be full of.
    Recordings take `default_split`; it may hold training rows only if it holds them all.
    """

    default_split: ClassVar[str] = "test"
    rows: dict[str, Batch]
    _batches: ByLength | None = None

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """`size` training rows, with replacement."""
        train = self.rows["train"]
        return train[rng.integers(len(train), size=size)].padded()

    def train_batch(self, update: int, size: int, seed: int) -> Batch:
        """The next `size` rows of update number `update`, every row once in each epoch.

        Still a function of its arguments only: epoch `e` is a shuffle drawn from `[seed, e]`, and
        a batch may end one epoch and begin the next. Rows of a `PackedBatch` come with others that
        are about as long.
        """
        train = self.rows["train"]
        if isinstance(train, PackedBatch):
            return self._prepare(self._by_length(train).batch(update, size, seed).padded())
        return self._prepare(train[pick_rows(update * size, size, seed, len(train))].padded())

    def _by_length(self, train: PackedBatch) -> ByLength:
        if self._batches is None or self._batches.rows is not train:
            self._batches = ByLength(train)
        return self._batches

    def split(self, name: str) -> Batch:
        """All rows of a split, the same for every seed of every model."""
        self._check_split(name)
        return self.rows[name].apply(self._orient)

    def _check_split(self, name: str) -> None:
        if name not in self.splits:
            raise RegardError(unknown("split", name, self.splits))


def pick_rows(start: int, size: int, seed: int, count: int) -> Ints:
    """Which of `count` rows come at places `start` to `start + size` of all epochs. (size,)"""
    epochs, inside = np.divmod(np.arange(start, start + size), count)
    picked = np.empty(size, dtype=np.int64)
    for epoch in np.unique(epochs):
        mask = epochs == epoch
        picked[mask] = _shuffle(seed, int(epoch), count)[inside[mask]]
    return picked


@lru_cache(maxsize=4)  # a batch needs one epoch, or two; drawing them anew would cost more than it
def _shuffle(seed: int, epoch: int, count: int) -> Ints:
    """The order of `count` rows in one epoch. (count,)"""
    order = np.random.default_rng([seed, epoch]).permutation(count)
    order.setflags(write=False)  # it is shared
    return order


def partition(count: int, sizes: Sequence[int], key: str) -> list[Ints]:
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


def choose_rows(count: int, sizes: Sequence[int], key: str) -> list[Ints]:
    """The parts of `partition` but the rest, which may be too many for memory.

    Of more than four million rows they are drawn without a shuffle of all.
    """
    if count <= SHUFFLED or sum(sizes) >= count:
        return partition(count, sizes, key)[:-1]
    drawn = Permutation.of(count, *sizes)(np.arange(sum(sizes)))
    return [np.sort(part) for part in np.split(drawn, np.cumsum(sizes)[:-1])]


def hold_out(
    parts: Mapping[str, Sequence[H]], size: int, skipped: Counter[str], what: str = "rows"
) -> dict[str, list[H]]:
    """The rows of "train" and of every split; splits that have none get `size` of training's each.

    They are taken out by one fixed shuffle. A row that training has twice then counts once, so
    that none is in two parts; `skipped` counts the others as repeated `what`. Where every split
    has rows of its own, nothing is taken out, and a `size` that was set is refused.
    """
    found = {name: list(rows) for name, rows in parts.items()}
    missing = [name for name in CorpusTask.splits if name not in parts]
    if missing:
        once = list(dict.fromkeys(found["train"]))
        skipped[f"repeated {what}"] += len(found["train"]) - len(once)
        *chosen, rest = partition(len(once), [size] * len(missing), "task.held_out")
        for name, places in zip((*missing, "train"), (*chosen, rest), strict=True):
            found[name] = [once[place] for place in places]
    else:
        refuse_held_out(size)
    return found


def refuse_held_out(size: int) -> None:
    """Refuse a size that was set where every split has rows of its own."""
    if size != TaskConfig().held_out:
        raise RegardError(
            f"task.held_out={size} has no effect, as there are files to validate and test on."
            " Leave it out."
        )
