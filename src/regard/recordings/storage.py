"""Where a recording's arrays are: in memory, or in one safetensors file, read piece by piece.

The file is an ordinary safetensors file, which any safetensors library reads. It is written and
read here by hand for one reason: the library wants all tensors in memory at once, and maps the
whole file when it reads. A recording may have a million samples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from regard.errors import RegardError
from regard.recordings.checks import (
    CHECKS,
    Sums,
    as_bytes,
    faults_of,
    read_checks,
    rows_of_block,
)
from regard.recordings.checks import Array as Array
from regard.recordings.checks import Shape as Shape
from regard.recordings.header import KINDS, read_header
from regard.runs.places import name_part, naming, require_regular

NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}


class Storage(Protocol):
    """Named arrays that can be read in ranges of their first axis."""

    def names(self) -> list[str]:
        """The arrays that are there."""

    def shape(self, name: str) -> Shape:
        """The shape of one."""

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, or all of it."""


class InMemory:
    """Arrays in a dictionary."""

    def __init__(self, arrays: Mapping[str, Array]):
        self.arrays = dict(arrays)

    def names(self) -> list[str]:
        """The arrays that are there."""
        return list(self.arrays)

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        return tuple(self.arrays[name].shape)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """A view of some of it."""
        return self.arrays[name][start:stop]


class File:
    """A safetensors file. Nothing is read but the blocks of rows that are asked for.

    A block is checked when it is first read: its checksum where the file has any, and whether its
    values can be what they should be. `limits` are the numbers that an array of numbers may hold.
    """

    def __init__(self, path: Path):
        self.path = path
        whole, self.metadata, self.begin = read_header(path)
        self.header = {name: entry for name, entry in whole.items() if name != "__metadata__"}
        self.limits: dict[str, tuple[int, int]] = {}
        self.seen: set[tuple[str, int]] = set()
        try:
            self.checks = read_checks(whole, {name: self._kind(name) for name in self.header})
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def names(self) -> list[str]:
        """The arrays that are there."""
        return list(self.header)

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        return tuple(self.header[name]["shape"])

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, from the disk; what is read first is checked."""
        kind, shape = self._kind(name)
        rows = shape[0] if shape else 1
        start, stop, _ = slice(start, stop).indices(rows)
        stop = max(start, stop)
        per = rows_of_block(shape, kind.itemsize)
        blocks = range(start // per, -(-stop // per)) if stop > start else range(0)
        if all((name, block) in self.seen for block in blocks):
            values = self._load(name, start, stop)
        else:
            first = blocks[0] * per
            whole = self._load(name, first, min(rows, blocks[-1] * per + per))
            for block in blocks:
                at = block * per - first
                self._check(name, block, whole[at : at + per], block * per)
            values = whole[start - first : stop - first]
        return values if shape else values.reshape(())

    def verify(self) -> None:
        """Read every block of every array once."""
        for name in self.names():
            kind, shape = self._kind(name)
            per = rows_of_block(shape, kind.itemsize)
            for start in range(0, shape[0] if shape else 1, per):
                self.read(name, start, start + per)

    def kinds(self) -> dict[str, np.dtype[Any]]:
        """What each array holds."""
        return {name: self._kind(name)[0] for name in self.header}

    def _kind(self, name: str) -> tuple[np.dtype[Any], Shape]:
        return np.dtype(KINDS[self.header[name]["dtype"]]), self.shape(name)

    def _load(self, name: str, start: int, stop: int) -> Array:
        kind, shape = self._kind(name)
        row = prod(shape[1:])
        offset = self.begin + self.header[name]["data_offsets"][0] + start * row * kind.itemsize
        with self.path.open("rb") as file:
            data = np.fromfile(file, dtype=kind, count=(stop - start) * row, offset=offset)
        if len(data) < (stop - start) * row:
            raise self._damaged(f"'{name}' is cut off")
        return data.reshape((stop - start, *shape[1:]))

    def _check(self, name: str, block: int, values: Array, start: int) -> None:
        if (name, block) in self.seen:
            return
        where = f"'{name}', rows {start} to {start + len(values) - 1}"
        if self.checks and crc32(as_bytes(values)) != self.checks[name][block]:
            raise self._damaged(f"{where}: the checksum is another")
        if fault := faults_of(name, values, self.limits.get(name)):
            raise self._damaged(f"{where}: there is {fault}")
        self.seen.add((name, block))

    def _damaged(self, what: str) -> RegardError:
        return RegardError(
            f"{self.path} is damaged ({what}), so nothing is computed from it. Restore it, or"
            " record again: `regard record RUN`."
        )


class WithHeads:
    """Arrays of a file of format 1 as format 2 has them: with a head axis after the sample axis."""

    def __init__(self, file: File, headless: frozenset[str]):
        self.file, self.headless = file, headless

    def names(self) -> list[str]:
        """The arrays that are there."""
        return self.file.names()

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        shape = self.file.shape(name)
        return (shape[0], 1, *shape[1:]) if name in self.headless else shape

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, from the disk."""
        values = self.file.read(name, start, stop)
        return values[:, None] if name in self.headless else values


class Writer(Protocol):
    """What a recording is written into."""

    def put(self, name: str, start: int, values: Array) -> None:
        """Write some rows."""


class MemoryWriter:
    """Rows go into arrays that are there from the start."""

    def __init__(self, kinds: Mapping[str, tuple[np.dtype[Any], Shape]]):
        self.arrays = {name: np.zeros(shape, kind) for name, (kind, shape) in kinds.items()}

    def put(self, name: str, start: int, values: Array) -> None:
        """Write some rows."""
        self.arrays[name][start : start + len(values)] = values


class FileWriter:
    """Rows go to their place in a file, which has its name only when it is whole."""

    def __init__(
        self,
        path: Path,
        kinds: Mapping[str, tuple[np.dtype[Any], Shape]],
        metadata: Mapping[str, str],
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.kinds, self.sums = require_regular(path), kinds, Sums(kinds)
        self.part = name_part(path)
        blank = self.sums.text({})  # as long as what takes its place when all rows are there
        self.header: dict[str, Any] = {"__metadata__": {**metadata, CHECKS: blank}}
        end = 0
        for name, (kind, shape) in kinds.items():
            size = prod(shape) * kind.itemsize
            entry = {"dtype": NAMES[kind], "shape": list(shape), "data_offsets": [end, end + size]}
            self.header[name] = entry
            end += size
        text = self._text()
        self.begin = 8 + len(text)
        self.file = self.part.open("wb")
        with naming(path):
            self.file.write(len(text).to_bytes(8, "little") + text)
            self.file.truncate(self.begin + end)

    def _text(self) -> bytes:
        text = json.dumps(self.header).encode()
        return text + b" " * (-len(text) % 8)

    def put(self, name: str, start: int, values: Array) -> None:
        """Write some rows; those of one array come in order."""
        kind, shape = self.kinds[name]
        rows = np.ascontiguousarray(values, dtype=kind)
        self.sums.add(name, start, rows)
        self.file.seek(
            self.begin
            + self.header[name]["data_offsets"][0]
            + start * prod(shape[1:]) * kind.itemsize
        )
        with naming(self.path):
            self.file.write(rows.data)

    def finish(self) -> None:
        """The file is whole: write its checksums, and give it its name."""
        if missing := self.sums.missing:
            raise RegardError(f"The rows of {', '.join(missing)} did not all come: not written.")
        self.header["__metadata__"][CHECKS] = self.sums.text(self.header)
        with naming(self.path):
            self.file.seek(8)
            self.file.write(self._text())
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
        self.part.replace(self.path)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):  # what could not be written cannot be flushed, either
            self.file.close()
        self.part.unlink(missing_ok=True)
