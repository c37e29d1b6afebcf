"""A piece of a corpus, cut into words: what one process makes at a time and keeps in a file.

Words have numbers of the piece's own, because nobody knows the vocabulary yet.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.tasks.batch import Ints

ROWS = 2**15  # in a piece, at most …
CHARACTERS = 2**22  # … and about so many characters

Pair = tuple[str, str]
Units = tuple[Sequence[str], Sequence[str]]
Cutter = Callable[[Pair], Units | str]  # the words of both sides, or why a pair is left out
Array = NDArray[Any]


def group_rows(rows: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Rows in pieces that fit in memory, however long they are."""
    piece: list[Pair] = []
    characters = 0
    for row in rows:
        piece.append(row)
        characters += len(row[0]) + len(row[1])
        if len(piece) == ROWS or characters >= CHARACTERS:
            yield piece
            piece, characters = [], 0
    if piece:
        yield piece


@dataclass(frozen=True)
class Cut:
    """Rows of two sides in words."""

    words: tuple[list[str], list[str]]  # by number
    numbers: tuple[Array, Array]  # (word,), of all rows one behind the other
    lengths: tuple[Array, Array]  # (row,)
    digests: Array  # (row, 2), equal where rows are
    skipped: dict[str, int]

    def __len__(self) -> int:
        return len(self.digests)

    @classmethod
    def of(cls, rows: Iterable[Pair], cutter: Cutter) -> Cut:
        """Rows as the cutter cuts them."""
        found: list[Units] = []
        skipped: Counter[str] = Counter()
        for row in rows:
            units = cutter(row)
            if isinstance(units, str):
                skipped[units] += 1
            else:
                found.append(units)
        digests = b"".join(map(_digest, found))
        sides = [_number([units[side] for units in found]) for side in (0, 1)]
        words, numbers, lengths = zip(*sides, strict=True)
        rows_of = np.frombuffer(digests, "<u8").reshape(-1, 2)
        return cls(words, numbers, lengths, rows_of, dict(skipped))

    def save(self, path: Path) -> None:
        """Write a file that is whole or not there."""
        arrays: dict[str, Array] = {"digests": self.digests, "skipped": _pack([*self.skipped])}
        arrays["times"] = np.array([*self.skipped.values()], np.int64)
        for side in (0, 1):
            arrays[f"words{side}"] = _pack(self.words[side])
            arrays[f"numbers{side}"] = self.numbers[side]
            arrays[f"lengths{side}"] = self.lengths[side]
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type, unused-ignore]
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Cut:
        """What `save` wrote; a damaged file raises an error of zip files."""
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            words, numbers, lengths = (
                (kept[f"{name}0"], kept[f"{name}1"]) for name in ("words", "numbers", "lengths")
            )
            skipped = dict(zip(_unpack(kept["skipped"]), kept["times"].tolist(), strict=True))
            spelled = _unpack(words[0]), _unpack(words[1])
            return cls(spelled, numbers, lengths, kept["digests"], skipped)


def cut_piece(rows: Sequence[Pair], cutter: Cutter, path: Path) -> None:
    """What a worker process does."""
    Cut.of(rows, cutter).save(path)


def _digest(units: Units) -> bytes:
    """Equal for equal rows; others differ but for one chance in 2^128."""
    source, target = units
    text = "\n".join((f"{len(source)} {len(target)}", *source, *target))
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _number(rows: Sequence[Sequence[str]]) -> tuple[list[str], Array, Ints]:
    words = {word: n for n, word in enumerate(dict.fromkeys(chain.from_iterable(rows)))}
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    stream = map(words.__getitem__, chain.from_iterable(rows))
    return [*words], np.fromiter(stream, np.int32, int(lengths.sum())), lengths


def _pack(words: Sequence[str]) -> Array:
    """Any texts as bytes."""
    return np.frombuffer(json.dumps(words).encode(), np.uint8)


def _unpack(packed: Array) -> list[str]:
    found: list[str] = json.loads(packed.tobytes())
    return found
