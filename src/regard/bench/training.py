"""`regard bench training`: how fast reversal trains, against a plain loop and the machine."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.bench.benchmark import Benchmark, benchmarks, in_turns, matmul_peak, seconds
from regard.bench.plain import PlainTraining
from regard.runs import assemble, execute
from regard.training import Trainer, one_thread

SECONDS = 5.0


def ours(seed: int = 0, **settings: Any) -> Trainer:
    """A trainer at the source's sizes: batch 64, hidden 128, LSTM, teacher forced."""
    config = assemble("reversal", "chapter36", seed, {"forcing": "always", **settings})
    task = config.make_task()
    return Trainer(config.make_model(task), task, config.training, seed)


@benchmarks.register("training")
def training() -> Benchmark:
    """All four ratios."""
    with one_thread():
        step, plain = in_turns(ours().step, PlainTraining().step)
        share, peak = peak_share()
    cores = os.cpu_count() or 1
    plain_wide = 1 / rate("plain", 1, threads=cores)
    alone, together = rate("ours", 1), rate("ours", cores)
    demo, source = to_accuracy("quickstart", 1500), to_accuracy("chapter36", 6000)
    ratios = {
        "one_process": (plain / step, 1.7, "updates/s against a plain loop, one thread each"),
        "all_seeds": (
            together * plain_wide,
            2.3,
            f"updates/s over {cores} seeds side by side, against a plain loop on all cores",
        ),
        "peak_share": (share, 0.55, "share of matrix-multiply peak, hidden 256, length 40"),
        "side_by_side": (together / alone, 1.5, f"{cores} seeds side by side against in turn"),
        "demo_recipe": (
            60 / demo["seconds"],
            1.0,
            "60 s over the seconds that the demo's recipe needs to 99 % on lengths 5-10",
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


def peak_share(hidden: int = 256, batch: int = 64, length: int = 40) -> tuple[float, float]:
    """Operations a second of one update over those of a matrix product, and the latter.

    Counted are the products that are taken: those of both recurrences and of the readout, forward
    once and backward twice. Inputs are looked up in a projected table and not counted.
    """
    trainer = ours(hidden=hidden, embedding=hidden, batch=batch, shortest=length, longest=length)
    words = len(trainer.task.target_vocabulary)
    steps = length + 1  # <EOS>
    per_step = 2 * 4 * hidden * hidden + hidden * words
    operations = 3 * 2 * batch * steps * per_step
    peak = matmul_peak()
    taken = seconds(trainer.step, SECONDS)
    return operations / taken / max(peak, matmul_peak()), peak


def rate(which: str, processes: int, threads: int = 1) -> float:
    """Updates a second, all processes together, once every one of them is warm."""
    command = [sys.executable, "-m", "regard.bench.training", which, str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    workers = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(processes)
    ]
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
            "stop_accuracy": 0.99,
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


def _worker(which: str, threads: int) -> None:
    """Warm up, say so, wait for the word, count updates, print their rate."""
    torch.set_num_threads(threads)
    gc.freeze()
    step: Callable[[], float] = ours().step if which == "ours" else PlainTraining().step
    for _ in range(20):
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        step()
        count += 1
    print(json.dumps(count / (time.perf_counter() - start)))


if __name__ == "__main__":
    _worker(sys.argv[1], int(sys.argv[2]))
