"""`regard bench lookup`: training of baan2019's guided model, and groups of units.

Times are processor seconds of one thread, which rise little when others use the machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from regard.bench.benchmark import Benchmark, benchmarks
from regard.bench.lookup_groups import groups_ratio
from regard.bench.plain_guided import PlainGuidedTraining, examples
from regard.bench.stopwatch import Stopwatch
from regard.errors import RegardError
from regard.runs import assemble
from regard.tasks.corpus import CorpusTask, places
from regard.training import Trainer, loop, one_thread

CLOSE = 1e-4  # how far the first losses may lie apart
MOVES = 7  # Adam reads a weight, its gradient and two moments, and writes all but the gradient
WARM = 5  # updates before the clock starts

# The parts of an update: whose function of which name.
PARTS: dict[str, tuple[tuple[object, str], ...]] = {
    "forward": ((loop, "forward"), (loop, "likelihood"), (loop, "guidance")),
    "backward": ((torch.Tensor, "backward"),),
    "norm and clipping": ((torch, "_foreach_norm"), (torch, "_foreach_mul_")),
    "adam": ((torch.optim.Adam, "step"),),
}


@benchmarks.register("lookup")
def lookup(
    rounds: int = 8, updates: int = 58, problems: int = 5, units: int = 512, hidden: int = 512
) -> Benchmark:
    """Both ratios; training in `rounds` pieces of so many updates, ours and plain in turns."""
    with one_thread():
        guided = Guided(hidden)
        ours, plain, once = in_pieces(guided, rounds, updates)
        profile = profiled(guided.ours, updates)
        groups = groups_ratio(problems, units)
    epoch = len(guided.rows) / updates  # pieces in it
    ratios = {
        "guided_epoch": (
            statistics.median(b / a for a, b in zip(ours, plain, strict=True)),
            2.0,
            "seconds of an epoch of baan, guided, at batch 1, of a plain loop over ours, one"
            " thread each; the plain loop goes back once for each loss",
        ),
        "groups": (
            groups["ratio"],
            3.0,
            "seconds to grow groups with scikit-learn, fitted anew for each unit, over ours",
        ),
    }
    raw = {
        "parameters": guided.parameters,
        "seconds_per_epoch": epoch * statistics.median(ours),
        "plain_seconds_per_epoch": epoch * statistics.median(plain),
        "plain_seconds_per_epoch_one_way_back": epoch * statistics.median(once),
        "seconds_of_pieces": {"updates": updates, "ours": ours, "plain": plain},
        "update": profile,
        "groups": groups,
    }
    return Benchmark("lookup", ratios, raw)


class Guided:
    """The guided model, and plain loops with the same weights on the same examples."""

    def __init__(self, hidden: int = 512, seed: int = 0):
        settings = {"guidance": 1, "hidden": hidden, "decoder_embedding": hidden, "device": "cpu"}
        config = assemble("lookup", "baan", seed, settings)
        task, training = config.make_task(), config.training
        assert isinstance(task, CorpusTask)
        self.ours = Trainer(config.make_model(task), task, training, seed)
        self.rows = examples(task.rows["train"])
        sizes = len(task.source_vocabulary), len(task.target_vocabulary), hidden
        assert training.clip is not None
        rates = training.learning_rate, training.clip
        self.plain = PlainGuidedTraining(*sizes, *rates)
        self.once = PlainGuidedTraining(*sizes, *rates, passes=1)
        for other in (self.plain, self.once):
            other.take(self.ours.model.state_dict())

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(p.numel() for p in self.ours.model.parameters())

    def plain_step(self, which: PlainGuidedTraining, update: int) -> float:
        """One update of a plain loop, on the example that ours has at this update."""
        (place,) = places(update, 1, self.ours.seed, len(self.rows))
        return which.step(self.rows[place])


def in_pieces(both: Guided, rounds: int, updates: int) -> tuple[list[float], ...]:
    """Seconds of pieces of as many updates: ours, the plain loop, and it with one way back.

    They take turns, so that a noisy machine is fair to all, and begin with the same loss.
    """
    works: list[Callable[[int], float]] = [
        lambda update: both.ours.step(),
        lambda update: both.plain_step(both.plain, update),
        lambda update: both.plain_step(both.once, update),
    ]
    first, *others = ([work(update) for update in range(WARM)] for work in works)
    for losses in others:
        agree(first[0], losses[0])
    taken: list[list[float]] = [[] for _ in works]
    for start in range(WARM, WARM + rounds * updates, updates):
        for work, times in zip(works, taken, strict=True):
            began = time.process_time()
            for update in range(start, start + updates):
                work(update)
            times.append(time.process_time() - began)
    return tuple(taken)


def agree(ours: float, plain: float) -> None:
    """Two programs that compute different things are not compared."""
    apart = abs(ours - plain)
    if not apart <= CLOSE:
        raise RegardError(
            f"The first losses of baan and of the plain loop lie {apart:g} apart, so there is"
            " nothing to compare. One of the two is wrong: see bench/plain_guided.py."
        )


def profiled(trainer: Trainer, updates: int) -> dict[str, Any]:
    """What an update's time goes into, and how near Adam is to the speed of the memory."""
    for _ in range(WARM):
        trainer.step()
    with Stopwatch(PARTS) as watch:
        began = time.process_time()
        for _ in range(updates):
            trainer.step()
        total = time.process_time() - began
    parts = {**watch.seconds, "rest": total - sum(watch.seconds.values())}
    moved = sum(p.numel() * p.element_size() for p in trainer.model.parameters()) * MOVES
    adam = watch.seconds["adam"] / updates
    copied = moved / copy_seconds(moved)
    return {
        "seconds": total / updates,
        "shares": {name: taken / total for name, taken in parts.items()},
        "adam_bytes": moved,
        "adam_gigabytes_per_second": moved / adam / 1e9,
        "copy_gigabytes_per_second": copied / 1e9,
    }


def copy_seconds(moved: int, times: int = 20) -> float:
    """The median time of a copy that reads and writes so many bytes together."""
    source = torch.ones(moved // 8)  # four bytes each, read once and written once
    target, taken = torch.empty_like(source), []
    for _ in range(times):
        began = time.process_time()
        target.copy_(source)
        taken.append(time.process_time() - began)
    return statistics.median(taken)
