"""How a padded batch is packed, so that its padding costs nothing.

Rows are sorted by length: step t is then the first rows, just those that are still there.

Packed axes: `packed` runs over (time, row) for the rows that are there at that time, time by
time; `rows` is the batch, longest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

Blocks = list[tuple[int, int, int]]  # per step: rows there, first packed row, first row before


@dataclass(frozen=True)
class Layout:
    """How a padded batch (batch, time) is packed."""

    batch: int
    time: int
    blocks: Blocks
    index: Tensor | None  # (packed,) into (batch · time); None where nothing is padded
    order: Tensor | None  # (rows,) into the batch; None where nothing is padded
    final: Tensor  # (batch,) into packed: where each row ends
    fresh: bool  # the first state is zero and nobody's: its products need not be taken

    @classmethod
    def of(
        cls,
        batch: int,
        time: int,
        lengths: Tensor | None,
        device: torch.device,
        fresh: bool = False,
    ) -> Layout:
        """The layout for some lengths, all of them at least 1.

        The last few are remembered: layers, directions and often both sides share theirs.
        """
        key = None if lengths is None else lengths.cpu().numpy().tobytes()
        return _layout(batch, time, key, device, fresh)

    def pack(self, x: Tensor) -> Tensor:
        """(batch, time, features) -> (packed, features)"""
        if self.index is None:
            return x.transpose(0, 1).flatten(0, 1)
        return x.flatten(0, 1).index_select(0, self.index)

    def unpack(self, packed: Tensor) -> Tensor:
        """(packed, features) -> (batch, time, features), zero in the padding."""
        if self.index is None:
            return packed.view(self.time, self.batch, -1).transpose(0, 1)
        padded = packed.new_zeros(self.batch * self.time, packed.shape[1])
        return padded.index_copy_(0, self.index, packed).view(self.batch, self.time, -1)

    def sort(self, state: Tensor) -> Tensor:
        """(batch, features) -> (rows, features)"""
        return state if self.order is None else state.index_select(0, self.order)

    def steps(self, packed: Tensor) -> tuple[Tensor, ...]:
        """(packed, …) as one view per step."""
        return torch.split_with_sizes(packed, self.sizes)

    @cached_property
    def sizes(self) -> list[int]:
        """How many rows are there at each step."""
        return [rows for rows, _, _ in self.blocks]

    def shift(self, joined: Tensor) -> Tensor:
        """For each packed row the one a step earlier. [first; packed] -> (packed, features)"""
        if self.blocks[-1][0] == self.batch:  # nothing is padded
            return joined[: len(joined) - self.batch]
        return torch.cat([joined[before : before + rows] for rows, _, before in self.blocks])

    @property
    def begin(self) -> int:
        """The first packed row whose state before is not just zero."""
        return self.blocks[0][0] if self.fresh else 0

    def unsort(self, state: Tensor) -> Tensor:
        """(rows, features) -> (batch, features)"""
        if self.order is None:
            return state
        return torch.empty_like(state).index_copy_(0, self.order, state)


@lru_cache(maxsize=8)
def _layout(batch: int, time: int, key: bytes | None, device: torch.device, fresh: bool) -> Layout:
    if key is None:
        order = rank = np.arange(batch)
        ends, counts = np.full(batch, time), np.full(time, batch)
    else:
        ends = np.frombuffer(key, dtype=np.int64)
        order = np.argsort(-ends, kind="stable")
        rank = np.argsort(order)
        counts = (ends[:, None] > np.arange(time)).sum(axis=0)
        counts = counts[counts > 0]
    starts = np.concatenate([[0], counts.cumsum()])
    before = [0, *(starts[:-2] + batch)]  # in [first; packed], see `shift`
    blocks = list(zip(counts.tolist(), starts[:-1].tolist(), map(int, before), strict=True))
    final = torch.from_numpy(starts[ends - 1] + rank).to(device)
    if key is None:
        return Layout(batch, time, blocks, None, None, final, fresh)
    places = np.concatenate([order[:n] * time + t for t, n in enumerate(counts)])
    index, rows = torch.from_numpy(places).to(device), torch.from_numpy(order).to(device)
    return Layout(batch, time, blocks, index, rows, final, fresh)
