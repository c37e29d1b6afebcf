"""One process of `python -m benchmarks words`, with a peak of memory of its own; JSON out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.ibm import zipfian
from benchmarks.measuring import peak_megabytes
from regard.instruments.words._pairs import Pair
from regard.instruments.words.cooccurrence import cooccurrence
from regard.instruments.words.ibm1 import ibm1
from regard.training import one_thread

BLOCK = 25_000  # pairs that are made at a time


class Made:
    """Made pairs that are read once, piece by piece; making them is not counted."""

    def __init__(self, pairs: int):
        self.pairs, self.seconds = pairs, 0.0

    def __iter__(self) -> Iterator[Pair]:
        for seed in range(-(-self.pairs // BLOCK)):
            start = time.process_time()
            block = zipfian(min(BLOCK, self.pairs - seed * BLOCK), seed)
            self.seconds += time.process_time() - start
            yield from block


def measure(work: str, pairs: int, iterations: int) -> dict[str, Any]:
    """Count, or learn, from so many made pairs of 8,000 words, about twelve in a sentence."""
    made, before, began = Made(pairs), peak_megabytes(), time.perf_counter()
    works: dict[str, Callable[[], Any]] = {
        "cooccurrence": lambda: cooccurrence(made),
        "ibm1": lambda: ibm1(made, iterations=iterations),
    }
    start = time.process_time()
    found = works[work]().first
    taken = time.process_time() - start - made.seconds
    return {
        "pairs": pairs, "iterations": iterations if work == "ibm1" else 0,
        "cells": int(found.matrix.nnz), "processor_seconds": taken,
        "seconds": time.perf_counter() - began, "processor_seconds_making_pairs": made.seconds,
        "megabytes_before": before, "megabytes": peak_megabytes(),
    }  # fmt: skip


if __name__ == "__main__":
    with one_thread():
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
