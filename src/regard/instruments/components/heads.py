"""`heads`: one number of any instrument for every layer and head, ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Figure, Panel, Table
from regard.errors import RegardError, unknown
from regard.instruments._head_grid import HeadGrid, choose_crossing, draw_heads, rank_heads
from regard.instruments.registry import INSTRUMENTS, Instrument, instrument
from regard.instruments.result import Measured, Result
from regard.instruments.sources import Recordings, open_path
from regard.recordings.decomposition import HeadSums, StateSums
from regard.recordings.recording import Recording

NUMBERS = {  # by default
    "breakdown": "temporal-temporal", "offset": "error", "aer": "aer", "agreement": "agreement",
    "saliency": "A(α, Δ)", "lexical_probe": "A(α, β)",
}  # fmt: skip


@dataclass(frozen=True)
class Heads(Measured):
    """One number per head of each attention."""

    of: str
    number: str
    grid: HeadGrid
    described = ("of", "number")

    def values(self) -> dict[tuple[str, str], float]:
        """By site and head."""
        return self.grid.values()


@dataclass(frozen=True, repr=False)
class HeadsResult(Result[Heads]):
    """The number over seeds."""

    columns = ("site",)

    def heading(self) -> str:
        """Which number of which instrument."""
        return f"{self.first.number} of {self.first.of} by head, {self.over_seeds}"

    def ranked(self, largest: bool = True) -> Table:
        """All heads, the largest number first, or the smallest."""
        found: Any = self.by_key()
        return rank_heads(self.heading(), self.first.number, found, largest)

    def figure(self) -> Figure:
        """Layers × heads, the mean over seeds."""
        heat = draw_heads([seed.grid for seed in self.seeds], self.first.number)
        return Figure(
            "heads",
            f"{self.first.number}, as `{self.first.of}` measures it, for every layer and head."
            f" {self.over_seeds}.",
            (Panel("Layers and heads", "head", "attention", (heat,)),),
        )


def _ask(settings: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """What the instrument needs to be recorded besides."""
    found = INSTRUMENTS[settings.get("of", "breakdown")]
    takes, given = found.takes, settings.get("settings") or {}
    return takes.describe(given) if isinstance(takes, Recordings) else {}


@instrument(HeadsResult, Recordings(also=_ask), sums=(StateSums, HeadSums))
def heads(
    recording: Recording,
    of: str = "breakdown",
    number: str | None = None,
    layer: int | None = None,
    crossing: bool = True,
    settings: dict[str, Any] | None = None,
    against: Any = None,
) -> Heads:
    """One number of an instrument, for every head of every attention: a table of layers and heads.

    `of` is an instrument that takes `site` and `head` (`breakdown`, `offset`, `pull`, `aer`,
    `attention_entropy`, `saliency`, `agreement` with another recording in `against`), `number` one
    of its numbers, `settings` what else it is asked; by default μ·μ's share. `crossing` looks at
    attentions from target to source only, `layer` at those of one layer.
    """
    found = INSTRUMENTS[of]
    if not {"site", "head"} <= found.parameters.keys() or not isinstance(found.takes, Recordings):
        able = [n for n in INSTRUMENTS if {"site", "head"} <= INSTRUMENTS[n].parameters.keys()
                and isinstance(INSTRUMENTS[n].takes, Recordings)]  # fmt: skip
        raise RegardError(
            f"'{of}' does not look at one head of a recording. These do: {', '.join(able)};"
            " `ablate_heads` takes heads out of the model itself."
        )
    given, _ = found.read_settings(settings or {})
    other = _open_other(found, against)
    rows: dict[str, list[Mapping[Any, float]]] = {
        name: [
            _measure(found, recording, other, {**given, "site": name, "head": head})
            for head in range(site.heads)
        ]
        for name, site in choose_crossing(recording.metadata.sites, layer, crossing).items()
    }
    wanted = _choose_number(found, number, [one for row in rows.values() for one in row])
    grid = {
        name: [float(one[wanted]) if wanted in one else np.nan for one in row]
        for name, row in rows.items()
    }
    return Heads(found.result.name, wanted, HeadGrid.of(grid))


def _open_other(found: Instrument[Any, Any], against: Any) -> Recording | None:
    """The recording that each head is compared with, where the instrument compares."""
    if found.at_once and against is None:
        raise RegardError(f"'{found.result.name}' compares: give against=, another recording.")
    if not found.at_once and against is not None:
        raise RegardError(f"'{found.result.name}' does not compare, so leave out against=.")
    other = against if against is None or isinstance(against, Recording) else open_path(against)
    if other is not None and not isinstance(other, Recording):
        raise RegardError("against= is a recording, or the path of its file.")
    return None if other is None else other.compact


def _measure(
    found: Instrument[Any, Any],
    recording: Recording,
    other: Recording | None,
    asked: dict[str, Any],
) -> Mapping[Any, float]:
    """All numbers of one head, by name."""
    source = recording if other is None else [recording, other]
    measured = found.measure(source, **asked)
    values = (measured[0] if found.at_once else measured).values()
    # Where the names are those of the head, as in `attention_entropy`, there is one number.
    single = len(values) == 1 and not isinstance(next(iter(values)), str)
    return {"entropy": next(iter(values.values()))} if single else values


def _choose_number(
    found: Instrument[Any, Any], number: str | None, every: list[Mapping[Any, float]]
) -> Any:
    """The number that is shown, which at least one head has."""
    known = list(dict.fromkeys(name for values in every for name in values))
    wanted = number or NUMBERS.get(found.result.name) or next(iter(known), "")
    if wanted not in known:
        raise RegardError(unknown("number", str(wanted), [str(name) for name in known]))
    return wanted
