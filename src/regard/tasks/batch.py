"""A batch: source and target sequences, and how long each of them really is.

Tasks draw with numpy and know nothing of torch; it is imported where a batch is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.tasks.vocabulary import PAD, SOS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Sequences side by side, padded at the end. Lengths travel with the tensors.

    A target holds its words and then `<EOS>` where the task has one, never `<SOS>`.
    `alignment` is the source position that each target word should attend to, -1 where none.
    `fed` is what a teacher feeds, where that is not `<SOS>` and the words before; a source that is
    not words has a vector for each position.
    """

    source: Tensor  # (batch, source), int64; or (batch, source, features)
    source_lengths: Tensor  # (batch,)
    target: Tensor  # (batch, target), int64
    target_lengths: Tensor  # (batch,)
    alignment: Tensor | None = None  # (batch, target), int64
    fed: Tensor | None = None  # (batch, target), int64

    @classmethod
    def of(cls, *arrays: Ints | None) -> Batch:
        """The batch of numpy arrays, given in the order of its fields."""
        import torch

        return cls(*(None if x is None else torch.from_numpy(x) for x in arrays))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.source.shape[0]

    @property
    def source_mask(self) -> Tensor:
        """True where the source has a word. (batch, source)"""
        return mask(self.source_lengths, self.source.shape[1])

    @property
    def target_mask(self) -> Tensor:
        """True where the target has a word. (batch, target)"""
        return mask(self.target_lengths, self.target.shape[1])

    @property
    def inputs(self) -> Tensor:
        """What a teacher feeds the decoder: `<SOS>`, then the target without its last word."""
        import torch

        if self.fed is not None:
            return self.fed
        start = torch.full_like(self.target[:, :1], SOS)
        return torch.cat([start, self.target[:, :-1]], dim=1)  # (batch, target)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return self._change(lambda x: x.to(device))

    def __getitem__(self, index: slice | Tensor | Ints) -> Batch:
        """Some of the rows, with padding that no row needs any more cut away."""
        if isinstance(index, np.ndarray):
            import torch

            index = torch.from_numpy(index)
        rows = self._change(lambda x: x[index])
        if not len(rows):
            return rows
        source, target = int(rows.source_lengths.max()), int(rows.target_lengths.max())
        return replace(
            rows,
            source=rows.source[:, :source],
            target=rows.target[:, :target],
            alignment=None if rows.alignment is None else rows.alignment[:, :target],
            fed=None if rows.fed is None else rows.fed[:, :target],
        )

    def part(self, start: int, end: int) -> Batch:
        """The rows from `start` to `end` as they stand, with all padding."""
        return self._change(lambda x: x[start:end])

    def pieces(self, size: int) -> Iterator[Batch]:
        """The batch in pieces of at most `size` rows, in order."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def padded(self) -> Batch:
        """The batch as tensors, which it is; a `PackedBatch` becomes so here."""
        return self

    def apply(self, change: Callable[[Batch], Batch]) -> Batch:
        """The batch with a change to it."""
        return change(self)

    def _change(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return Batch(*(None if x is None else change(x) for x in vars(self).values()))  # type: ignore[arg-type]


def mask(lengths: Tensor, width: int) -> Tensor:
    """True at the first `lengths` of `width` positions. (batch,) -> (batch, width)"""
    import torch

    return torch.arange(width, device=lengths.device)[None, :] < lengths[:, None]


def collate(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    alignments: Sequence[Sequence[int]] | None = None,
) -> Batch:
    """Lists of word numbers, and of source positions where known, as one padded batch."""
    alignment = None if alignments is None else pad(alignments, fill=-1)[0]
    return Batch.of(*pad(sources), *pad(targets), alignment)


def pad(rows: Sequence[Sequence[int]], fill: int = PAD) -> tuple[Ints, Ints]:
    """Rows of numbers, filled up at the end, and their lengths. -> (batch, width), (batch,)"""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    padded = np.full((len(rows), int(lengths.max(initial=0))), fill, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = [x for row in rows for x in row]
    return padded, lengths


def reverse(rows: Tensor, lengths: Tensor) -> Tensor:
    """Each row backwards up to its own length; padding stays at the end.

    Works on (batch, width) and on (batch, width, features) alike.
    """
    import torch

    places = torch.arange(rows.shape[1], device=rows.device)[None, :]
    backwards = lengths[:, None] - 1 - places  # (batch, width), negative in the padding
    backwards = torch.where(backwards >= 0, backwards, places)
    if rows.dim() == 3:
        return rows.gather(1, backwards[:, :, None].expand_as(rows))
    return rows.gather(1, backwards)


def reverse_sources(batch: Batch, starts: bool = False, ends: bool = True) -> Batch:
    """The batch with each source backwards; alignments follow.

    Where sources start with `<SOS>` or end in `<EOS>`, these stay where they are.
    """
    import torch

    first, last = int(starts), (batch.source_lengths - 1 - int(ends))[:, None]  # of the words

    def move(places: Tensor) -> Tensor:  # neither the special ones nor "nowhere" move
        return torch.where((places >= first) & (places <= last), first + last - places, places)

    places = torch.arange(batch.source.shape[1], device=batch.source.device)
    source = batch.source.gather(1, move(places.expand_as(batch.source)))
    alignment = None if batch.alignment is None else move(batch.alignment)
    return replace(batch, source=source, alignment=alignment)
