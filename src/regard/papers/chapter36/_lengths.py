"""Accuracy on inputs of sizes that training may not have seen: lengths of strings, digits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from regard.display import Panel, Span
from regard.display.figure import Mark
from regard.models import Seq2Seq
from regard.papers.framework.measures import draw_shares
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks import TASKS, Task
from regard.training import evaluate

TRIALS = 200  # strings or sums per cell; the source uses 50 to 400
Curve = Mapping[int, Estimate]  # exact match by length


def vary_task(run: Run, **changes: Any) -> Task:
    """The run's task with other settings: other lengths, other digits."""
    config = run.config.task.model_copy(update={"padding": "masked", **changes})
    return TASKS[run.config.task_name](config)


def measure_accuracy(runs: Sequence[Run], models: Sequence[Seq2Seq], **changes: Any) -> Estimate:
    """Free-running exact match on the test split of the varied task, over seeds."""
    pairs = ((model, vary_task(run, held_out=TRIALS, **changes))
             for run, model in zip(runs, models, strict=True))  # fmt: skip
    return Estimate.share(evaluate(m, task, task.split("test"))["accuracy"] for m, task in pairs)


def measure_by_length(runs: Sequence[Run], lengths: Iterable[int]) -> dict[int, Estimate]:
    """Exact match on strings of one length at a time, over seeds.

    All strings of a batch have the same length, so nothing is padded, as in the source's test.
    """
    models = [run.model() for run in runs]
    return {n: measure_accuracy(runs, models, shortest=n, longest=n) for n in lengths}


def average_lengths(curve: Curve, lengths: Iterable[int]) -> Estimate:
    """The mean over some lengths, seed by seed."""
    rows = np.array([curve[length].values for length in lengths])  # (length, seed)
    return Estimate.share(rows.mean(axis=0))


def draw_lengths(title: str, longest: int, *marks: Mark) -> Panel:
    """Exact match over the length of strings; those of training have 5 to `longest` letters."""
    seen = Span("trained on these lengths", 4.5, longest + 0.5)
    return draw_shares(title, "letters in the string", "exact match", seen, *marks)
