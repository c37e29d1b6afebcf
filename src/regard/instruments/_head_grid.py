"""A number for every layer and head: as a table, ranked, and as a picture of layers × heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regard.display import Heat, Table
from regard.errors import RegardError
from regard.instruments.result import Range, to_floats
from regard.recordings.site import Site
from regard.recordings.storage import Array
from regard.statistics import Estimate


@dataclass(frozen=True)
class HeadGrid:
    """One number per head of some attentions; NaN where it could not be measured."""

    rows: Mapping[str, Array]  # site -> (head,)
    heads: Mapping[str, tuple[int, ...]]  # site -> which heads these are

    @classmethod
    def of(cls, rows: Mapping[str, Sequence[float] | Array], first: int = 0) -> HeadGrid:
        """Of rows whose heads are numbered from `first` on."""
        made = {site: np.asarray(row, dtype=np.float64) for site, row in rows.items()}
        return cls(made, {s: tuple(range(first, first + len(r))) for s, r in made.items()})

    def values(self) -> dict[tuple[str, str], float]:
        """By site and head, what is a number."""
        return {
            (site, f"head {head}"): float(value)
            for site, row in self.rows.items()
            for head, value in zip(self.heads[site], row, strict=True)
            if np.isfinite(value)
        }


def draw_heads(grids: Sequence[HeadGrid], label: str, within: Range = None) -> Heat:
    """The mean over seeds, a row per site and a column per head, empty where there is no head."""
    sites = tuple(grids[0].rows)
    columns = sorted({head for heads in grids[0].heads.values() for head in heads})
    found = np.full((len(sites), len(columns)), np.nan)
    for number, site in enumerate(sites):
        places = [columns.index(head) for head in grids[0].heads[site]]
        found[number, places] = np.mean([grid.rows[site] for grid in grids], axis=0)
    finite = found[np.isfinite(found)]
    low, high = within or (float(finite.min(initial=0)), float(finite.max(initial=0)))
    signed = within is None and low < 0
    if signed:
        low, high = -max(-low, high), max(-low, high)
    values = tuple(map(to_floats, found))
    names = tuple(map(str, columns))
    return Heat(sites, names, values, label, low, max(high, low + 1e-9), signed=signed)


def rank_heads(title: str, number: str, found: Mapping[tuple[str, str], Estimate],
               largest: bool = True) -> Table:  # fmt: skip
    """All heads, the largest number first, or the smallest."""
    sign = -1 if largest else 1
    order = sorted(found.items(), key=lambda item: sign * item[1].mean)
    rows = tuple((site, head, value) for (site, head), value in order)
    return Table(title, ("site", "head", number), rows)


def choose_crossing(
    sites: Mapping[str, Site], layer: int | None = None, crossing: bool = True
) -> dict[str, Site]:
    """The attentions of a recording that are looked at, or why there are none."""
    kind = {name: site for name, site in sites.items() if site.crosses or not crossing}
    found = {name: site for name, site in kind.items() if layer in (None, site.layer)}
    if not kind:
        raise RegardError("This recording has no attention of that kind, or none at all.")
    if not found:
        layers = ", ".join(map(str, sorted({site.layer for site in kind.values()})))
        raise RegardError(f"layer={layer} does not fit: there are {layers}.")
    return found
