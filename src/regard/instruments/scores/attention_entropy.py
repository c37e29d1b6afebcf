"""`attention_entropy`: how widely each head of each layer spreads its attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Figure, Panel, Table
from regard.errors import RegardError
from regard.instruments._head_grid import HeadGrid, draw_heads, rank_heads
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Measured, Result
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.recording import Recording
from regard.recordings.storage import Array


@dataclass(frozen=True)
class Entropies(Measured):
    """The mean entropy of each head's rows, as a share of what uniform weights would have."""

    grid: HeadGrid

    @property
    def heads(self) -> Mapping[str, Array]:
        """By site. (head,)"""
        return self.grid.rows

    def values(self) -> dict[tuple[str, str], float]:
        """By site and head; 0: one position has all weight, 1: all have the same."""
        return self.grid.values()


@dataclass(frozen=True, repr=False)
class EntropyResult(Result[Entropies]):
    """Entropies over seeds."""

    columns = ("site",)
    within = SHARE

    def ranked(self, largest: bool = False) -> Table:
        """All heads, the most pointed first."""
        found: Any = self.by_key()
        return rank_heads(f"Heads by entropy, {self.over_seeds}", "entropy", found, largest)

    def figure(self) -> Figure:
        """Layers × heads."""
        grids = [seed.grid for seed in self.seeds]
        heat = draw_heads(grids, "entropy / log(positions)", (0.0, 1.0))
        return Figure(
            "attention_entropy",
            "Mean entropy of attention over the positions it may look at: 0 where one has all"
            f" weight, 1 where all have the same. {self.over_seeds}.",
            (Panel("Layers and heads", "head", "attention", (heat,)),),
        )


@dataclass(frozen=True)
class EntropySums(Summed):
    """Σ H(α) / log n over the rows of one attention, head by head, and how many rows."""

    site: str

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`sums` (head,), `count` ()"""
        name, site = self.site, part.metadata.sites[self.site]
        sums, count = np.zeros(site.heads), 0
        masks = [f"{side}.mask" for side in (site.query_side, site.key_side)]
        for chunk in part.chunks([f"{name}.weights", *dict.fromkeys(masks)]):
            weights = chunk[f"{name}.weights"].astype(np.float64)
            positions = np.broadcast_to(chunk[masks[1]][:, None, :], weights[:, 0].shape)
            if site.causal:
                positions = positions & np.tril(np.ones(weights.shape[2:], np.bool_))
            size = positions.sum(axis=2)
            if not site.masked:
                size = np.full(size.shape, weights.shape[3])
            kept = chunk[masks[0]] & (size > 1)
            safe = np.where(weights > 0, weights, 1.0)
            rows = -(weights * np.log(safe)).sum(axis=3)  # (sample, head, query)
            shares = rows / np.log(np.maximum(size, 2))[:, None, :]
            sums += np.where(kept[:, None, :], shares, 0.0).sum(axis=(0, 2))
            count += int(kept.sum())
        return {"sums": sums, "count": np.array(count)}


@instrument(EntropyResult, sums=(EntropySums,))
def attention_entropy(
    recording: Recording,
    site: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> Entropies:
    """Mean entropy of attention weights, by site and head, as a share of its largest value.

    H(α) / log n over the n positions that a query may look at, averaged over queries with two
    positions or more. `site`, `layer` and `head` choose; by default all attentions are looked at.
    """
    recording.site()  # there is one
    sites = recording.metadata.sites
    chosen = [site] if site is not None else list(sites)
    chosen = [recording.site(name) for name in chosen]
    chosen = [name for name in chosen if layer is None or sites[name].layer == layer]
    if not chosen:
        layers = sorted({one.layer for one in sites.values()})
        raise RegardError(f"layer={layer} does not fit: there are {', '.join(map(str, layers))}.")
    found = {name: _measure(recording, name) for name in chosen}
    if head is not None:
        most = min(len(row) for row in found.values())
        if not 0 <= head < most:
            raise RegardError(f"head={head} does not fit: there are heads 0 to {most - 1}.")
        found = {name: row[head : head + 1] for name, row in found.items()}
    return Entropies(HeadGrid.of(found, head or 0))


def _measure(recording: Recording, name: str) -> Array:
    """One attention's mean entropy, piece by piece. (head,)"""
    found = add_up(EntropySums(name), recording)
    count = int(found["count"])
    return np.asarray(found["sums"] / count if count else np.nan * found["sums"])
