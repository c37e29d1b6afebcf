"""Files that are either whole or not there, and a lock that dies with its process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from regard.cache import MISSING as MISSING
from regard.cache import content_hash as content_hash
from regard.cache import hash_file as hash_file
from regard.cache import take_lock
from regard.errors import RegardError
from regard.runs.checksums import note, read_checked
from regard.runs.places import name_part, naming, require_inside, require_regular
from regard.runs.seals import is_sealed, seal

if TYPE_CHECKING:  # torch takes seconds to import, and most files hold no tensors
    from torch import Tensor

BUSY = "is being written by another process"
BETWEEN = 0.2  # seconds between two looks at a lock


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = name_part(require_regular(path))
    try:
        with naming(path), part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:  # a full disk must not be kept full
        part.unlink(missing_ok=True)
        raise


def write_json(path: Path, data: Any) -> None:
    """Write JSON for people: indented, in the given order."""
    write_whole(path, as_json(data))


def as_json(data: Any) -> bytes:
    """JSON for people, as it stands in a file."""
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()


def read_json(path: Path) -> Any:
    """Read JSON, or say which file is not what it should be."""
    try:
        return json.loads(read_checked(path))
    except (ValueError, RecursionError) as error:
        raise RegardError(
            f"{path} is not valid JSON ({error}). Delete it, and it is made again."
        ) from None


def write_noted(folder: Path, path: Path, content: bytes) -> None:
    """Write a file of a run's folder, and before that its hash into the run's list."""
    require_inside(folder, path)
    note(folder, path, sha256(content).hexdigest())
    write_whole(path, content)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors as safetensors, with their hash inside."""
    write_whole(path, seal(packed(tensors)))


def packed(tensors: dict[str, Tensor], origin: dict[str, Any] | None = None) -> bytes:
    """Tensors as safetensors, with a word on where they come from."""
    from safetensors.torch import save

    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    # One entry only: several would come in any order, and the bytes would differ.
    return save(plain, None if origin is None else {"origin": json.dumps(origin)})


def read_origin(path: Path) -> dict[str, Any]:
    """Where the tensors of a file come from; empty where it does not say."""
    try:
        with safe_open(path, "pt") as file:
            origin: dict[str, Any] = json.loads((file.metadata() or {}).get("origin", "{}"))
    except (SafetensorError, ValueError):  # who reads the tensors will say so
        return {}
    return origin


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read safetensors, or say which file is damaged."""
    from safetensors.torch import load

    content = read_checked(path)
    try:
        tensors = load(content)
        whole = is_sealed(content)
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise RegardError(
            f"{path} is not a whole safetensors file ({error}). Delete it and run again."
        ) from None
    if not whole:
        raise RegardError(
            f"{path} is damaged: its numbers are not those that were written (another SHA-256 than"
            " the file itself says). Delete it and run again."
        )
    return tensors


@contextmanager
def locked(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Be the only process that writes to `folder`; refuse if another one is at it.

    The operating system lets go of the lock when the process ends, however it ends. One that is
    dying is waited for, so many seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + patience
    with require_regular(folder / "LOCK").open("a+", encoding="utf-8") as file:
        while not take_lock(file.fileno()):
            if time.monotonic() < until:
                time.sleep(BETWEEN)
                continue
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise RegardError(
                f"{folder} {BUSY} (id {holder})."
                " Wait until it has finished, or stop it, and ask again."
            )
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def wait_for(folder: Path, seconds: float = 0.5) -> None:
    """Come back when no other process writes to `folder`."""
    while True:
        with suppress(RegardError), locked(folder):
            return
        time.sleep(seconds)
