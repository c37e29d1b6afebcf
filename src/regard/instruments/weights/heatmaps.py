"""`heatmaps`: the weights of a model as pictures, gates apart (baan2019, section 3.1, Fig. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Bars, Figure, Heat, Line, Panel, Table
from regard.instruments._geometry import mean_finite
from regard.instruments._settings import Size
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result, estimate_over_seeds, to_floats
from regard.instruments.weights._blocks import Blocks, Matrices
from regard.recordings.storage import Array
from regard.statistics import Estimate

NAMED = 40  # rows that a table and bars can name one by one
WIDE = 60  # columns from which a matrix has a row of the figure to itself


@dataclass(frozen=True)
class Shown(Measured):
    """Some blocks of one model."""

    arrays: dict[str, Array]  # (to, from), in the order of the figure
    names: dict[str, tuple[str, ...]]  # of the rows
    clip: float | None  # where colours end
    described = ("clip",)

    def clipped(self, block: str) -> float:
        """The share of the weights beyond ±clip; 0 where nothing is clipped."""
        limit = np.inf if self.clip is None else self.clip
        return float((np.abs(self.arrays[block]) > limit).mean())

    def rows(self, block: str) -> Array:
        """Mean |w| of each row. (row,)"""
        return np.asarray(np.abs(self.arrays[block].astype(np.float64)).mean(axis=1))

    def values(self) -> dict[tuple[str, str], float]:
        """Per block how many weights, mean |w|, the largest |w|, and the share clipped."""
        found = {}
        for block, array in self.arrays.items():
            sizes = np.abs(array.astype(np.float64))
            found[block, "size"] = float(array.size)
            found[block, "mean"] = float(sizes.mean())
            found[block, "largest"] = float(sizes.max())
            found[block, "clipped"] = self.clipped(block)
        return found


class HeatmapsResult(Result[Shown]):
    """Blocks of each seed; the figure shows the first's."""

    title = "Weights"
    within = SIZE
    ranges = {"clipped": SHARE}

    @property
    def blocks(self) -> list[str]:
        """The blocks that all seeds have, in order."""
        return [b for b in self.first.arrays if all(b in seed.arrays for seed in self.seeds)]

    def rows(self, block: str) -> dict[str, Estimate]:
        """Mean |w| of each row of a block, over seeds, by the row's name."""
        return estimate_over_seeds(
            [
                dict(zip(seed.names[block], to_floats(seed.rows(block)), strict=True))
                for seed in self.seeds
            ],
            SIZE,
        )

    def table(self) -> Table:
        """A row per block, then one per row of a block that has few."""
        found = self.by_key()
        rows: list[tuple[Any, ...]] = []
        for block in self.blocks:
            values = [found[block, what] for what in ("mean", "largest", "clipped")]
            rows.append((block, _shape(self.first.arrays[block]), *values))
        for block in self.blocks:
            if len(self.first.arrays[block]) <= NAMED:
                rows += [
                    (f"{block}: {name}", "row", value, None, None)
                    for name, value in self.rows(block).items()
                ]
        columns = ("block", "size", "mean |w|", "largest |w|", "share clipped")
        return Table(self.heading(), columns, tuple(rows))

    def figure(self) -> Figure:
        """A heat map per block, and mean |w| per row over seeds."""
        clip = self.first.clip
        panels = [self._heat(block) for block in self.blocks]
        panels += self._rows()
        shown = f"Colours end at ±{clip:g}. " if clip else ""
        return Figure(
            "heatmaps",
            "Weights; a row is what a weight goes to (in an embedding: a word), a column what it"
            f" comes from. {shown}Then mean |w| per row. {self.over_seeds}; the first's"
            " weights are shown.",
            tuple(panels),
        )

    def _heat(self, block: str) -> Panel:
        array = self.first.arrays[block].astype(np.float64)
        limit = self.first.clip or float(np.abs(array).max()) or 1.0
        shown = np.round(np.clip(array, -limit, limit), 4)
        heat = Heat(
            self.first.names[block],
            tuple(map(str, range(array.shape[1]))),
            tuple(map(to_floats, shown)),
            "weight",
            -limit,
            limit,
            numbers=False,
            signed=True,
        )
        wide = array.shape[1] > max(WIDE, 2 * len(array))
        embeds = block.endswith("embedding")
        x = "dimension of the embedding" if embeds else "from unit"
        y = "word" if embeds or block == "readout" else "to unit"
        return Panel(f"{block} ({_shape(array)})", x, y, (heat,), wide=wide)

    def _rows(self) -> list[Panel]:
        """Bars for a block whose rows can be named, one panel of lines for all others."""
        panels: list[Panel] = []
        lines: list[Line] = []
        for block in self.blocks:
            if len(self.first.arrays[block]) <= NAMED:
                bars = Bars.of("", self.rows(block))
                panels.append(Panel(f"{block}, mean |w| per row", "row", "mean |w|", (bars,)))
                continue
            mean = mean_finite([np.sort(seed.rows(block))[::-1] for seed in self.seeds])
            ranks = to_floats(range(1, len(mean) + 1))
            lines.append(Line(block, ranks, to_floats(mean), colour=len(lines)))
        if lines:
            panels.append(
                Panel("Mean |w| per row, sorted", "rank of the row", "mean |w|", (*lines,))
            )
        return panels

    def to_json(self) -> dict[str, Any]:
        """The estimates, and mean |w| per row of every block."""
        rows = {
            block: {name: value.to_json() for name, value in self.rows(block).items()}
            for block in self.blocks
        }
        return {**super().to_json(), "rows": rows}


@instrument(HeatmapsResult, Matrices())
def heatmaps(blocks: Blocks, block: str | None = None, clip: Size | None = 1.0) -> Shown:
    """Weight matrices as heat maps, with their size, mean |w| and the share beyond ±clip.

    `block` is a name such as `decoder.embedding` (the default) or the beginning of several:
    `encoder.0.W_hh` is its gates. `clip=0` clips nothing. Instead of runs, modules of PyTorch or
    mappings from names to matrices will do.
    """
    chosen = blocks.under(block or blocks.first("decoder.embedding", "readout"))
    arrays = {name: blocks[name] for name in chosen}
    return Shown(arrays, {name: blocks.rows(name) for name in chosen}, clip or None)


def _shape(array: Array) -> str:
    return " × ".join(map(str, array.shape))
