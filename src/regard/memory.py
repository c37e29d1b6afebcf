"""How much memory there is, and sizes that would not fit: refused before anything is made."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from regard.errors import RegardError

GIB = 2**30
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory() -> int:
    """Bytes that can be had, as far as the system tells; very many where it does not."""
    found = [2**60]
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:  # of a container
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text(encoding="ascii")))
    return min(found)


def require_memory(size: int, what: str, mend: str) -> None:
    """Refuse what takes more memory than there is, with both sizes."""
    there = available_memory()
    if size > there:
        raise RegardError(
            f"{what} takes at least {in_gib(size)}, and there are {in_gib(there)} of memory. {mend}"
        )


def in_gib(size: int) -> str:
    """A size for people."""
    return f"{size / GIB:.1f} GiB" if size < 10**6 * GIB else "more than a million GiB"
