"""Some samples of a recording, as a recording: a range of them, or a declared sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from regard.errors import RegardError
from regard.recordings.recording import Recording
from regard.recordings.storage import Array, InMemory, Shape, Storage

SEED = 0  # of declared samples


class Rows:
    """A storage of some samples of another: those from `start` to `stop`."""

    def __init__(self, storage: Storage, sampled: frozenset[str], start: int, stop: int):
        self.storage, self.sampled, self.start, self.stop = storage, sampled, start, stop

    def names(self) -> list[str]:
        """The arrays that are there."""
        return self.storage.names()

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        shape = self.storage.shape(name)
        return (self.stop - self.start, *shape[1:]) if name in self.sampled else shape

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, or all of it."""
        if name not in self.sampled:
            return self.storage.read(name, start, stop)
        first, last, _ = slice(start, stop).indices(self.stop - self.start)
        return self.storage.read(name, self.start + first, self.start + max(first, last))


def take_rows(recording: Recording, start: int, stop: int) -> Recording:
    """The samples from `start` to `stop` of a recording, read when they are asked for."""
    inner, before = recording.storage, first_row(recording)
    if isinstance(inner, Rows):
        inner = inner.storage
    storage = Rows(inner, _sampled(recording), before + start, before + stop)
    return Recording(storage, recording.metadata, recording.rows)


def first_row(recording: Recording) -> int:
    """The number of a recording's first sample in the one that it was taken from."""
    storage = recording.storage
    return storage.start if isinstance(storage, Rows) else 0


def sample_rows(recording: Recording, count: int) -> Recording:
    """`count` samples of a recording, drawn at random but always the same, in their order.

    They are in memory. Where there are no more than `count`, all of them.
    """
    if isinstance(count, bool) or count < 1:
        raise RegardError(f"sample={count} does not fit: take 1 sample or more.")
    if count >= len(recording):
        return recording
    places = draw_places(len(recording), count)
    sampled, storage = _sampled(recording), recording.storage
    arrays = {
        name: np.concatenate([storage.read(name, place, place + 1) for place in places.tolist()])
        if name in sampled
        else storage.read(name)
        for name in recording.names()
    }
    origin = {**recording.metadata.origin, "sample": {"rows": count, "of": len(recording)}}
    return Recording(InMemory(arrays), replace(recording.metadata, origin=origin), recording.rows)


def draw_places(total: int, count: int) -> Array:
    """Which samples a declared sample has: a function of both numbers. (sample,), sorted"""
    rng = np.random.default_rng(SEED)
    return np.sort(rng.choice(total, size=count, replace=False, shuffle=False))


def _sampled(recording: Recording) -> frozenset[str]:
    """The arrays that have a row for each sample."""
    return frozenset(name for name in recording.names() if recording.axes(name)[0] == "sample")
