"""`heads`: one number of any instrument for every layer and head, ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Figure, Heat, Panel, Table
from regard.errors import RegardError, unknown
from regard.instruments.registry import INSTRUMENTS, instrument
from regard.instruments.result import Measured, Result, to_floats
from regard.recordings.decomposition import HeadSums, StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

NUMBERS = {"breakdown": "temporal-temporal", "offset": "error", "aer": "aer"}  # by default


@dataclass(frozen=True)
class Heads(Measured):
    """One number per head of each attention."""

    of: str
    number: str
    grid: dict[str, Array]  # site -> (head,)
    described = ("of", "number")

    def values(self) -> dict[tuple[str, str], float]:
        """By site and head."""
        return {
            (site, f"head {place}"): float(value)
            for site, row in self.grid.items()
            for place, value in enumerate(row)
        }


@dataclass(frozen=True, repr=False)
class HeadsResult(Result[Heads]):
    """The number over seeds."""

    def heading(self) -> str:
        """Which number of which instrument."""
        return f"{self.first.number} of {self.first.of} by head, {self.over_seeds}"

    def ranked(self, largest: bool = True) -> Table:
        """All heads, the largest number first, or the smallest."""
        sign = -1 if largest else 1
        found = sorted(self.by_key().items(), key=lambda item: sign * item[1].mean)
        rows = tuple((str(key[0]), str(key[1]), value) for key, value in found)
        return Table(self.heading(), ("site", "head", self.first.number), rows)

    def figure(self) -> Figure:
        """Layers × heads, the mean over seeds."""
        sites = tuple(self.first.grid)
        width = max(len(row) for row in self.first.grid.values())
        rows = []
        for site in sites:
            mean = np.mean([seed.grid[site] for seed in self.seeds], axis=0)
            rows.append(to_floats(np.pad(mean, (0, width - len(mean)))))
        heat = Heat(sites, tuple(map(str, range(width))), tuple(rows), self.first.number)
        return Figure(
            "heads",
            f"{self.first.number}, as `{self.first.of}` measures it, for every layer and head."
            f" {self.over_seeds}.",
            (Panel("Layers and heads", "head", "attention", (heat,)),),
        )


@instrument(HeadsResult, sums=(StateSums, HeadSums))
def heads(
    recording: Recording,
    of: str = "breakdown",
    number: str | None = None,
    layer: int | None = None,
    crossing: bool = True,
) -> Heads:
    """One number of an instrument, for every head of every attention: a table of layers and heads.

    `of` is an instrument that takes `site` and `head` (`breakdown`, `offset`, `aer`, `pull`), and
    `number` one of its numbers; by default μ·μ's share. `crossing` looks at attentions from target
    to source only, `layer` at those of one layer.
    """
    found = INSTRUMENTS[of]
    if not {"site", "head"} <= found.parameters.keys() or found.at_once:
        able = [n for n in INSTRUMENTS if {"site", "head"} <= INSTRUMENTS[n].parameters.keys()]
        raise RegardError(f"'{of}' does not look at one head. These do: {', '.join(able)}.")
    sites = {
        name: site
        for name, site in recording.metadata.sites.items()
        if (site.crosses or not crossing) and layer in (None, site.layer)
    }
    if not sites:
        raise RegardError("This recording has no attention of that kind, or none at all.")
    grid = {
        name: np.array(
            [_measure(found, recording, name, head, number) for head in range(site.heads)]
        )
        for name, site in sites.items()
    }
    chosen = number or NUMBERS.get(of, "")
    return Heads(of, chosen, grid)


def _measure(found: Any, recording: Recording, site: str, head: int, number: str | None) -> float:
    values = found.measure(recording, site=site, head=head).values()
    wanted = number or NUMBERS.get(found.result.name) or next(iter(values))
    if wanted not in values:
        raise RegardError(unknown("number", str(wanted), [str(name) for name in values]))
    return float(values[wanted])
