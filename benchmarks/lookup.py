"""`python -m benchmarks lookup`: training of baan2019's guided model, and groups of units.

Times are processor seconds of one thread, which rise little when others use the machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.benchmark import BENCHMARKS, Benchmark, agree, take_turns
from benchmarks.lookup_groups import groups_ratio
from benchmarks.plain_guided import guided
from benchmarks.profile import WARM, profile_updates
from regard.tasks.corpus import CorpusTask
from regard.training import one_thread


@BENCHMARKS.register("lookup")
def lookup(
    rounds: int = 8, updates: int = 58, problems: int = 5, units: int = 512, hidden: int = 512
) -> Benchmark:
    """Both ratios; training in `rounds` pieces of so many updates, ours and plain in turns."""
    with one_thread():
        trainer, *loops = guided(hidden)
        ours, plain, once = train_in_pieces([trainer, *loops], rounds, updates)
        profile = profile_updates(trainer, updates)
        groups = groups_ratio(problems, units)
    assert isinstance(trainer.task, CorpusTask)
    epoch = len(trainer.task.rows["train"]) / updates  # pieces in it
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
        "parameters": trainer.model.parameter_count,
        "seconds_per_epoch": epoch * statistics.median(ours),
        "plain_seconds_per_epoch": epoch * statistics.median(plain),
        "plain_seconds_per_epoch_one_way_back": epoch * statistics.median(once),
        "seconds_of_pieces": {"updates": updates, "ours": ours, "plain": plain},
        "update": profile,
        "groups": groups,
    }
    return Benchmark("lookup", ratios, raw)


def train_in_pieces(programs: list[Any], rounds: int, updates: int) -> list[list[float]]:
    """Seconds of pieces of as many updates of each program; all begin with the same loss."""
    ours, *plain = ([program.step() for _ in range(WARM)] for program in programs)
    for losses in plain:
        agree("The first loss of baan", ours[0], losses[0])

    def piece(step: Callable[[], float]) -> Callable[[], object]:
        return lambda: [step() for _ in range(updates)]

    return take_turns(*(piece(program.step) for program in programs), rounds=rounds)
