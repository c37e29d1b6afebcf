"""Arrays on their way to the page: a JSON header, then the numbers as they are in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.recordings.storage import Array

ALIGN = 8
KINDS = {"float32": "f4", "uint8": "u1", "int32": "i4"}


def pack(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Length of the header (4 bytes, little endian), header, arrays, each at a multiple of 8.

    The header has `about` and `arrays`: name -> shape, kind, offset after the header.
    """
    index, parts, offset = {}, [], 0
    for name, array in arrays.items():
        kind = str(array.dtype)
        data = np.ascontiguousarray(array).astype(f"<{KINDS[kind]}", copy=False).tobytes()
        index[name] = {"shape": list(array.shape), "kind": kind, "offset": offset}
        padded = data + b"\0" * (-len(data) % ALIGN)
        parts.append(padded)
        offset += len(padded)
    header = json.dumps({"about": about, "arrays": index}, ensure_ascii=True).encode()
    header += b" " * (-(len(header) + 4) % ALIGN)
    return b"".join([len(header).to_bytes(4, "little"), header, *parts])


def unpack(data: bytes) -> tuple[Any, dict[str, Array]]:
    """The inverse of `pack`."""
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    found = {}
    for name, entry in header["arrays"].items():
        count = int(np.prod(entry["shape"]))
        start = 4 + size + entry["offset"]
        flat = np.frombuffer(data, f"<{KINDS[entry['kind']]}", count, start)
        found[name] = flat.reshape(entry["shape"])
    return header["about"], found
