"""A corpus in word numbers, as a folder of plain arrays that are mapped into memory.

`NAME.SIDE.numbers` has the word numbers of all rows of a part, one behind the other, `.starts` and
`.lengths` where each row is. `corpus.json` comes last: what was learned of the text, and the size
and checksum of every other file, behind its own hash.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from regard.tasks.packed import PackedBatch, Side

ABOUT = "corpus.json"
AT_ONCE = 2**20  # bytes that are checked at a time
SIDES = ("source", "target")
KINDS = {"starts": "<i8", "lengths": "<i4"}


class Damaged(Exception):
    """What is in a folder is not what was written, or not all of it."""


@dataclass(frozen=True)
class Stored:
    """What a corpus folder holds."""

    learned: dict[str, Any]
    skipped: dict[str, int]
    rows: dict[str, PackedBatch]


class Writer:
    """Writes one part after the other, and notes the checksums of its files."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.files: dict[str, tuple[int, int]] = {}

    def write_part(self, name: str, rows: Iterable[tuple[Side, Side]], kind: str) -> int:
        """The rows of a part, some at a time; word numbers as `kind`. Returns how many."""
        kinds = {"numbers": kind, **KINDS}
        count, words = 0, dict.fromkeys(SIDES, 0)
        with ExitStack() as stack:
            files = {
                (side, array): stack.enter_context(_Summed(self.folder / f"{name}.{side}.{array}"))
                for side in SIDES
                for array in kinds
            }
            for sides in rows:
                for side, made in zip(SIDES, sides, strict=True):
                    tight = made.compact()
                    arrays = {
                        "numbers": tight.numbers,
                        "starts": tight.starts + words[side],
                        "lengths": tight.lengths,
                    }
                    for array, values in arrays.items():
                        files[side, array].write(values.astype(kinds[array]).tobytes())
                    words[side] += len(tight.numbers)
                count += len(sides[0].lengths)
        self.files |= {file.path.name: (file.size, file.crc) for file in files.values()}
        return count

    def finish(self, about: dict[str, Any]) -> None:
        """Say that all is there, and remove what it was made of."""
        content = json.dumps({**about, "files": self.files}).encode()
        seal = sha256(content).hexdigest().encode()
        (self.folder / ABOUT).write_bytes(seal + b"\n" + content)
        for path in self.folder.iterdir():
            if path.name not in (*self.files, ABOUT):
                path.unlink()


class _Summed:
    """A file that is written from start to end, with its checksum."""

    def __init__(self, path: Path):
        self.path, self.size, self.crc = path, 0, 0
        self.file: BinaryIO

    def __enter__(self) -> _Summed:
        self.file = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, content: bytes) -> None:
        self.file.write(content)
        self.size += len(content)
        self.crc = crc32(content, self.crc)


def open_stored(folder: Path) -> Stored:
    """What a folder holds, checked from end to end; `Damaged` if it is not what was written."""
    try:
        seal, content = (folder / ABOUT).read_bytes().split(b"\n", 1)
        if sha256(content).hexdigest().encode() != seal:
            raise Damaged(folder / ABOUT)
        about = json.loads(content)
        for name, (size, crc) in about["files"].items():
            if _check(folder / name) != (size, crc):
                raise Damaged(folder / name)
    except (OSError, ValueError) as error:
        raise Damaged(folder) from error
    rows = {
        name: PackedBatch(
            _map_side(folder, f"{name}.source", about["kind"]),
            _map_side(folder, f"{name}.target", about["kind"]),
        )
        for name in about["parts"]
    }
    return Stored(about["learned"], about["skipped"], rows)


def _check(path: Path) -> tuple[int, int]:
    """A file's size and checksum."""
    size = crc = 0
    for piece in _read(path):
        size, crc = size + len(piece), crc32(piece, crc)
    return size, crc


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(AT_ONCE):
            yield piece


def _map_side(folder: Path, name: str, kind: str) -> Side:
    arrays, maps = {}, []
    for array, dtype in {"numbers": kind, **KINDS}.items():
        arrays[array], found = _map(folder / f"{name}.{array}", dtype)
        maps += found
    return Side(arrays["numbers"], arrays["starts"], arrays["lengths"], tuple(maps))


def _map(path: Path, kind: str) -> tuple[NDArray[Any], list[mmap.mmap]]:
    """A file as an array that is read when it is looked at; an empty one cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, kind), []
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, kind), [mapped]
