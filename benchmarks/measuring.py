"""One process of `python -m benchmarks instruments`: the nine shares, what they took, as JSON.

In a process of its own, because the most memory that a process ever had only ever rises.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.synthetic import synthetic
from benchmarks.textbook import nine_shares
from regard.instruments.components import breakdown
from regard.recordings import Recording
from regard.recordings.storage import Array
from regard.training import one_thread


def measure(which: str, sequences: int) -> dict[str, Any]:
    """The shares, the seconds of one thread, and the most memory, by `ours` or the `textbook`.

    Making the rows is not counted: the textbook's are there when its clock starts, and ours,
    which are made piece by piece, twice over, are taken off.
    """
    recording, storage = synthetic(sequences)
    work = in_memory(recording) if which == "textbook" else partial(streamed, recording)
    base, making, storage.seconds = peak_megabytes(), storage.seconds, 0.0
    start = time.process_time()
    shares = work()
    taken = time.process_time() - start - storage.seconds
    return {
        "shares": shares.tolist(),
        "seconds": taken,
        "seconds_making_rows": making + storage.seconds,
        "megabytes_before": base,
        "megabytes": peak_megabytes(),
    }


def in_memory(recording: Recording) -> Callable[[], Array]:
    """The textbook's work, with everything read."""
    queries, keys = recording["decoder.states"], recording["encoder.states"]
    ours, theirs = recording["decoder.words"], recording["encoder.words"]
    return partial(nine_shares, queries, ours, keys, theirs)


def streamed(recording: Recording) -> Array:
    """Our instruments' work."""
    found: Array = breakdown(recording, top=5).first.absolute
    return found


def peak_megabytes() -> float:
    """The most memory that this process has had.

    Where one process starts another, Linux lets the new one begin with the old one's peak.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    with one_thread():
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
