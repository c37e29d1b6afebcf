"""`python -m benchmarks corpora`: texts that are larger than memory, and batches by length."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

from benchmarks.benchmark import BENCHMARKS, Benchmark, Measured, start_process
from benchmarks.made_text import write_pairs
from regard.errors import RegardError
from regard.runs.config import assemble
from regard.tasks.batch import Batch
from regard.tasks.corpus import CorpusTask, pick_rows
from regard.training import Trainer, one_thread

MEGABYTES, SECONDS = 600.0, 5.0
COLD = 2  # updates of each turn that do not count
MULTI30K = "multi30k/raw/train"


def measure_apart(work: str, folder: Path) -> Measured:
    """One work of `corpora_process` in a process of its own."""
    said, _ = start_process("corpora_process", work, folder).communicate()
    if not said:
        raise RegardError(f"The process that was to {work} said nothing.")
    found: Measured = json.loads(said)
    return found


def measure_large(pairs: int) -> Measured:
    """A large corpus, made, trained on, compared with the same in memory, and removed."""
    before = os.environ.get("REGARD_CACHE")
    with tempfile.TemporaryDirectory(prefix="regard-corpora-") as place:
        folder = Path(place)
        os.environ["REGARD_CACHE"] = str(folder / "cache")
        try:
            paths = write_pairs(folder, pairs)
            text = sum(path.stat().st_size for path in paths)
            found = {work: measure_apart(work, folder) for work in ("make", "train", "compare")}
            kept = sum(path.stat().st_size for path in (folder / "cache").rglob("*.*"))
        finally:
            os.environ.pop("REGARD_CACHE")
            if before is not None:
                os.environ["REGARD_CACHE"] = before
    return {"pairs": pairs, "text_bytes": text, "cache_bytes": kept, **found}


class Drawn:
    """A task with the batches of before: rows as the shuffle of an epoch has them."""

    def __init__(self, task: CorpusTask):
        self.task = task

    def train_batch(self, update: int, size: int, seed: int) -> Batch:
        """Rows of any lengths."""
        train = self.task.rows["train"]
        return train[pick_rows(update * size, size, seed, len(train))].padded()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)


def measure_padding(turns: int = 12, calls: int = 8, **settings: Any) -> Measured:
    """Sentences a second of `snell-translation`, batches by length and as before, in turns.

    On Multi30k, German to English, from the folder that REGARD_DATA names.
    """
    place = Path(os.environ.get("REGARD_DATA", ""), MULTI30K)
    if not place.with_suffix(".de.gz").is_file():
        raise RegardError(f"There is no {place}.de.gz. Set REGARD_DATA to a folder that has it.")
    files = {"source": f"{place}.de.gz", "target": f"{place}.en.gz", "training.device": "cpu"}
    config = assemble("translation", "snell-translation", 0, {**files, **settings})
    task, size = config.make_task(), config.training.batch
    assert isinstance(task, CorpusTask)
    tasks: list[Any] = [task, Drawn(copy(task))]
    trainers = [Trainer(config.make_model(task), each, config.training, 0) for each in tasks]
    chosen = [choose_updates(each, size, turns * calls) for each in tasks]
    with one_thread():
        times = [
            train_some(trainers, [each[turn::turns] for each in chosen]) for turn in range(turns)
        ]
    rates = [[size * calls / taken[which] for taken in times] for which in (0, 1)]
    return {
        "batch": size,
        "updates": turns * calls,
        "sentences_per_processor_second": statistics.harmonic_mean(rates[0]),
        "before": statistics.harmonic_mean(rates[1]),
        "ratios": sorted(new / old for new, old in zip(*rates, strict=True)),
        "padding": count_padding(tasks[0], size),
        "padding_before": count_padding(tasks[1], size),
    }


def choose_updates(task: Any, size: int, count: int) -> list[int]:
    """Updates whose batches stand for all: evenly from those of an epoch, in order of length.

    Batches by length are long or short, and a few that are taken as they come may be mostly one
    or the other.
    """
    updates = range(len(task.rows["train"]) // size)
    batches = (task.train_batch(update, size, 0) for update in updates)
    lengths = [batch.source.shape[1] + batch.target.shape[1] for batch in batches]
    order = sorted(updates, key=lambda update: lengths[update])
    return [order[(2 * place + 1) * len(order) // (2 * count)] for place in range(count)]


def train_some(trainers: Sequence[Trainer], updates: Sequence[Sequence[int]]) -> list[float]:
    """The processor seconds of some updates of each trainer, which take turns."""
    taken = []
    for trainer, chosen in zip(trainers, updates, strict=True):
        start = 0.0
        for number, update in enumerate([chosen[0]] * COLD + [*chosen]):
            if number == COLD:  # what came before found cold caches
                start = time.process_time()
            trainer.update = update
            trainer.step()
        taken.append(time.process_time() - start)
    return taken


def count_padding(task: Any, size: int, updates: int = 300) -> float:
    """The share of places in batches that hold no word."""
    batches = [task.train_batch(update, size, 0) for update in range(updates)]
    words = sum(int(b.source_lengths.sum() + b.target_lengths.sum()) for b in batches)
    places = sum(int(b.source.numel() + b.target.numel()) for b in batches)
    return 1 - words / places


@BENCHMARKS.register("corpora")
def corpora(pairs: int = 10_000_000, turns: int = 12) -> Benchmark:
    """Memory, time to the first update and speed at so many pairs; and what less padding brings."""
    return judge(
        measure_large(pairs),
        measure_padding(turns),
        measure_padding(turns // 2, **{"training.batch": 64}),
    )


def judge(large: Measured, small: Measured, larger_batches: Measured) -> Benchmark:
    """The ratios of what was measured."""
    pairs, trained, compared = large["pairs"], large["train"], large["compare"]
    ratios = {
        "memory": (
            MEGABYTES / trained["megabytes"],
            1.0,
            f"600 MB over the peak of a process that trains on {pairs} pairs",
        ),
        "memory_making": (
            MEGABYTES / large["make"]["megabytes"],
            1.0,
            "600 MB over the peak of the process that makes the cache",
        ),
        "first_update": (
            SECONDS / trained["processor_seconds_to_first_update"],
            1.0,
            "5 s over the processor seconds from asking for a run to its first update",
        ),
        "speed": (
            compared["memory"] / compared["mapped"],
            0.95,
            "updates/s from the cache over those from the same rows in memory",
        ),
        "less_padding": (
            small["sentences_per_processor_second"] / small["before"],
            1.2,
            "sentences/s of snell-translation on Multi30k, batches by length over drawn ones",
        ),
        "no_padding": (0.1 / small["padding"], 1.0, "a tenth over the share of padding, Multi30k"),
    }
    raw = {"large": large, "multi30k": small, "multi30k_batch_64": larger_batches}
    return Benchmark("corpora", ratios, raw)
