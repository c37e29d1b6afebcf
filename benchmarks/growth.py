"""`python -m benchmarks growth`: how the time of an update and of an instrument grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchmarks.benchmark import BENCHMARKS, Benchmark, Measured, take_turns
from benchmarks.synthetic import synthetic
from regard.instruments.components import breakdown
from regard.runs.config import assemble
from regard.training import Trainer, one_thread

LENGTHS = (10, 20, 40, 80)
MODELS = ("aed", "transformer")
SETTINGS = {"training.batch": 32, "training.device": "cpu", "held_out": 10}


def measure_updates(model: str, lengths: Sequence[int], rounds: int) -> dict[int, float]:
    """Processor seconds of an update on strings of each length: medians, in turns."""
    steps = []
    for length in lengths:
        strings = {"shortest": length, "longest": length}
        config = assemble("reversal", model, 0, {**SETTINGS, **strings})
        task = config.make_task()
        steps.append(Trainer(config.make_model(task), task, config.training, 0).step)
    times = take_turns(*steps, rounds=rounds, calls=6, cold=2)
    medians = [statistics.median(taken) for taken in times]
    return dict(zip(lengths, medians, strict=True))


def measure_breakdown(sequences: int, length: int) -> float:
    """Processor seconds of the averages and the nine terms; making the rows is not counted."""
    recording, storage = synthetic(sequences, length)
    storage.seconds = 0.0
    start = time.process_time()
    breakdown(recording, top=5)
    return time.process_time() - start - storage.seconds


@BENCHMARKS.register("growth")
def growth(rounds: int = 8, sequences: int = 4000) -> Benchmark:
    """Updates in the length of sentences, and `breakdown` in their number and length."""
    with one_thread():
        updates = {model: measure_updates(model, LENGTHS, rounds) for model in MODELS}
        measure_breakdown(sequences // 4, LENGTHS[1])  # what is imported then does not count
        by_number = {n: measure_breakdown(n, LENGTHS[1]) for n in (sequences, 4 * sequences)}
        by_length = {length: measure_breakdown(sequences, length) for length in LENGTHS}
    return judge(updates, by_number, by_length)


def judge(
    updates: dict[str, dict[int, float]],
    by_number: dict[int, float],
    by_length: dict[int, float],
) -> Benchmark:
    """How much less than in proportion the times grow, from the second size to the last."""
    ratios = {
        f"{model}_update": (
            _compare(times),
            0.8,
            f"seconds of an update of {model} a word, at {LENGTHS[1]} words over {LENGTHS[-1]}",
        )
        for model, times in updates.items()
    }
    ratios["breakdown_samples"] = (
        _compare(by_number), 0.8, "seconds of breakdown a sample, of few over four times as many"
    )  # fmt: skip
    raw: Measured = {"updates": updates, "by_number": by_number, "by_length": by_length}
    return Benchmark("growth", ratios, raw)


def _compare(times: dict[int, float]) -> float:
    """Time per unit of size: at the second of four sizes, or the first of two, over the last."""
    sizes = sorted(times)
    first, last = sizes[len(sizes) // 4], sizes[-1]
    return (times[first] / first) / (times[last] / last)
