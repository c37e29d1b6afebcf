"""The runs of the chapter, in its own size and in a smaller one, and how their loss falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.display import Line, Panel
from regard.display.figure import Mark
from regard.instruments.result import to_floats
from regard.papers.framework import Scale
from regard.papers.framework.measures import plan_seeds
from regard.runs import Run, RunConfig

UPDATES = {"quick": 700, "full": 2000}
UNITS = {"quick": 64, "full": 128}
SOURCE: dict[str, Any] = {"updates": 2000, "hidden": 128}  # the source's own, at either scale


def plan_chapter(scale: Scale, task: str = "reversal", **overrides: object) -> list[RunConfig]:
    """One run per seed: the chapter's own settings at full scale."""
    settings = {"updates": UPDATES[scale], "hidden": UNITS[scale], **overrides}
    return plan_seeds(scale, task, "chapter36", **settings)


def smooth_loss(run: Run, window: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Updates, and the training loss averaged over the last `window` of them."""
    updates, losses = run.curve("loss")
    window = min(window, len(losses))
    return np.array(updates[window - 1 :]), np.convolve(losses, np.ones(window) / window, "valid")


def find_first_below(run: Run, level: float) -> float:
    """The first update with the smoothed loss below a level; twice the updates if there is none."""
    updates, losses = smooth_loss(run)
    below = np.flatnonzero(losses < level)
    return float(updates[below[0]] if len(below) else 2 * updates[-1])


def average_final_loss(run: Run) -> float:
    """The training loss averaged over the last 100 updates."""
    return float(np.mean(run.curve("loss")[1][-100:]))


def draw_losses(title: str, groups: Mapping[str, Sequence[Run]], *more: Mark, **axes: Any) -> Panel:
    """The smoothed loss over updates, a line per group: mean and range over seeds."""
    lines = (_draw_loss(*group, colour) for colour, group in enumerate(groups.items()))
    return Panel.of(title, "update", "cross-entropy (nats per letter)", *lines, *more, **axes)


def _draw_loss(label: str, runs: Sequence[Run], colour: int) -> Line:
    curves = [smooth_loss(run) for run in runs]
    shortest = min(len(losses) for _, losses in curves)
    every = max(1, shortest // 200)  # a curve needs no more points than a screen
    losses = np.array([losses[:shortest:every] for _, losses in curves])  # (seed, update)
    mean, low, high = (to_floats(end(losses, axis=0)) for end in (np.mean, np.min, np.max))
    return Line(label, to_floats(curves[0][0][:shortest:every]), mean, low, high, colour)
