"""Kendall's τ-b of many rows at once: ties counted as Kendall (1945) does."""

from __future__ import annotations

import numpy as np

from regard.recordings.storage import Array

CHUNK = 1_000_000  # numbers compared at a time


def kendall(u: Array, v: Array, mask: Array) -> Array:
    """τ-b of each row of `u` with that of `v`, over the positions in `mask`.

    (row, source) -> (row,), NaN where a row is all ties. All pairs of positions are compared, so a
    row of L positions takes L²/2 steps; rows of like length go together, so that padding is
    cheap.
    """
    found = np.full(len(u), np.nan)
    lengths = mask.sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = max(1, CHUNK // max(1, int(lengths[order[start]])))
        part = order[start : start + rows]
        found[part] = _rows(*packed(u[part], v[part], mask[part]))
        start += rows
    return found


def packed(u: Array, v: Array, mask: Array) -> tuple[Array, Array, Array]:
    """The same rows with their positions at the front, in order, and no wider than need be."""
    width = int(mask.sum(axis=1).max(initial=0))
    places = np.argsort(~mask, axis=1, kind="stable")[:, :width]
    one, two, three = (np.take_along_axis(x, places, axis=1) for x in (u, v, mask))
    return one, two, three


def _rows(u: Array, v: Array, mask: Array) -> Array:
    both, ours, theirs = (np.zeros(len(u), np.int64) for _ in range(3))
    for gap in range(1, u.shape[1]):
        there = mask[:, gap:]  # positions are at the front: the earlier of a pair is there, too
        a = _signs(u, gap) * there
        b = _signs(v, gap)
        both += np.einsum("rs,rs->r", a, b, dtype=np.int64, casting="unsafe")
        ours += np.count_nonzero(a, axis=1)
        theirs += np.count_nonzero(b * there, axis=1)
    with np.errstate(invalid="ignore"):
        tau: Array = both / np.sqrt(ours.astype(np.float64) * theirs)
    return tau


def _signs(values: Array, gap: int) -> Array:
    """The sign of the difference of positions `gap` apart. (row, source) -> (row, source − gap)"""
    early, late = values[:, :-gap], values[:, gap:]
    return np.asarray((late > early).view(np.int8) - (late < early).view(np.int8))
