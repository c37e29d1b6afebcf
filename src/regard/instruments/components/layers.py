"""`layers`: where position and word enter the queries and keys, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.display import Figure, Line, Panel
from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Measured, Result, to_floats
from regard.recordings.adding import Stats, Summed, add_up
from regard.recordings.decomposition import HeadSums, StateSums
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

PARTS = ("temporal", "input", "delta")


@dataclass(frozen=True)
class Layers(Measured):
    """The shares of μ, χ and Δ in the mean square of queries and keys, by site."""

    shares: dict[tuple[str, str], Array]  # (site, `queries` or `keys`) -> (part,)

    def values(self) -> dict[tuple[str, str], float]:
        """By site and side, and component."""
        return {
            (" ".join(key), part): float(value)
            for key, row in self.shares.items()
            for part, value in zip(PARTS, row, strict=True)
        }


@dataclass(frozen=True, repr=False)
class LayersResult(Result[Layers]):
    """Shares over seeds."""

    within = SHARE

    def figure(self) -> Figure:
        """A panel for queries and one for keys, a line per component over the attentions."""
        panels = []
        for side in ("queries", "keys"):
            sites = [site for site, which in self.first.shares if which == side]
            rows = np.mean(
                [[seed.shares[site, side] for site in sites] for seed in self.seeds], axis=0
            )
            steps = to_floats(range(1, len(sites) + 1))
            lines = tuple(
                Line(part, steps, to_floats(rows[:, number]), colour=number, points=True)
                for number, part in enumerate(PARTS)
            )
            panels.append(Panel(side, " · ".join(sites), "share of the mean square", lines, (0, 1)))
        return Figure(
            "layers",
            "Shares of position (temporal), word (input) and the rest (delta) in queries and keys,"
            f" without their overall mean, from first to last attention. {self.over_seeds}.",
            tuple(panels),
        )


@dataclass(frozen=True)
class PartSquares(Summed):
    """Σ‖μ − its mean‖², Σ‖χ‖² and Σ‖Δ‖² of the `queries` or `keys` of an attention."""

    site: str
    which: str
    head: int | None = None  # all
    needs_means = True

    def map(self, part: Recording, whole: Recording) -> Stats:
        """`sums` (part,)"""
        site, queries = part.metadata.sites[self.site], self.which == "queries"
        side = site.query_side if queries else site.key_side
        heads = getattr(whole.decomposition.site(self.site), self.which)
        sums, array = np.zeros(3), f"{self.site}.{self.which}"
        for chunk in part.chunks([array, f"{side}.words", f"{side}.mask"]):
            words, mask = chunk[f"{side}.words"], chunk[f"{side}.mask"]
            words = site.shift_words(words) if queries and site.lag else words
            for number, components in enumerate(heads):
                if self.head not in (None, number):
                    continue
                parts = components.parts(chunk[array][:, number], words)
                counts = components.counts.sum(axis=0).astype(np.float64)
                middle = counts @ components.temporal / max(counts.sum(), 1.0)
                for place, one in enumerate(parts):
                    values = one.numpy() - (middle if place == 0 else 0.0)
                    sums[place] += float((values**2 * mask[:, :, None]).sum())
        return {"sums": sums}


@instrument(LayersResult, sums=(StateSums, HeadSums, PartSquares))
def layers(recording: Recording, crossing: bool = True, head: int | None = None) -> Layers:
    """Shares of μ, χ and Δ in queries and keys of every attention, layer by layer.

    |part|² / Σ|parts|², averaged over steps, words and heads, after the overall mean is taken out
    of μ, which is neither position nor word. `crossing=False` looks at self-attention, too,
    `head` at one head instead of all.
    """
    recording.site()
    found: dict[tuple[str, str], Array] = {}
    for name, site in recording.metadata.sites.items():
        if (crossing and not site.crosses) or f"{name}.queries" not in recording:
            continue
        parts = recording.decomposition.site(name)  # made once, and kept
        if head is not None:
            parts.head(head)  # it is there
        for which in ("queries", "keys"):
            sums = add_up(PartSquares(name, which, head), recording)["sums"]
            found[name, which] = np.asarray(sums / max(sums.sum(), 1e-30))
    if not found:
        raise RegardError(
            "This recording has no queries and keys to take apart. Record them, or give"
            " crossing=False to look at self-attention."
        )
    return Layers(found)
