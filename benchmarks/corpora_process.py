"""One process of `python -m benchmarks corpora`, with a peak of memory of its own; JSON out."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from copy import copy
from pathlib import Path
from typing import Any

from benchmarks.benchmark import take_turns
from benchmarks.measuring import peak_megabytes
from regard.runs.config import RunConfig, assemble
from regard.tasks.corpus import CorpusTask
from regard.tasks.packed import PackedBatch
from regard.training import Trainer, one_thread

SETTINGS = {
    "longest": 40,
    "vocabulary": 4000,
    "training.batch": 64,
    "model.hidden": 64,
    "training.device": "cpu",
}
ROUNDS, CALLS = 20, 15


def configure(folder: Path) -> RunConfig:
    """A small model: the smaller it is, the more does reading count."""
    files = {"source": str(folder / "made.source"), "target": str(folder / "made.target")}
    return assemble("parallel", "aed", 0, {**files, **SETTINGS})


def make(folder: Path) -> dict[str, Any]:
    """Make the cache."""
    start, cpu = time.perf_counter(), time.process_time()
    task = configure(folder).make_task()
    assert isinstance(task, CorpusTask)
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - cpu,
        "megabytes": peak_megabytes(),
        "megabytes_of_workers": measure_workers(),
        "rows": len(task.rows["train"]),
    }


def measure_workers() -> list[float]:
    """The most memory of each process that this one has started and that is still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            about = dict(re.findall(r"(\w+):\s+(\d+)", path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
        if about.get("PPid") == str(os.getpid()):
            found.append(int(about.get("VmHWM", 0)) / 1024)
    return found


def train(folder: Path, updates: int = 600) -> dict[str, Any]:
    """From asking for a run to its first update, and the memory of some ten thousand rows.

    The hash of the files, the check of the cache and the model's first step count; importing
    torch and all benchmarks, which depends on no corpus, is told apart.
    """
    imports, began = time.process_time(), time.perf_counter()
    megabytes = peak_megabytes()
    config = configure(folder)
    task = config.make_task()
    trainer = Trainer(config.make_model(task), task, config.training, 0)
    opened = peak_megabytes()
    trainer.step()
    first = time.perf_counter() - began, time.process_time() - imports
    words = places = 0
    for update in range(updates):  # several windows of rows
        batch = task.train_batch(update, config.training.batch, 0)
        words += int(batch.source_lengths.sum() + batch.target_lengths.sum())
        places += batch.source.numel() + batch.target.numel()
    for _ in range(20):
        trainer.step()
    return {
        "seconds_to_first_update": first[0],
        "processor_seconds_to_first_update": first[1],
        "processor_seconds_of_imports": imports,
        "megabytes_of_imports": megabytes,
        "megabytes_when_opened": opened,
        "megabytes": peak_megabytes(),
        "padding": 1 - words / places,
    }


def compare(folder: Path) -> dict[str, Any]:
    """Updates from the cache, and from the same rows in memory, in turns."""
    config = configure(folder)
    mapped = config.make_task()
    assert isinstance(mapped, CorpusTask)
    held = copy(mapped)
    train = mapped.rows["train"]
    assert isinstance(train, PackedBatch)
    held.rows = {**mapped.rows, "train": train.compact()}
    trainers = [Trainer(config.make_model(t), t, config.training, 0) for t in (mapped, held)]
    if trainers[0].step() != trainers[1].step():
        raise AssertionError("Rows of the cache and of memory are not the same.")
    times = take_turns(*(t.step for t in trainers), rounds=ROUNDS, calls=CALLS)
    return {"mapped": sum(times[0]), "memory": sum(times[1]), "updates": len(times[0])}


if __name__ == "__main__":
    with one_thread():
        works = {"make": make, "train": train, "compare": compare}
        print(json.dumps(works[sys.argv[1]](Path(sys.argv[2]))))
