"""What the experiments of chapter36 measure on their runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from regard.display import Bars, Line
from regard.models import Seq2Seq
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks import Task, tasks
from regard.training import evaluate

TRIALS = 200  # strings or sums per cell; the source uses 50 to 400


def variant(run: Run, **changes: Any) -> Task:
    """The run's task with other settings: other lengths, other digits."""
    config = run.config.task.model_copy(update={"padding": "masked", **changes})
    return tasks[run.config.task_name](config)


def accuracy(model: Seq2Seq, task: Task) -> float:
    """Free-running exact match on the test split."""
    return evaluate(model, task, task.split("test"))["accuracy"]


def by_length(runs: Sequence[Run], lengths: Iterable[int]) -> dict[int, Estimate]:
    """Exact match on strings of one length at a time, over seeds.

    All strings of a batch have the same length, so nothing is padded, as in the source's test.
    """
    models = [run.model() for run in runs]
    return {
        length: Estimate.share(
            accuracy(model, variant(run, shortest=length, longest=length, held_out=TRIALS))
            for run, model in zip(runs, models, strict=True)
        )
        for length in lengths
    }


def over(curve: dict[int, Estimate], lengths: Iterable[int]) -> Estimate:
    """The mean over some lengths, seed by seed."""
    rows = np.array([curve[length].values for length in lengths])  # (length, seed)
    return Estimate.share(rows.mean(axis=0))


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a − b, seed by seed."""
    within = None
    if a.within and b.within:
        within = (a.within[0] - b.within[1], a.within[1] - b.within[0])
    return Estimate.of((x - y for x, y in zip(a.values, b.values, strict=True)), within)


def smooth_loss(run: Run, window: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Updates, and the training loss averaged over the last `window` of them."""
    updates, losses = run.curve("loss")
    window = min(window, len(losses))
    return np.array(updates[window - 1 :]), np.convolve(losses, np.ones(window) / window, "valid")


def first_below(run: Run, level: float) -> float:
    """The first update with the smoothed loss below a level; twice the updates if there is none."""
    updates, losses = smooth_loss(run)
    below = np.flatnonzero(losses < level)
    return float(updates[below[0]] if len(below) else 2 * updates[-1])


def final_loss(run: Run) -> float:
    """The training loss averaged over the last 100 updates."""
    return float(np.mean(run.curve("loss")[1][-100:]))


def loss_line(runs: Sequence[Run], label: str, colour: int) -> Line:
    """The smoothed loss over updates: mean and range over seeds."""
    curves = [smooth_loss(run) for run in runs]
    shortest = min(len(losses) for _, losses in curves)
    every = max(1, shortest // 200)  # a curve needs no more points than a screen
    losses = np.array([losses[:shortest:every] for _, losses in curves])
    return Line(
        label,
        floats(curves[0][0][:shortest:every]),
        floats(losses.mean(axis=0)),
        floats(losses.min(axis=0)),
        floats(losses.max(axis=0)),
        colour,
    )


def spread(
    kind: type[Line] | type[Bars], label: str, curve: dict[Any, Estimate], colour: int
) -> Any:
    """Estimates as a line with a band, or as bars with whiskers."""
    names = [name if isinstance(name, str) else float(name) for name in curve]
    return kind(
        label,
        tuple(names),  # type: ignore[arg-type]
        tuple(e.mean for e in curve.values()),
        tuple(e.low for e in curve.values()),
        tuple(e.high for e in curve.values()),
        colour,
    )


def floats(values: Iterable[Any]) -> tuple[float, ...]:
    """Plain floats, for a figure."""
    return tuple(float(value) for value in values)


def percent(estimate: Estimate) -> str:
    """A share for a sentence."""
    return f"{100 * estimate.mean:.0f} %"
