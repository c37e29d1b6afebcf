"""What is kept between processes: where, under which hash, and by one writer at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path

MISSING = "missing"  # the hash of a file that is not there
SETTLED = 2.0  # seconds after which a change of a file is sure to change its time, too


def cache_folder() -> Path:
    """Where it is kept: `$REGARD_CACHE`, else `regard` in the user's cache."""
    if named := os.environ.get("REGARD_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "regard")


def content_hash(path: Path) -> str:
    """The hash of a file's content; a file that is not there is the task's to report."""
    if not path.is_file():
        return MISSING
    about = path.stat()
    if time.time() - about.st_ctime < SETTLED:
        return hash_file(path)
    return _hash(path, about.st_ino, about.st_ctime_ns, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=32)
def _hash(path: Path, *_state: int) -> str:
    return hash_file(path)


def hash_file(path: Path) -> str:
    """The hash of a file's content, read anew."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def one_at_a_time(path: Path, seconds: float = 0.2) -> Iterator[None]:
    """Be the only process with the lock `path`; others wait until it is free.

    The operating system lets go of the lock when the process ends, however it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        while not take_lock(file.fileno()):
            time.sleep(seconds)
        yield


def take_lock(descriptor: int) -> bool:
    """Take an exclusive lock without waiting; False if somebody else has it."""
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
