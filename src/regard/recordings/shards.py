"""A recording in shards as one recording: its arrays are read from file after file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import sha256
from math import prod
from pathlib import Path

import numpy as np

from regard.errors import RegardError
from regard.memory import require_memory
from regard.recordings.derived import nothing_of
from regard.recordings.header import LARGEST
from regard.recordings.manifest import Manifest, Shard
from regard.recordings.recording import Metadata, Recording, load_file
from regard.recordings.storage import Array, File, Shape

OPEN = 4  # shards whose headers are kept in memory
BY_WORD = ("readout", "readout.bias", "readout.words")  # with a row per word, maybe of few
LARGE = 2**28  # bytes from which a read is held against the memory there is


class Shards:
    """A storage over the files of a manifest, in order, each padded to the widest one."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self.starts = [shard.first for shard in manifest.shards]
        self.joined: dict[str, Array] = {}
        self._open = lru_cache(maxsize=OPEN)(self._load)
        first = self._open(0)
        self.metadata = _forget_shard(first.metadata)
        self.axes = {name: first.axes(name) for name in first.names()}
        self.shapes = {name: first.shape(name) for name in first.names()}

    def names(self) -> list[str]:
        """The arrays that are there."""
        return list(self.axes)

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        if name in BY_WORD and self._words is not None:
            return (len(self._words), *self.shapes[name][1:])
        sizes = {
            "sample": self.manifest.samples,
            "source": max(shard.source for shard in self.manifest.shards),
            "target": max(shard.target for shard in self.manifest.shards),
        }
        pairs = zip(self.axes[name], self.shapes[name], strict=True)
        return tuple(sizes.get(axis, size) for axis, size in pairs)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, or all of it, from as many files as hold it."""
        if self.axes[name][0] != "sample":
            return self._fixed(name)[start:stop]
        start, stop, _ = slice(start, stop).indices(self.manifest.samples)
        self._check_memory(name, (max(0, stop - start), *self.shape(name)[1:]))
        pieces = [self._widen(name, piece) for piece in self._pieces(name, start, stop)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def shard_at(self, row: int) -> int:
        """The number of the shard that holds a sample."""
        return bisect_right(self.starts, row) - 1

    def verify(self) -> None:
        """Read every block of every shard once."""
        for number in range(len(self.starts)):
            storage = self._open(number).storage
            if isinstance(storage, File):
                storage.verify()

    def _pieces(self, name: str, start: int, stop: int) -> Iterator[Array]:
        if start >= stop:
            yield self._open(0).storage.read(name, 0, 0)
        while start < stop:
            number = self.shard_at(start)
            shard = self.manifest.shards[number]
            last = min(stop, shard.stop)
            yield self._open(number).storage.read(name, start - shard.first, last - shard.first)
            start = last

    def _check_memory(self, name: str, shape: Shape) -> None:
        size = prod(shape) * 4
        if size > LARGE:
            require_memory(
                2 * size, f"'{name}' of {shape[0]} samples in memory",
                "Read it by `chunks`, or take some samples: sample=N.",
            )  # fmt: skip

    def _widen(self, name: str, values: Array) -> Array:
        """The rows of one shard, as wide as those of the widest."""
        wanted = self.shape(name)[1:]
        if values.shape[1:] == wanted:
            return values
        found = np.full((len(values), *wanted), nothing_of(name), values.dtype)
        found[tuple(slice(size) for size in values.shape)] = values
        return found

    @cached_property
    def _words(self) -> Array | None:
        """The words that the output layer has rows of, over all shards; None where of all."""
        if "readout.words" not in self.axes:
            return None
        numbers = range(len(self.starts))
        return np.unique(np.concatenate([self._open(n)["readout.words"] for n in numbers]))

    def _fixed(self, name: str) -> Array:
        """An array without samples: that of the first shard, or rows from all of them."""
        words = self._words
        if name not in BY_WORD or words is None:
            return self._open(0)[name]
        if name not in self.joined:
            found = np.zeros((len(words), *self.shapes[name][1:]), self._open(0)[name].dtype)
            for number in range(len(self.starts)):
                shard = self._open(number)
                found[np.searchsorted(words, shard["readout.words"])] = shard[name]
            self.joined[name] = found
        return self.joined[name]

    def _load(self, number: int) -> Recording:
        """The recording in one shard, if it is the one that the manifest means."""
        shard = self.manifest.shards[number]
        path = self.manifest.folder / shard.file
        if not path.is_file() or hash_header(path) != shard.header:
            raise RegardError(
                f"{path} is damaged or another file than {self.manifest.folder.name} was made of"
                f" (samples {shard.first} to {shard.stop - 1}). Restore it, or delete it and record"
                " again into the same folder: only what is missing is made."
            )
        return load_file(path)


def hash_header(path: Path) -> str:
    """The SHA-256 of a file's header, in which every block of its rows has a checksum."""
    with path.open("rb") as file:
        size = file.read(8)
        length = min(int.from_bytes(size, "little"), LARGEST)
        return sha256(size + file.read(length)).hexdigest()


def load_shards(folder: Path) -> Recording:
    """The recording in a folder of shards, read lazily."""
    storage = Shards(Manifest.read(folder))
    return Recording(storage, storage.metadata)


def require_alike(first: Recording, path: Path) -> None:
    """Refuse a file that cannot be a shard of the same recording as the first one."""
    other = load_file(path)
    same = {
        "arrays": (first.names(), other.names()),
        "words": (_words(first.metadata), _words(other.metadata)),
        "sites": (first.metadata.sites, other.metadata.sites),
        "sizes": (_sizes(first), _sizes(other)),
    }
    differ = [what for what, (ours, theirs) in same.items() if ours != theirs]
    if differ or not len(other):
        what = " and ".join(differ) or "no samples"
        raise RegardError(
            f"{path} has other {what} than the first shard: they are not of one model."
        )


def _words(metadata: Metadata) -> tuple[object, ...]:
    return metadata.source_words, metadata.target_words, metadata.ends, metadata.conventions


def _sizes(recording: Recording) -> dict[str, list[int]]:
    """The lengths of all axes that do not differ from shard to shard."""
    free = ("sample", "source", "target", "vocab")
    return {
        name: [n for n, axis in zip(recording.shape(name), recording.axes(name), strict=True)
               if axis not in free]
        for name in recording.names()
    }  # fmt: skip


def describe_shard(path: Path, first: int, digest: str) -> Shard:
    """What a manifest says of a file, given the hash of its content."""
    made = load_file(path)
    target = made.shape("decoder.words")[1] if "decoder.words" in made else 0
    return Shard(
        path.name, first, len(made), made.shape("encoder.words")[1], target,
        path.stat().st_size, hash_header(path), digest,
    )  # fmt: skip


def _forget_shard(metadata: Metadata) -> Metadata:
    """What the whole recording says of itself: as its first shard, but for being a shard."""
    origin = {key: value for key, value in metadata.origin.items() if key != "shard"}
    return replace(metadata, origin=origin)
