"""`python -m benchmarks words`: counts of words, and IBM Model 1, over corpora of any size."""

from __future__ import annotations

import json

from benchmarks.benchmark import BENCHMARKS, Benchmark, Measured, start_process
from regard.errors import RegardError

MEGABYTES = 2048.0
PART = 10  # of the pairs, on which it is measured how time grows


def measure_apart(work: str, pairs: int, iterations: int) -> Measured:
    """One work of `words_process` in a process of its own."""
    said, _ = start_process("words_process", work, pairs, iterations).communicate()
    if not said:
        raise RegardError(f"The process that was to measure {work} said nothing.")
    found: Measured = json.loads(said)
    return found


@BENCHMARKS.register("words")
def words(pairs: int = 5_000_000, iterations: int = 2) -> Benchmark:
    """The most memory of IBM Model 1 and of counting, and how the time of both grows."""
    sizes = pairs // PART, pairs
    both = {
        work: [measure_apart(work, size, iterations) for size in sizes]
        for work in ("cooccurrence", "ibm1")
    }
    return judge(both)


def judge(both: dict[str, list[Measured]]) -> Benchmark:
    """The ratios of what was measured, on a part and on all pairs."""
    ratios = {}
    for work, (part, whole) in both.items():
        ratios[f"{work}_memory"] = (
            MEGABYTES / whole["megabytes"],
            1.0,
            f"2 GiB over the peak of a process that does {work} of {whole['pairs']} pairs",
        )
        per_pair = [found["processor_seconds"] / found["pairs"] for found in (part, whole)]
        ratios[f"{work}_linear"] = (
            per_pair[0] / per_pair[1],
            0.8,
            f"processor seconds of {work} a pair, of {part['pairs']} pairs over those of all",
        )
    return Benchmark("words", ratios, dict(both))
