"""What is checked of a recording's arrays, block by block, when a block is first read.

A block is some rows of one array, about a mebibyte. The file's metadata holds a CRC-32 of every
block and one of the header (`checks`); files of before have none, and open. Whether numbers are
numbers, and numbers of words have a word, is checked in any file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]

CHECKS = "checks"
KIND = "crc32-1MiB:"  # in front of the hexadecimal numbers, eight digits each
BLOCK = 2**20  # bytes


def as_bytes(values: Array) -> memoryview:
    """What stands in memory, byte by byte."""
    return values.reshape(-1).view(np.uint8).data


def rows_of_block(shape: Shape, itemsize: int) -> int:
    """How many rows of an array make a block."""
    return max(1, BLOCK // max(1, prod(shape[1:]) * itemsize))


def count_blocks(shape: Shape, itemsize: int) -> int:
    """How many blocks an array has; one without rows has none."""
    rows = shape[0] if shape else 1
    return -(-rows // rows_of_block(shape, itemsize))


class Sums:
    """The CRC-32 of every block of some arrays, whose rows come in order."""

    def __init__(self, kinds: Mapping[str, tuple[np.dtype[Any], Shape]]):
        self.kinds = kinds
        self.found: dict[str, list[int]] = {
            name: [0] * count_blocks(shape, kind.itemsize) for name, (kind, shape) in kinds.items()
        }
        self.next = dict.fromkeys(kinds, 0)

    def add(self, name: str, start: int, values: Array) -> None:
        """Rows of an array from `start` on, which is where the last ones ended."""
        kind, shape = self.kinds[name]
        if start != self.next[name]:
            raise ValueError(f"the rows of '{name}' do not come in order")
        rows = 1 if not shape else len(values)
        per = rows_of_block(shape, kind.itemsize)
        content = as_bytes(values)
        size = len(content) // max(1, rows)
        for first in _cuts(start, start + rows, per):
            last = min(start + rows, (first // per + 1) * per)
            part = content[(first - start) * size : (last - start) * size]
            found = self.found[name]
            found[first // per] = crc32(part, found[first // per])
        self.next[name] += rows

    @property
    def missing(self) -> list[str]:
        """The arrays that did not get all of their rows."""
        every = {name: shape[0] if shape else 1 for name, (_, shape) in self.kinds.items()}
        return [name for name, rows in every.items() if self.next[name] < rows]

    def text(self, header: Mapping[str, Any]) -> str:
        """As it stands in the metadata: the header's first, then those of all arrays in order."""
        numbers = [crc_of_header(header), *(n for name in self.kinds for n in self.found[name])]
        return KIND + "".join(f"{number:08x}" for number in numbers)


def _cuts(start: int, stop: int, per: int) -> list[int]:
    """Where blocks begin between two rows, the first row counted."""
    return [start, *range((start // per + 1) * per, stop, per)] if stop > start else []


def crc_of_header(header: Mapping[str, Any]) -> int:
    """The CRC-32 of all that a header says, but for the checks themselves."""
    metadata = {k: v for k, v in header.get("__metadata__", {}).items() if k != CHECKS}
    return crc32(json.dumps({**header, "__metadata__": metadata}, sort_keys=True).encode())


def read_checks(
    header: Mapping[str, Any], kinds: Mapping[str, tuple[np.dtype[Any], Shape]]
) -> dict[str, list[int]] | None:
    """The CRC-32 of every block as a file says it; None where it does not; or a ValueError."""
    text = header.get("__metadata__", {}).get(CHECKS)
    if text is None:
        return None
    counts = {name: count_blocks(shape, kind.itemsize) for name, (kind, shape) in kinds.items()}
    digits = text.removeprefix(KIND)
    if not text.startswith(KIND) or len(digits) != 8 * (1 + sum(counts.values())):
        raise ValueError("its checksums do not fit its arrays")
    numbers = [int(digits[place : place + 8], 16) for place in range(0, len(digits), 8)]
    if numbers.pop(0) != crc_of_header(header):
        raise ValueError("its header is not what was written")
    blocks = iter(numbers)
    return {name: [next(blocks) for _ in range(count)] for name, count in counts.items()}


def faults_of(name: str, values: Array, limits: tuple[int, int] | None) -> str | None:
    """What cannot be in an array: no numbers, other bytes than true and false, no word's number."""
    if values.dtype == np.bool_:
        wrong = values.size and int(values.view(np.uint8).max()) > 1
        return "neither true nor false" if wrong else None
    if values.dtype.kind == "f":
        return find_no_number(name, values)
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    if limits and values.size and not limits[0] <= low <= high < limits[1]:
        worst = low if low < limits[0] else high
        return f"{worst}, but it holds numbers from {limits[0]} to {limits[1] - 1}"
    return None


def find_no_number(name: str, values: Array) -> str | None:
    """The first value that is no number; a score may be -inf, where no weight goes."""
    finite = np.isfinite(values)
    if finite.all():
        return None
    if name.endswith(".scores"):
        finite |= np.isneginf(values)
        if finite.all():
            return None
    place = np.unravel_index(int((~finite).argmax()), values.shape)
    return f"{values[place]} at {tuple(map(int, place))}"
