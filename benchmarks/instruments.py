"""`python -m benchmarks instruments`: the nine terms, their memory, training on own predictions."""

from __future__ import annotations

import json
import statistics

from benchmarks.benchmark import (
    BENCHMARKS,
    Benchmark,
    Measured,
    agree,
    medians_in_turns,
    start_process,
)
from benchmarks.plain_attention import own_predictions
from regard.training import one_thread

GROWTH = 1.1  # peak memory may be this many times that of a tenth of the sequences


@BENCHMARKS.register("instruments")
def instruments(sequences: int = 200_000, rounds: int = 3, calls: int = 25) -> Benchmark:
    """All three ratios, of that many sequences, each measured `rounds` times in turns."""
    small = measure_apart("ours", max(1, sequences // 10))
    pairs = [[measure_apart(who, sequences) for who in ("ours", "textbook")] for _ in range(rounds)]
    for ours, textbook in pairs:
        agree("The nine shares", ours["shares"], textbook["shares"])
    fast, slow = (
        statistics.median(m["seconds"] for m in side) for side in zip(*pairs, strict=True)
    )
    large = max(ours["megabytes"] for ours, _ in pairs)
    with one_thread():
        aed, loop = own_predictions()
        agree("The first loss of AED", aed.step(), loop.step())
        trained, plain = medians_in_turns(aed.step, loop.step, rounds=4 * rounds, calls=calls)
    ratios = {
        "nine_terms": (
            slow / fast,
            3.0,
            f"decompose and breakdown of {sequences} sequences, against numpy with all states"
            " in memory, one thread each",
        ),
        "memory": (
            GROWTH * small["megabytes"] / large,
            1.0,
            "1.1 times the peak memory at a tenth of the sequences, over that at all",
        ),
        "own_predictions": (
            plain / trained,
            1.5,
            "updates/s of AED on one-to-one, fed its own predictions, against a plain loop,"
            " one thread each",
        ),
    }
    raw = {
        "sequences": sequences,
        "ours": [ours for ours, _ in pairs],
        "textbook": [textbook for _, textbook in pairs],
        "ours_at_a_tenth": small,
        "seconds_per_update": trained,
        "plain_seconds_per_update": plain,
    }
    return Benchmark("instruments", ratios, raw)


def measure_apart(which: str, sequences: int) -> Measured:
    """What `measuring.measure` says in a fresh process with one thread."""
    found: Measured = json.loads(start_process("measuring", which, sequences).communicate()[0])
    return found
