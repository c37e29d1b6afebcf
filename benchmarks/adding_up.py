"""One process of `python -m benchmarks shards`: the nine shares, what they took, as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import replace
from typing import Any

from benchmarks.measuring import peak_megabytes
from regard.instruments.components import breakdown
from regard.recordings import load_recording

KINDS = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def measure(folder: str, jobs: int) -> dict[str, Any]:
    """The shares, seconds by the clock and of all processors, and the most memory of a process."""
    recording = replace(load_recording(folder), jobs=jobs)
    base, start, began = peak_megabytes(), time.perf_counter(), _seconds()
    shares = breakdown(recording, top=5).first.absolute
    wall, taken = time.perf_counter() - start, _seconds() - began
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        "jobs": jobs,
        "samples": len(recording),
        "shares": shares.tolist(),
        "wall": wall,
        "seconds": taken,
        "megabytes_before": base,
        "megabytes": max(peak_megabytes(), children),
    }


def _seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    used = [resource.getrusage(kind) for kind in KINDS]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
