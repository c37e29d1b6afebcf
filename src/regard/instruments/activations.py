"""`activations`: the range of values that a hidden unit takes (baan2019, section 4.1, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.display import Boxes, Figure, Panel, Table
from regard.errors import RegardError
from regard.instruments.instrument import (
    SIZES,
    Measured,
    Result,
    Sources,
    each_recording,
    instruments,
    numbers,
)
from regard.recordings import Recording
from regard.recordings.storage import Array

BINS = 4096  # of a unit's range: a quartile is exact to a 4096th of it
QUARTILES = (0.25, 0.5, 0.75)
Side = Literal["both", "encoder", "decoder"]


@dataclass(frozen=True)
class Ranges:
    """What the units of one side's states do over all samples and steps."""

    low: Array  # (unit,)
    quartiles: Array  # (3, unit)
    high: Array  # (unit,)
    sampled: Array  # (unit shown,), sorted by median

    @property
    def range(self) -> Array:
        """From the lowest to the highest value. (unit,)"""
        found: Array = self.high - self.low
        return found


@dataclass(frozen=True)
class Active(Measured):
    """The units of one model."""

    sides: dict[str, Ranges]
    width: float

    def values(self) -> dict[str, float]:
        """Over all units: the mean range, the share that is narrow, the mean quartile range."""
        found = {}
        for side, ranges in self.sides.items():
            found[f"{side} range"] = float(ranges.range.mean())
            found[f"{side} narrow"] = float((ranges.range < self.width).mean())
            between = ranges.quartiles[2] - ranges.quartiles[0]
            found[f"{side} interquartile"] = float(between.mean())
        return found


@dataclass(frozen=True)
class ActivationsResult(Result[Active]):
    """Ranges over seeds; the figure shows units of the first."""

    name = "activations"

    def bounds(self, name: str) -> tuple[float, float]:
        """Sizes, and a share."""
        return (0.0, 1.0) if name.endswith("narrow") else SIZES

    def table(self) -> Table:
        """A row per side."""
        found = self.estimates()
        shown = ("range", "narrow", "interquartile")
        rows = tuple(
            (side, len(ranges.low), *(found[f"{side} {what}"] for what in shown))
            for side, ranges in self.first.sides.items()
            if f"{side} range" in found
        )
        title = f"Values of hidden units, {self.n} seed{'s' * (self.n > 1)}"
        narrow = f"share with a range under {self.first.width:g}"
        return Table(title, ("side", "units", "mean range", narrow, "mean interquartile"), rows)

    def figure(self) -> Figure:
        """A box per sampled unit, a panel per side."""
        found = self.estimates()
        panels: list[Panel] = []
        for side, ranges in self.first.sides.items():
            chosen = ranges.sampled
            quarter, median, upper = (numbers(row[chosen]) for row in ranges.quartiles)
            boxes = Boxes(
                "",
                tuple(map(str, chosen)),
                numbers(ranges.low[chosen]),
                quarter,
                median,
                upper,
                numbers(ranges.high[chosen]),
                len(panels),
            )
            narrow = f", narrow: {found[f'{side} narrow']}" if f"{side} narrow" in found else ""
            title = f"{side.capitalize()}{narrow}"
            panels.append(Panel(title, "unit, by median", "value of h", (boxes,), wide=True))
        return Figure(
            "activations",
            "Values of sampled hidden units over all samples and steps: boxes from quartile to"
            " quartile, whiskers over the full range. Narrow: the share of all units whose range"
            f" is under {self.first.width:g}. {self.n} seeds; the first's units are shown.",
            tuple(panels),
        )


@instruments.register("activations")
def activations(
    sources: Sources, side: Side = "both", units: int = 50, seed: int = 0, width: float = 1.0
) -> ActivationsResult:
    """The range and the quartiles of every hidden unit; boxes of `units` drawn with `seed`.

    A unit is narrow if its full range is under `width`; tanh allows 2. Numbers are of all units,
    whichever are drawn.
    """
    if units < 1 or width <= 0:
        raise RegardError("units is 1 or more, and width more than 0.")
    sides: list[str] = ["encoder", "decoder"] if side == "both" else [side]
    return ActivationsResult(
        each_recording(sources, lambda recording: _measure(recording, sides, units, seed, width))
    )


def _measure(recording: Recording, sides: list[str], units: int, seed: int, width: float) -> Active:
    there = [side for side in sides if f"{side}.states" in recording]
    if not there:
        raise RegardError(f"This recording has no states of the {' or '.join(sides)}.")
    return Active({side: _ranges(recording, side, units, seed) for side in there}, width)


def _ranges(recording: Recording, side: str, units: int, seed: int) -> Ranges:
    """Two passes: the ends, then a histogram between them. Nothing grows with the samples."""
    names = [f"{side}.states", f"{side}.mask"]
    hidden = recording.shape(names[0])[2]
    low, high = np.full(hidden, np.inf), np.full(hidden, -np.inf)
    for chunk in recording.chunks(names):
        states = chunk[names[0]][chunk[names[1]]]  # (word, unit)
        low = np.minimum(low, states.min(axis=0, initial=np.inf))
        high = np.maximum(high, states.max(axis=0, initial=-np.inf))
    size = np.where(high > low, high - low, 1)
    counts = np.zeros(hidden * BINS)
    for chunk in recording.chunks(names):
        states = chunk[names[0]][chunk[names[1]]]
        bins = np.minimum(((states - low) / size * BINS).astype(np.int64), BINS - 1)
        counts += np.bincount((bins + np.arange(hidden) * BINS).ravel(), minlength=len(counts))
    shares = _within(counts.reshape(hidden, BINS))
    chosen = np.random.default_rng(seed).permutation(hidden)[:units]
    quartiles = low + shares * (high - low)
    return Ranges(low, quartiles, high, chosen[np.argsort(quartiles[1][chosen], kind="stable")])


def _within(counts: Array) -> Array:
    """Where in its range a unit has its quartiles, 0..1. (unit, bin) -> (3, unit)

    The value of rank q (n − 1), as numpy's quantile has it, taken at the middle of its bin.
    """
    sums = counts.cumsum(axis=1)
    ranks = np.array(QUARTILES)[:, None] * (sums[:, -1] - 1)
    found = []
    for rank in ranks:
        lower = (sums <= np.floor(rank)[:, None]).sum(axis=1)
        upper = (sums <= np.ceil(rank)[:, None]).sum(axis=1)
        found.append(lower + (upper - lower) * (rank - np.floor(rank)))
    return (np.stack(found) + 0.5) / BINS
