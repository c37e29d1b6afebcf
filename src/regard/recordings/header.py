"""The header of a safetensors file: nothing in it is believed that the file does not bear out."""

from __future__ import annotations

import json
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError

KINDS = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "BOOL": np.bool_}
LARGEST = 100_000_000  # bytes of a header, as in the safetensors library
AXES = 8  # more than any array has


def read_header(path: Path) -> tuple[dict[str, Any], dict[str, str], int]:
    """The entries of a safetensors file, its metadata, and where its data begins."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            total = os.fstat(file.fileno()).st_size
            if not 2 <= size <= min(total - 8, LARGEST):
                raise ValueError("its header has an impossible size")
            header = json.loads(file.read(size), object_pairs_hook=_unique)
        if not isinstance(header, dict):
            raise ValueError("its header is no table of arrays")
        metadata = header.get("__metadata__", {})
        if not isinstance(metadata, dict) or not _are_texts(metadata.values()):
            raise ValueError("its metadata are not texts")
        _check_entries({k: v for k, v in header.items() if k != "__metadata__"}, total - 8 - size)
    except (ValueError, RecursionError, MemoryError) as error:
        raise RegardError(
            f"{path} is not a whole recording ({error}). Record again: `regard record RUN`."
        ) from None
    return header, metadata, 8 + size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _check_entries(entries: dict[str, Any], data: int) -> None:
    """Every array has a kind, a shape and as many bytes; together they are the file's data."""
    ranges = sorted((*_check_entry(name, entry, data), name) for name, entry in entries.items())
    end = 0
    for start, stop, name in ranges:
        if start != end:
            raise ValueError(f"'{name}' does not begin where the array before it ends")
        end = stop
    if end != data:
        raise ValueError(f"its arrays take {end} bytes, but it has {data}")


def _check_entry(name: str, entry: Any, data: int) -> tuple[int, int]:
    """Where an array begins and ends, if what is said of it agrees."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise ValueError(f"'{name}' has no kind, shape or place")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"'{name}' is of the kind {kind}")
    if not _are_sizes(shape) or len(shape) > AXES:
        raise ValueError(f"'{name}' has an impossible shape")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"'{name}' has an impossible place")
    start, stop = offsets
    if stop > data:
        raise ValueError(f"'{name}' ends after the file does")
    if stop - start != prod(shape) * np.dtype(KINDS[kind]).itemsize:
        raise ValueError(f"'{name}' has another size than its shape says")
    return start, stop


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**62 for v in values)
