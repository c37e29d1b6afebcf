"""`activations`: the range of values that a hidden unit takes (baan2019, section 4.1, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.display import Boxes, Figure, Panel
from regard.errors import RegardError
from regard.instruments._settings import Count, Positive
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.recording import Recording
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
        return np.asarray(self.high - self.low)


@dataclass(frozen=True)
class Active(Measured):
    """The units of one model."""

    sides: dict[str, Ranges]
    width: float

    def values(self) -> dict[tuple[str, str], float]:
        """Over all units: the mean range, the share that is narrow, the mean quartile range."""
        found = {}
        for side, ranges in self.sides.items():
            found[side, "range"] = float(ranges.range.mean())
            found[side, "narrow"] = float((ranges.range < self.width).mean())
            between = ranges.quartiles[2] - ranges.quartiles[0]
            found[side, "interquartile"] = float(between.mean())
        return found


class ActivationsResult(Result[Active]):
    """Ranges over seeds; the figure shows units of the first."""

    title = "Values of hidden units; narrow: the share of units with a range under width"
    columns = ("side",)
    headers = {"range": "mean range", "interquartile": "mean interquartile"}
    within = SIZE
    ranges = {"narrow": SHARE}

    def figure(self) -> Figure:
        """A box per sampled unit, a panel per side."""
        found = self.by_key()
        panels: list[Panel] = []
        for side, ranges in self.first.sides.items():
            chosen = ranges.sampled
            quarter, median, upper = (to_floats(row[chosen]) for row in ranges.quartiles)
            boxes = Boxes(
                "",
                tuple(map(str, chosen)),
                to_floats(ranges.low[chosen]),
                quarter,
                median,
                upper,
                to_floats(ranges.high[chosen]),
                len(panels),
            )
            narrow = f", narrow: {found[side, 'narrow']}" if (side, "narrow") in found else ""
            title = f"{side.capitalize()}{narrow}"
            panels.append(Panel(title, "unit, by median", "value of h", (boxes,), wide=True))
        return Figure(
            "activations",
            "Values of sampled hidden units over all samples and steps: boxes from quartile to"
            " quartile, whiskers over the full range. Narrow: the share of all units whose range"
            f" is under {self.first.width:g}. {self.over_seeds}; the first's units are shown.",
            tuple(panels),
        )


@dataclass(frozen=True)
class Ends(Summed):
    """The lowest and the highest value of every unit of one side."""

    side: str

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`low` and `high` (unit,)"""
        names = [f"{self.side}.states", f"{self.side}.mask"]
        hidden = part.shape(names[0])[2]
        low, high = np.full(hidden, np.inf), np.full(hidden, -np.inf)
        for chunk in part.chunks(names):
            states = chunk[names[0]][chunk[names[1]]]  # (word, unit)
            low = np.minimum(low, states.min(axis=0, initial=np.inf))
            high = np.maximum(high, states.max(axis=0, initial=-np.inf))
        return {"low": low, "high": high}

    def merge(self, one: Stats, other: Stats) -> Stats:
        """The ends of both."""
        low, high = np.minimum(one["low"], other["low"]), np.maximum(one["high"], other["high"])
        return {"low": low, "high": high}


@dataclass(frozen=True)
class Histograms(Summed):
    """How often every unit of one side is in each of `BINS` steps between its ends."""

    side: str
    needs_means = True  # the ends of all samples

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`counts` (unit · bin,)"""
        ends = add_up(Ends(self.side), whole)
        low, high, hidden = ends["low"], ends["high"], len(ends["low"])
        size = np.where(high > low, high - low, 1)
        names = [f"{self.side}.states", f"{self.side}.mask"]
        counts = np.zeros(hidden * BINS)
        for chunk in part.chunks(names):
            states = chunk[names[0]][chunk[names[1]]]
            bins = np.minimum(((states - low) / size * BINS).astype(np.int64), BINS - 1)
            counts += np.bincount((bins + np.arange(hidden) * BINS).ravel(), minlength=len(counts))
        return {"counts": counts}


@instrument(ActivationsResult, sums=(Ends, Histograms))
def activations(
    recording: Recording,
    side: Side = "both",
    units: Count = 50,
    seed: int = 0,
    width: Positive = 1.0,
) -> Active:
    """The range and the quartiles of every hidden unit; boxes of `units` drawn with `seed`.

    A unit is narrow if its full range is under `width`; tanh allows 2. Numbers are of all units,
    whichever are drawn.
    """
    wanted = ["encoder", "decoder"] if side == "both" else [side]
    sides = [side for side in wanted if f"{side}.states" in recording]
    if not sides:
        raise RegardError(f"This recording has no states of the {' or '.join(wanted)}.")
    return Active({side: _ranges(recording, side, units, seed) for side in sides}, width)


def _ranges(recording: Recording, side: str, units: int, seed: int) -> Ranges:
    """Two passes: the ends, then a histogram between them. Nothing grows with the samples."""
    ends = add_up(Ends(side), recording)
    low, high, hidden = ends["low"], ends["high"], len(ends["low"])
    counts = add_up(Histograms(side), recording)["counts"]
    shares = _find_quartiles(counts.reshape(hidden, BINS))
    chosen = np.random.default_rng(seed).permutation(hidden)[:units]
    quartiles = low + shares * (high - low)
    return Ranges(low, quartiles, high, chosen[np.argsort(quartiles[1][chosen], kind="stable")])


def _find_quartiles(counts: Array) -> Array:
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
