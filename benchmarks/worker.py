"""One process of a race: warm up, wait for the word, count updates, print their rate."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.plain_reversal import plain_reversal
from benchmarks.training import SECONDS, reversal


def main(which: str, threads: int) -> None:
    """Run `ours` or the `plain` loop for some seconds."""
    torch.set_num_threads(threads)
    step: Callable[[], float] = (reversal() if which == "ours" else plain_reversal()).step
    gc.freeze()
    for _ in range(20):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        step()
        count += 1
    print(count / (time.perf_counter() - start))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
