"""Sums over the samples of a recording: map a part, merge the parts, finish.

Most of what is measured is a sum over samples. Who says so (`Summed`) gets it over recordings of
any size: each shard is mapped by itself, by as many processes as there are, what came out is kept
beside the shards, and merged in their order. So one worker and a hundred give the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from regard.recordings.compact import Renumbered
from regard.recordings.recording import Recording
from regard.recordings.shards import Shards
from regard.recordings.storage import Array
from regard.recordings.views import take_rows
from regard.runs.pool import keep_workers
from regard.training import one_thread

Stats = dict[str, Array]  # sufficient statistics, by name: float64, or whole numbers


class Summed(ABC):
    """A pass over a recording whose outcome is a sum over its samples.

    A frozen dataclass; its fields are its settings, plain enough for JSON. `map` reads the samples
    of `part` by `part.chunks`, and of `whole` only what is known of all samples: its means
    (`whole.decomposition`), words and sites. Then `needs_means` says so. Where adding is not the
    way to put two outcomes together, `merge` is overridden; it has to be associative.
    """

    needs_means: ClassVar[bool] = False

    @abstractmethod
    def map(self, part: Recording, whole: Recording) -> Stats:
        """The statistics of some samples."""

    def merge(self, one: Stats, other: Stats) -> Stats:
        """The statistics of the samples of both, of which `other`'s come after `one`'s."""
        both = {name: one[name] + other[name] for name in one if name in other}
        return {**one, **other, **both}


@dataclass(frozen=True)
class Part:
    """The samples that are mapped at once: the pieces that begin in one shard."""

    start: int
    stop: int


def add_up(what: Summed, recording: Recording) -> Stats:
    """The statistics of all samples of a recording.

    Of a recording in memory or in one file that is one `map`. Of one in shards, each is mapped,
    here or by worker processes (`recording.jobs`), unless that was done before.
    """
    from regard.recordings.mapping import map_parts

    shards = find_shards(recording)
    if shards is None:
        return what.map(recording, recording)
    with one_thread():
        found = map_parts(what, recording, shards, cut_parts(recording, shards))
        total = next(found)
        for other in found:
            total = what.merge(total, other)
    return total


@contextmanager
def steady(recordings: Iterable[Any]) -> Iterator[None]:
    """Where any of these is a recording in shards: one thread, as processes that map have it.

    And these processes stay, from one pass to the next.
    """
    if any(isinstance(one, Recording) and find_shards(one) for one in recordings):
        with one_thread(), keep_workers():
            yield
    else:
        yield


def cut_parts(recording: Recording, shards: Shards) -> list[Part]:
    """The parts of a recording, one for each shard in which a piece of `recording.rows` begins.

    Pieces begin where they begin in one file, whatever the shards: what is rounded within a piece
    is then rounded alike.
    """
    per, total = recording.rows, len(recording)
    cuts = [-(-start // per) * per for start in shards.starts]
    ends = [*cuts[1:], total]
    pairs = zip(cuts, ends, strict=True)
    return [Part(start, min(stop, total)) for start, stop in pairs if start < min(stop, total)]


def map_part(what: Summed, recording: Recording, part: Part) -> Stats:
    """The statistics of one part."""
    return what.map(take_rows(recording, part.start, part.stop), recording)


def find_shards(recording: Recording) -> Shards | None:
    """The shards that a recording, or its compact view, reads; None where it is no such thing."""
    storage: Any = recording.storage
    inner = storage.storage if isinstance(storage, Renumbered) else storage
    return inner if isinstance(inner, Shards) else None


def read_covered(shards: Shards, part: Part) -> Iterator[tuple[str, int, int]]:
    """Which rows of which shards a part reads: the hash of each header, and two row numbers."""
    for shard in shards.manifest.shards[shards.shard_at(part.start) :]:
        if shard.first >= part.stop:
            return
        yield (
            shard.header,
            max(part.start, shard.first) - shard.first,
            min(part.stop, shard.stop) - shard.first,
        )
