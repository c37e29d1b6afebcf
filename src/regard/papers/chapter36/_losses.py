"""The training loss of runs: how it falls, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.display import Line
from regard.instruments.result import to_floats
from regard.runs import Run


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


def draw_loss(runs: Sequence[Run], label: str, colour: int) -> Line:
    """The smoothed loss over updates: mean and range over seeds."""
    curves = [smooth_loss(run) for run in runs]
    shortest = min(len(losses) for _, losses in curves)
    every = max(1, shortest // 200)  # a curve needs no more points than a screen
    losses = np.array([losses[:shortest:every] for _, losses in curves])
    return Line(
        label,
        to_floats(curves[0][0][:shortest:every]),
        to_floats(losses.mean(axis=0)),
        to_floats(losses.min(axis=0)),
        to_floats(losses.max(axis=0)),
        colour,
    )
