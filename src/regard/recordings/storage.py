"""Where a recording's arrays are: in memory, or in one safetensors file, read piece by piece.

The file is an ordinary safetensors file, which any safetensors library reads. It is written and
read here by hand for one reason: the library wants all tensors in memory at once, and maps the
whole file when it reads. A recording may have a million samples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

Array = NDArray[Any]
Shape = tuple[int, ...]

KINDS = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "BOOL": np.bool_}
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
    """A safetensors file. Nothing is read but what is asked for."""

    def __init__(self, path: Path):
        self.path = path
        self.header, self.metadata, self.begin = _header(path)

    def names(self) -> list[str]:
        """The arrays that are there."""
        return list(self.header)

    def shape(self, name: str) -> Shape:
        """The shape of one."""
        return tuple(self.header[name]["shape"])

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Some of its first axis, from the disk."""
        entry = self.header[name]
        shape, kind = entry["shape"], np.dtype(KINDS[entry["dtype"]])
        if not shape:
            start, stop = 0, None
        stop = min(shape[0] if shape else 1, 2**62 if stop is None else stop)
        row = int(np.prod(shape[1:], dtype=np.int64))
        offset = self.begin + entry["data_offsets"][0] + start * row * kind.itemsize
        count = max(0, stop - start) * row
        with self.path.open("rb") as file:
            data = np.fromfile(file, dtype=kind, count=count, offset=offset)
        return data.reshape((-1, *shape[1:]) if row else (max(0, stop - start), *shape[1:]))


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


def _header(path: Path) -> tuple[dict[str, Any], dict[str, str], int]:
    """The entries of a safetensors file, its metadata, and where its data begins."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            total = os.fstat(file.fileno()).st_size
            if not 2 <= size <= total - 8:
                raise ValueError("its header has an impossible size")
            header = json.loads(file.read(size))
            metadata = header.pop("__metadata__", {})
            for name, entry in header.items():
                stop = 8 + size + entry["data_offsets"][1]
                if stop > total:
                    raise ValueError(f"'{name}' ends after the file does")
                if entry["dtype"] not in KINDS:
                    raise ValueError(f"'{name}' is of the kind {entry['dtype']}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RegardError(
            f"{path} is not a whole recording ({error}). Record again: `regard record RUN`."
        ) from None
    return header, metadata, 8 + size


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
        self.path = path
        self.part = path.with_name(f".{path.name}.{os.getpid()}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        header: dict[str, Any] = {"__metadata__": dict(metadata)}
        end = 0
        for name, (kind, shape) in kinds.items():
            size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            entry = {"dtype": NAMES[kind], "shape": list(shape), "data_offsets": [end, end + size]}
            header[name] = entry
            end += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.header, self.kinds = header, kinds
        self.begin = 8 + len(text)
        self.file = self.part.open("wb")
        self.file.write(len(text).to_bytes(8, "little") + text)
        self.file.truncate(self.begin + end)

    def put(self, name: str, start: int, values: Array) -> None:
        """Write some rows."""
        kind, shape = self.kinds[name]
        row = int(np.prod(shape[1:], dtype=np.int64)) * kind.itemsize
        self.file.seek(self.begin + self.header[name]["data_offsets"][0] + start * row)
        self.file.write(np.ascontiguousarray(values, dtype=kind).data)

    def finish(self) -> None:
        """The file is whole: give it its name."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.part.replace(self.path)

    def abandon(self) -> None:
        """Leave nothing behind."""
        self.file.close()
        self.part.unlink(missing_ok=True)
