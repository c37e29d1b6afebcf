"""`connectivity`: the strongest weights of one block as a graph (baan2019, section 3.2, Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from regard.display import Edges, Figure, Line, Panel, Points
from regard.errors import RegardError
from regard.instruments._geometry import mean_finite
from regard.instruments._settings import Share, Size
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, SIZE, Measured, Result, to_floats
from regard.instruments.weights._blocks import Blocks, Matrices
from regard.instruments.weights._graph import (
    busiest,
    by_chance,
    gini,
    modularity,
    modules,
    polarities,
    strongest,
)
from regard.recordings.storage import Array
from regard.subjects.subject import Subject

Order = Literal["own", "modules"]
ENDS = {
    "in": 1,
    "out": 0,
}  # of a next unit, all that comes in; of a previous unit, all that goes out
MEANINGS = {
    "edges": "edges kept",
    "threshold": "smallest |w| kept",
    "positive": "share of the edges that are positive",
    "gini in": "Gini of the edges per next unit",
    "gini out": "Gini of the edges per previous unit",
    "held in": "share of the edges at the busiest 5 % of next units",
    "held out": "share of the edges at the busiest 5 % of previous units",
    "polarity in": "mean |Σw / Σ|w|| of the busiest next units, edges kept",
    "polarity out": "mean |Σw / Σ|w|| of the busiest previous units, edges kept",
    "polarity in, all weights": "mean |Σw / Σ|w|| of all next units, all weights",
    "polarity out, all weights": "mean |Σw / Σ|w|| of all previous units, all weights",
    "modularity": "Barber's modularity",
    "modularity by chance": "the same of random graphs with these degrees",
    "modules": "modules with edges",
}


@dataclass(frozen=True)
class Graph(Measured):
    """One block, and which of its weights are edges."""

    block: str
    weights: Array  # (next, previous)
    kept: Array  # the same shape, True where there is an edge
    names: tuple[str, ...]  # of the next units
    described = ("block",)

    def degrees(self, end: str) -> Array:
        """Edges per unit: `in` of the next units, `out` of the previous ones. (unit,)"""
        return np.asarray(self.kept.sum(axis=ENDS[end]))

    def polarity(self, end: str, everything: bool = False) -> Array:
        """Σ w / Σ |w| per unit over its edges, or over all its weights. (unit,), NaN: no edge"""
        return polarities(self.weights if everything else self.weights * self.kept, ENDS[end])

    @cached_property
    def modules(self) -> tuple[Array, Array]:
        """The module of each next and of each previous unit."""
        return modules(self.kept)

    def values(self) -> dict[str, float]:
        """What `MEANINGS` says."""
        sizes = np.abs(self.weights[self.kept])
        count = int(self.kept.sum())
        found = {
            "edges": float(count),
            "threshold": float(sizes.min()) if count else 0.0,
            "positive": float((self.weights[self.kept] > 0).mean()) if count else 0.0,
        }
        for end in ENDS:
            degrees, busy = self.degrees(end), busiest(self.degrees(end))
            polar = np.abs(self.polarity(end)[busy])
            found[f"gini {end}"] = gini(degrees)
            found[f"held {end}"] = float(degrees[busy].sum() / max(count, 1))
            found[f"polarity {end}"] = _mean(polar)
            found[f"polarity {end}, all weights"] = _mean(np.abs(self.polarity(end, True)))
        rows, columns = self.modules
        found["modularity"] = modularity(self.kept, rows, columns)
        found["modularity by chance"] = by_chance(self.kept)
        found["modules"] = float(len(np.unique(rows[self.degrees("in") > 0])))
        return {name: found[name] for name in MEANINGS}

    def order(self, how: Order) -> tuple[Array, Array]:
        """The previous and the next units from left to right, those without edges last."""
        found = []
        for end, own in (("out", self.modules[1]), ("in", self.modules[0])):
            degrees = self.degrees(end)
            grouped = np.lexsort((-degrees, own, degrees == 0))
            found.append(grouped if how == "modules" else np.arange(len(own)))
        return found[0], found[1]


class ConnectivityResult(Result[Graph]):
    """Graphs of each seed; the figure shows the first's."""

    title = "Graph of {first.block} ({first.weights.shape[0]} × {first.weights.shape[1]})"
    headers = MEANINGS
    within = SHARE
    ranges = dict.fromkeys(("edges", "threshold", "modules"), SIZE)

    def figure(self) -> Figure:
        """The graph, degrees from the busiest down, and polarity against degree."""
        seed = self.first
        found = self.estimates()
        return Figure(
            "connectivity",
            f"{seed.block}: the {int(seed.kept.sum())} strongest of {seed.weights.size} weights,"
            " from the previous units (bottom) to the next (top); red positive, blue negative."
            f" Modularity {found['modularity']}, by chance"
            f" {found['modularity by chance']}. {self.over_seeds}; the first's graph is shown.",
            (self._graph(), self._degrees(), self._polarity()),
        )

    def _graph(self) -> Panel:
        seed = self.first
        previous, following = seed.order(self.settings["order"])
        shown = seed.weights[np.ix_(following, previous)] * seed.kept[np.ix_(following, previous)]
        top, bottom = np.nonzero(shown)
        edges = Edges(
            tuple(map(int, bottom)),
            tuple(map(int, top)),
            tuple(round(float(value), 5) for value in shown[top, bottom]),
            (len(previous), len(following)),
            ("previous", "next"),
            (tuple(map(str, previous)), tuple(seed.names[unit] for unit in following)),
        )
        x = ", by module" if self.settings["order"] == "modules" else ""
        return Panel(seed.block, f"unit of the previous layer{x}", "layer", (edges,), wide=True)

    def _degrees(self) -> Panel:
        lines = []
        for colour, (end, label) in enumerate((("in", "next"), ("out", "previous"))):
            mean = mean_finite([np.sort(seed.degrees(end))[::-1] for seed in self.seeds])
            ranks = to_floats(range(1, len(mean) + 1))
            lines.append(Line(f"{label} units", ranks, to_floats(mean), colour=colour))
        return Panel("Edges per unit, sorted", "rank of the unit", "edges", tuple(lines))

    def _polarity(self) -> Panel:
        points = []
        for colour, (end, label) in enumerate((("in", "next"), ("out", "previous"))):
            polarity, degrees = self.first.polarity(end), self.first.degrees(end)
            finite = np.isfinite(polarity)
            x, y = to_floats(degrees[finite]), to_floats(polarity[finite])
            points.append(Points(f"{label} units", x, y, colour, faint=True))
        return Panel("Polarity against edges", "edges", "Σw / Σ|w|", tuple(points), (-1.1, 1.1))


@instrument(ConnectivityResult, Matrices())
def connectivity(
    blocks: Blocks,
    block: str | None = None,
    threshold: Size | None = None,
    top: Share = 0.01,
    order: Order = "own",
) -> Graph:
    """The graph of a block's strongest weights: hubs, polarity, modularity.

    Edges are the weights with |w| > `threshold`, or the strongest `top` share. The default block
    is the encoder's W_hh of the update gate (of an LSTM, the input gate). `order` is how units
    stand in the figure. Instead of runs, modules of PyTorch or mappings from names to matrices
    will do.
    """
    gates = ("encoder.0.W_hh.update", "encoder.0.W_hh.input", "encoder.0.W_hh")
    recurrent = [n for n in blocks.arrays if "W_hh" in n]
    preferred = [n for gate in ("update", "input") for n in recurrent if n.endswith(gate)]
    if block is None and isinstance(blocks.of, Subject) and not recurrent:
        raise RegardError(
            "This model has no recurrent weights, which are looked at by default. Name a block:"
            f" {', '.join(list(blocks.arrays)[:8])}, …"
        )
    name = block or blocks.first(*gates, *preferred, *recurrent, "encoder.0.W_ih.update")
    array = blocks[name]
    return Graph(name, array, strongest(array, threshold, top), blocks.rows(name))


def _mean(values: Array) -> float:
    """The mean of what is a number; 0 where nothing is."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else 0.0
