"""A safetensors file that holds the hash of its tensors: names, shapes and numbers."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

SEAL = "sha256"


def seal(content: bytes) -> bytes:
    """A safetensors file with the hash of its tensors in its header."""
    header, data = _halves(content)
    header["__metadata__"] = {SEAL: _digest(header, data)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((len(text).to_bytes(8, "little"), text, data))


def is_sealed(content: bytes) -> bool:
    """Whether the tensors have the hash that the file says; also where it says none."""
    header, data = _halves(content)
    wanted = header.get("__metadata__", {}).get(SEAL)
    return wanted is None or wanted == _digest(header, data)


def _halves(content: bytes) -> tuple[dict[str, Any], memoryview]:
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), memoryview(content)[end:]


def _digest(header: dict[str, Any], data: memoryview) -> str:
    names = {name: entry for name, entry in header.items() if name != "__metadata__"}
    digest = sha256(json.dumps(names, sort_keys=True).encode())
    digest.update(data)
    return digest.hexdigest()
