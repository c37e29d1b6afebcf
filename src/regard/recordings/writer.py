"""Put a recording together, piece by piece, in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path
from shutil import disk_usage
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.memory import in_gib
from regard.recordings.checks import find_no_number
from regard.recordings.derived import nothing_of
from regard.recordings.recording import Chunk, Metadata, Recording, load_recording
from regard.recordings.storage import Array, FileWriter, InMemory, MemoryWriter, Shape, Writer

# A recording larger than this is not kept in memory: it has to go to a file.
IN_MEMORY = 4 * 2**30

# Logarithms of probabilities near 1 that single precision could not tell apart.
EXACT = ("lexical", "proxy", "log_odds")

Watch = Callable[[int, int], None]  # (samples done, samples in all)


@dataclass(frozen=True)
class Sizes:
    """The lengths of the axes that all pieces share."""

    sample: int
    source: int
    target: int

    def of(self, axes: tuple[str, ...], shape: Shape) -> Shape:
        """The shape of an array over all samples, from the shape that it has in one piece."""
        known = {"sample": self.sample, "source": self.source, "target": self.target}
        return tuple(known.get(axis, size) for axis, size in zip(axes, shape, strict=True))


def write_recording(
    pieces: Iterator[Chunk],
    fixed: Chunk,
    sizes: Sizes,
    metadata: Metadata,
    out: Path | None = None,
    watch: Watch | None = None,
) -> Recording:
    """A recording from pieces with a sample axis and arrays without one (`fixed`)."""
    first = next(pieces, None)
    if first is None:
        raise RegardError("There is nothing to record: no samples were given.")
    draft = Recording(InMemory({**first, **fixed}), metadata)
    kinds = {
        name: (_choose_dtype(name, array), sizes.of(draft.axes(name), array.shape))
        for name, array in {**first, **fixed}.items()
    }
    axes = {name: draft.axes(name) for name in kinds}
    pieces = chain([first], pieces)
    del first, draft  # one piece is in memory at a time
    if out is None:
        _check_size(kinds)
        memory = MemoryWriter(kinds)
        _fill(memory, pieces, fixed, axes, sizes, watch)
        return Recording(InMemory(memory.arrays), metadata)
    _check_disk(kinds, out)
    file = FileWriter(out, kinds, {"regard": metadata.to_json()})
    try:
        _fill(file, pieces, fixed, axes, sizes, watch)
        file.finish()
    except BaseException:
        file.abandon()
        raise
    return load_recording(out)


def _fill(
    writer: Writer,
    pieces: Iterator[Chunk],
    fixed: Chunk,
    axes: dict[str, tuple[str, ...]],
    sizes: Sizes,
    watch: Watch | None,
) -> None:
    for name, array in fixed.items():
        require_numbers(name, array)
        writer.put(name, 0, array)
    done = 0
    for piece in pieces:
        for name, array in piece.items():
            require_numbers(name, array, done)
            writer.put(name, done, _widen(name, array, axes[name], sizes))
        done += len(piece["encoder.words"])
        del piece, array  # before the next one is made
        if watch:
            watch(done, sizes.sample)


def require_numbers(name: str, array: Array, done: int | None = None) -> None:
    """Refuse what would make every result a wrong number: NaN and infinity.

    `done` samples came before these; None where an array has no samples.
    """
    fault = find_no_number(name, array) if array.dtype.kind == "f" else None
    if fault:
        first = "" if done is None else f", counted from sample {done}"
        raise RegardError(
            f"'{name}' holds {fault}{first}, which is not a number. Mend it where it was made, or"
            " mask the step."
        )


def _widen(name: str, array: Array, axes: tuple[str, ...], sizes: Sizes) -> Array:
    """The array with zeros (of an alignment: -1) up to the common widths of source and target."""
    wanted = sizes.of(axes, array.shape)
    missing = [(0, 0), *((0, w - s) for w, s in zip(wanted[1:], array.shape[1:], strict=True))]
    if not any(after for _, after in missing):
        return array
    return np.pad(array, missing, constant_values=nothing_of(name))


def _choose_dtype(name: str, array: Array) -> np.dtype[Any]:
    if array.dtype.kind in "iu":
        return np.dtype(np.int32)  # word numbers and positions
    if array.dtype.kind == "f":
        return array.dtype if name in EXACT else np.dtype(np.float32)
    return array.dtype


def _reckon(kinds: dict[str, tuple[np.dtype[Any], Shape]]) -> int:
    """The bytes of all arrays."""
    return sum(prod(shape) * kind.itemsize for kind, shape in kinds.values())


def _check_disk(kinds: dict[str, tuple[np.dtype[Any], Shape]], out: Path) -> None:
    size = _reckon(kinds)
    folder = next(path for path in out.absolute().parents if path.exists())
    there = disk_usage(folder).free
    if size > there:
        raise RegardError(
            f"This recording takes {in_gib(size)}, and {in_gib(there)} are free at {folder}."
            " Record fewer samples (-n), or write elsewhere (out=FILE)."
        )


def _check_size(kinds: dict[str, tuple[np.dtype[Any], Shape]]) -> None:
    size = _reckon(kinds)
    if size > IN_MEMORY:
        raise RegardError(
            f"This recording takes {in_gib(size)}, too much for memory."
            " Give out=FILE (`regard record RUN --out FILE`), and it is written piece by piece."
        )
