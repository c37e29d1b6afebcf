"""Memory that is freed and asked for again at every update."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache

# Names and values in glibc's malloc.h: how much free memory is handed back to the system, and
# from which size on memory is asked of the system for one tensor alone.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGEST_TRIM, LARGEST_MMAP = 2**31 - 1, 2**25


@cache
def keep_freed_memory() -> None:
    """Let the process keep what it frees, where the C library can be told so (Linux).

    Gradients are freed and allocated anew at every update. Given back to the system in between,
    their pages have to be cleared and mapped each time, which takes a quarter of an update of a
    model with few examples and many weights.
    """
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):  # another C library: nothing is gained, nothing lost
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, LARGEST_MMAP)
        library.mallopt(TRIM_THRESHOLD, LARGEST_TRIM)
