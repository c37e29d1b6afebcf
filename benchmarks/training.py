"""`python -m benchmarks training`: how fast reversal trains, against a loop and the machine."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.benchmark import (
    BENCHMARKS,
    Benchmark,
    matmul_peak,
    medians_in_turns,
    start_process,
    time_once,
)
from benchmarks.plain_loop import make_trainer
from benchmarks.plain_reversal import plain_reversal
from benchmarks.profile import WARM
from regard.runs import assemble, execute
from regard.runs.executor import cores as available_cores
from regard.training import Trainer, one_thread

SECONDS = 5.0
GOOD = 0.99  # exact match on validation strings


def reversal(seed: int = 0, **settings: Any) -> Trainer:
    """A trainer at the source's sizes: batch 64, hidden 128, LSTM, teacher forced."""
    return make_trainer("reversal", "chapter36", seed, forcing="always", **settings)


@BENCHMARKS.register("training")
def training() -> Benchmark:
    """All six ratios."""
    with one_thread():
        step, plain = medians_in_turns(reversal().step, plain_reversal().step)
        share, peak = peak_share()
    cores = available_cores()
    plain_wide = 1 / rate("plain", 1, threads=cores)
    alone, together = rate("ours", 1), rate("ours", cores)
    demo, source = to_accuracy("quickstart", 1500), to_accuracy("chapter36", 3000)
    ratios = {
        "one_process": (plain / step, 1.7, "updates/s against a plain loop, one thread each"),
        "all_seeds": (
            together * plain_wide,
            2.3,
            f"updates/s over {cores} seeds side by side, against a plain loop on all cores",
        ),
        "peak_share": (share, 0.55, "share of matrix-multiply peak, hidden 256, length 40"),
        "side_by_side": (together / alone, 1.5, f"{cores} seeds side by side against in turn"),
        "demo_in_a_minute": (
            60 / demo["seconds"] if demo["accuracy"] >= GOOD else 0.0,
            1.0,
            "60 s over the seconds that the demo's recipe needs to 99 % on lengths 5-10",
        ),
        "demo_recipe": (
            source["updates"] / demo["updates"] if demo["accuracy"] >= GOOD else 0.0,
            1.0,
            "updates that the source's recipe needs to 99 %, over those of the demo's"
            + ("" if source["accuracy"] >= GOOD else " (it had not got there: a lower bound)"),
        ),
    }
    raw = {
        "seconds_per_update": step,
        "plain_seconds_per_update": plain,
        "plain_seconds_per_update_all_cores": plain_wide,
        "updates_per_second_one_process": alone,
        "updates_per_second_side_by_side": together,
        "matmul_peak_gflops": peak / 1e9,
        "to_99_percent": {"demo": demo, "source": source},
    }
    return Benchmark("training", ratios, raw)


def peak_share(
    hidden: int = 256, batch: int = 64, length: int = 40, rounds: int = 5, updates: int = 8
) -> tuple[float, float]:
    """Operations a second of one update over those of a matrix product, and the latter.

    Processor seconds; the product is measured before each piece of updates and counts at its best.

    Counted are the products that are taken: those of both recurrences and of the readout, forward
    once and backward twice. Inputs are looked up in a projected table and not counted.
    """
    sizes = {"hidden": hidden, "embedding": hidden, "batch": batch}
    trainer = reversal(**sizes, shortest=length, longest=length)
    words = len(trainer.task.target_vocabulary)
    steps = length + 1  # <EOS>
    recurrent = (steps + steps - 1) * 4 * hidden * hidden  # the encoder's first state is zero
    operations = 3 * 2 * batch * (recurrent + steps * hidden * words)
    for _ in range(WARM):
        trainer.step()
    peaks, times = [], []
    for _ in range(rounds):
        peaks.append(matmul_peak(clock=time.process_time))
        times += [time_once(trainer.step) for _ in range(updates)]
    return operations / statistics.median(times) / max(peaks), max(peaks)


def rate(which: str, processes: int, threads: int = 1) -> float:
    """Updates a second, all processes together, once every one of them is warm."""
    workers = [start_process("worker", which, threads, threads=threads) for _ in range(processes)]
    for worker in workers:
        assert worker.stdout and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return sum(float(worker.communicate()[0]) for worker in workers)


def to_accuracy(model: str, updates: int) -> dict[str, float]:
    """Updates and seconds until 99 % of validation strings are right, on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "stop_accuracy": GOOD,
            "evaluate_every": 50,
            "checkpoint_every": 10_000,
            "updates": updates,
        }
        start = time.perf_counter()
        run = execute(assemble("reversal", model, 0, settings), Path(folder))
        taken = time.perf_counter() - start
        accuracy = run.curve("accuracy", "validation")[1][-1]
        reached = run.summary["updates"]
        return {"updates": reached, "seconds": taken, "accuracy": accuracy}
