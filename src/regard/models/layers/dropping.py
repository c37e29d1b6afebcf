"""Dropout that is the same however a batch is cut up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor
from torch.nn.functional import dropout

# The first row, and the rows in all, of the batch of which the rows in hand are a part.
_part: ContextVar[tuple[int, int] | None] = ContextVar("part", default=None)


@contextmanager
def part_of(start: int, rows: int) -> Iterator[None]:
    """While it lasts, batches are those rows of one of `rows` that begin at `start`."""
    token = _part.set((start, rows))
    try:
        yield
    finally:
        _part.reset(token)


def drop_out(x: Tensor, chance: float) -> Tensor:
    """Dropout in training; a part of a batch gets the mask that it has in the whole one.

    Random numbers are drawn for the whole batch, so they depend on the generator and on a row's
    place in it, and on nothing else. (batch, …) -> (batch, …)
    """
    part = _part.get()
    if part is None:
        return dropout(x, chance)
    start, rows = part
    mask = dropout(x.new_ones(rows, *x.shape[1:]), chance)
    return x * mask[start : start + len(x)]
