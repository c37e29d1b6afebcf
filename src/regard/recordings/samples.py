"""The samples that are put to a model, in pieces that are made when they are asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import accumulate

from regard.errors import RegardError
from regard.tasks import Batch, CorpusTask, Task

PIECE = 250  # samples that go through the model at once


class Pieces:
    """Batches in order: how long each is, and the one of a number."""

    def __init__(self, lengths: list[int], get: Callable[[int], Batch]):
        self.get = get
        self.starts = [0, *accumulate(lengths)]  # and after the last, how many samples there are

    @classmethod
    def of(cls, batches: Iterable[Batch]) -> Pieces:
        """Batches that are there."""
        kept = list(batches)
        return cls([len(batch) for batch in kept], kept.__getitem__)

    @property
    def samples(self) -> int:
        """How many there are in all."""
        return self.starts[-1]

    def __iter__(self) -> Iterator[Batch]:
        return (self.get(number) for number in range(len(self.starts) - 1))

    def cover(self, first: int, stop: int) -> tuple[list[Batch], int]:
        """The pieces that hold some samples, and how many samples of them come before."""
        begin = bisect_right(self.starts, first) - 1
        end = next(n for n, start in enumerate(self.starts) if start >= stop)
        return [self.get(number) for number in range(begin, end)], first - self.starts[begin]

    def digest(self) -> str:
        """A hash of all that is in them."""
        found = sha256()
        for batch in self:
            for name, value in sorted(vars(batch.padded()).items()):
                if value is not None:
                    found.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
                    found.update(value.cpu().contiguous().numpy().tobytes())
        return found.hexdigest()


def draw_samples(task: Task, n: int, seed: int = 0, split: str | None = None) -> Pieces:
    """`n` samples of a task in pieces: a function of the arguments."""
    if n < 1:
        raise RegardError(f"n={n} does not fit: record 1 sample or more.")
    if split is None and isinstance(task, CorpusTask):
        split = task.default_split  # such a task has no fresh examples
    if split is not None and split not in task.splits:
        raise RegardError(f"The task has no split '{split}'. It has: {', '.join(task.splits)}.")
    if split is None:
        lengths = [min(PIECE, n - start) for start in range(0, n, PIECE)]
        return Pieces(lengths, lambda number: task.fresh(lengths[number], seed, number))
    rows = task.split(split)[:n]
    lengths = [min(PIECE, len(rows) - start) for start in range(0, len(rows), PIECE)]
    return Pieces(lengths, lambda k: rows[k * PIECE : (k + 1) * PIECE].padded())
