"""`regard bench instruments`: the nine terms, their memory, and training on own predictions."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from regard.bench.benchmark import Benchmark, benchmarks, in_turns
from regard.bench.plain_attention import PlainAttentionTraining
from regard.errors import RegardError
from regard.runs import assemble
from regard.training import Trainer, one_thread

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
CLOSE = 1e-4  # how far shares of the same data may lie apart
GROWTH = 1.1  # peak memory may be this many times that of a tenth of the sequences

Measured = dict[str, Any]


@benchmarks.register("instruments")
def instruments(sequences: int = 200_000, rounds: int = 3, calls: int = 25) -> Benchmark:
    """All three ratios, of that many sequences, each measured `rounds` times in turns."""
    small = in_a_process("ours", max(1, sequences // 10))
    pairs = [
        (in_a_process("ours", sequences), in_a_process("textbook", sequences))
        for _ in range(rounds)
    ]
    for ours, textbook in pairs:
        agree(ours, textbook)
    fast, slow = (
        statistics.median(m["seconds"] for m in side) for side in zip(*pairs, strict=True)
    )
    large = max(ours["megabytes"] for ours, _ in pairs)
    with one_thread():
        trained, plain = in_turns(*updates(), rounds=4 * rounds, calls=calls)
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


def in_a_process(which: str, sequences: int) -> Measured:
    """What `measuring.measure` says in a fresh process with one thread."""
    command = [sys.executable, "-P", "-m", "regard.bench.measuring", which, str(sequences)]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: Measured = json.loads(done.stdout)
    return found


def agree(ours: Measured, textbook: Measured) -> None:
    """Two measurements of the same data must say the same, or their speed means nothing."""
    apart = max(abs(a - b) for a, b in zip(ours["shares"], textbook["shares"], strict=True))
    if not apart <= CLOSE:
        raise RegardError(
            f"The nine shares lie {apart:g} apart from those of the textbook version, so there is"
            " nothing to compare. One of the two is wrong: see instruments/terms.py."
        )


class OwnPredictions:
    """AED on one-to-one at the paper's sizes, and the plain loop on the same batches."""

    def __init__(self, seed: int = 0):
        config = assemble(
            "one-to-one",
            "aed",
            seed,
            {"forcing": "never", "decay": "constant", "learning_rate": 2e-3},
        )
        task, training = config.make_task(), config.training
        self.ours = Trainer(config.make_model(task), task, training, seed)
        words = len(task.target_vocabulary)
        assert training.clip is not None
        self.plain = PlainAttentionTraining(
            words, training.l2, training.learning_rate, training.clip
        )
        self.plain.take(self.ours.model.state_dict())
        self.update = 0

    def plain_step(self) -> float:
        """One update of the plain loop, on the batch that ours has at this update."""
        batch = self.ours.task.train_batch(self.update, self.ours.config.batch, self.ours.seed)
        self.update += 1
        return self.plain.step(batch)


def updates() -> tuple[Callable[[], float], Callable[[], float]]:
    """One update of ours and one of the plain loop, which begin with the same loss."""
    both = OwnPredictions()
    apart = abs(both.ours.step() - both.plain_step())
    if not apart <= CLOSE:
        raise RegardError(
            f"The first losses of AED and of the plain loop lie {apart:g} apart, so there is"
            " nothing to compare. One of the two is wrong: see bench/plain_attention.py."
        )
    return both.ours.step, both.plain_step
