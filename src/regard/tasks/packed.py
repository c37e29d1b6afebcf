"""Rows without padding: word numbers one behind the other, padded when some of them are taken."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.tasks.batch import Batch, Ints
from regard.tasks.vocabulary import PAD

if TYPE_CHECKING:
    import torch
    from torch import Tensor


RELEASED = 2**14  # rows of mapped files that are gone through before their pages are given back
WordNumbers = NDArray[Any]  # of 16 or 32 bits


@dataclass(frozen=True)
class Side:
    """The word numbers of many rows: row `i` is `lengths[i]` of `numbers` from `starts[i]` on.

    The arrays may be files that are mapped into memory; `maps` are these files.
    """

    numbers: WordNumbers  # (words of all rows,)
    starts: Ints  # (rows,)
    lengths: NDArray[Any]  # (rows,)
    maps: tuple[mmap.mmap, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> Side:
        """Rows of numbers, which may come one at a time."""
        numbers, lengths = array("i"), array("q")
        for row in rows:
            numbers.extend(row)
            lengths.append(len(row))
        return cls.joined(np.array(numbers, np.int32), np.array(lengths, np.int64))

    @classmethod
    def joined(cls, numbers: WordNumbers, lengths: Ints) -> Side:
        """Rows that stand one behind the other."""
        return cls(numbers, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)

    def take(self, index: slice | Ints | NDArray[np.bool_]) -> Side:
        """Some of the rows; the numbers are shared."""
        return Side(self.numbers, self.starts[index], self.lengths[index], self.maps)

    def pad(self) -> Ints:
        """The rows side by side, filled up at the end. -> (rows, longest)"""
        padded = np.full((len(self.lengths), self.lengths.max(initial=0)), PAD, dtype=np.int64)
        padded[np.arange(padded.shape[1]) < self.lengths[:, None]] = self._in_order()
        return padded

    def compact(self) -> Side:
        """The same rows with numbers of their own, in memory."""
        return Side.joined(self._in_order(), self.lengths.astype(np.int64))

    def release(self) -> None:
        """Give back the pages of mapped files; they are read again when they are needed."""
        for each in self.maps:
            if hasattr(mmap, "MADV_DONTNEED"):
                each.madvise(mmap.MADV_DONTNEED)

    def _in_order(self) -> WordNumbers:
        """The numbers of these rows alone, one behind the other."""
        before = np.cumsum(self.lengths, dtype=np.int64) - self.lengths  # words in the rows before
        places = np.repeat(self.starts - before, self.lengths)
        places += np.arange(len(places))
        return np.asarray(self.numbers[places])


class PackedBatch(Batch):
    """A batch whose rows are padded when they are needed, and only as far as they need it.

    One row of 2,000 words among 300,000 short ones then costs 2,000 numbers, not 600 million.
    `batch[index]` is packed, too; `pieces`, `to` and `padded` make tensors, of these rows alone.
    So do `source` and `target`, each time they are asked for: of a large corpus, take pieces.
    """

    def __init__(
        self, sources: Side, targets: Side, change: Callable[[Batch], Batch] | None = None
    ):
        for name, value in {"_sides": (sources, targets), "_then": change}.items():
            object.__setattr__(self, name, value)  # it is as frozen as any batch

    _sides: tuple[Side, Side]
    _then: Callable[[Batch], Batch] | None

    def __len__(self) -> int:
        return len(self._sides[0].lengths)

    def __getitem__(self, index: slice | Tensor | Ints) -> PackedBatch:
        """Some of the rows, still packed."""
        picked = index if isinstance(index, (slice, np.ndarray)) else index.cpu().numpy()
        sources, targets = self._sides
        return PackedBatch(sources.take(picked), targets.take(picked), self._then)

    def padded(self) -> Batch:
        """These rows as tensors."""
        sources, targets = self._sides
        lengths = (side.lengths.astype(np.int64) for side in self._sides)  # rows may be shared
        batch = Batch.of(sources.pad(), next(lengths), targets.pad(), next(lengths))
        return batch if self._then is None else self._then(batch)

    def pieces(self, size: int) -> Iterator[Batch]:
        """The rows in order, at most `size` at a time, each piece padded by itself."""
        for start in range(0, len(self), size):
            yield self[start : start + size].padded()
            if start // RELEASED != (start + size) // RELEASED:
                self.release()

    @property
    def lengths(self) -> tuple[Ints, Ints]:
        """How long each source and each target is, as numpy. (batch,) each"""
        sources, targets = (side.lengths.astype(np.int64) for side in self._sides)
        return sources, targets

    def compact(self) -> PackedBatch:
        """The same rows with memory of their own, still packed."""
        sources, targets = (side.compact() for side in self._sides)
        return PackedBatch(sources, targets, self._then)

    def release(self) -> None:
        """Give back the memory of mapped files; see `Side.release`."""
        for side in self._sides:
            side.release()

    def apply(self, change: Callable[[Batch], Batch]) -> Batch:
        """The batch with a change that is made when rows are padded; lengths must stay."""
        return PackedBatch(*self._sides, change)

    def to(self, device: torch.device | str) -> Batch:
        """The rows as tensors on a device."""
        return self.padded().to(device)

    @property
    def source(self) -> Tensor:
        """All sources, padded anew. (batch, source)"""
        return self.padded().source

    @property
    def source_lengths(self) -> Tensor:
        """How long each source is. (batch,)"""
        return _lengths(self._sides[0])

    @property
    def target(self) -> Tensor:
        """All targets, padded anew. (batch, target)"""
        return self.padded().target

    @property
    def target_lengths(self) -> Tensor:
        """How long each target is. (batch,)"""
        return _lengths(self._sides[1])

    @property
    def alignment(self) -> None:
        """Texts say nothing of attention."""
        return None


def _lengths(side: Side) -> Tensor:
    import torch

    return torch.from_numpy(side.lengths.astype(np.int64))  # a copy: rows may be shared
