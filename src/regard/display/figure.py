"""A figure described once, drawn as vector graphics and as an interactive picture.

A figure is a row of panels, a panel is a list of marks on labelled axes. The description is
plain data: it goes into a result file and comes out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from regard.statistics import Estimate

# Okabe and Ito's palette: distinct for every common kind of colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
SIGNS = ("#2166AC", "#B2182B")  # negative, positive: the ends of the signed scale of colours


class Coloured:
    """A mark that has one of the palette's colours, and a label that says what it stands for."""

    label: str
    colour: int

    @property
    def paint(self) -> str:
        """Its colour, as web pages and vector graphics name it."""
        return PALETTE[self.colour % len(PALETTE)]


@dataclass(frozen=True)
class Line(Coloured):
    """Values along x, with a band from low to high where given."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    colour: int = 0
    points: bool = False
    dashed: bool = False

    @classmethod
    def of(cls, label: str, x: Iterable[float], found: Iterable[Estimate], colour: int = 0) -> Line:
        """Through the means, with a band over the intervals."""
        return cls(label, tuple(map(float, x)), *_spread(found), colour)

    @classmethod
    def of_each(cls, groups: Mapping[str, Mapping[Any, Estimate]]) -> tuple[Line, ...]:
        """A line per group, each in its colour, over the numbers that its estimates have."""
        return tuple(
            cls.of(name, found, found.values(), colour)
            for colour, (name, found) in enumerate(groups.items())
        )


@dataclass(frozen=True)
class Bars(Coloured):
    """One bar per name or number, with whiskers from low to high where given."""

    label: str
    x: tuple[str | float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    colour: int = 0

    @classmethod
    def of(cls, label: str, found: Mapping[Any, Estimate], colour: int = 0) -> Bars:
        """One bar per name or number, as high as its mean, whiskers over its interval."""
        places = tuple(x if isinstance(x, str) else float(x) for x in found)
        return cls(label, places, *_spread(found.values()), colour)

    @classmethod
    def of_each(cls, groups: Mapping[str, Mapping[Any, Estimate]]) -> tuple[Bars, ...]:
        """Bars per group, each in its colour."""
        return tuple(cls.of(*group, colour) for colour, group in enumerate(groups.items()))


def _spread(
    found: Iterable[Estimate],
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Means, and low and high ends of the intervals."""
    values = list(found)
    return (
        tuple(e.mean for e in values),
        tuple(e.low for e in values),
        tuple(e.high for e in values),
    )


@dataclass(frozen=True)
class Heat:
    """A matrix as colours; `values[row][column]`, the first row at the top."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    label: str = ""
    low: float = 0.0
    high: float = 1.0
    numbers: bool = True
    signed: bool = False  # blue below zero, white at zero, red above


@dataclass(frozen=True)
class Boxes(Coloured):
    """One box per name from quartile to quartile, with whiskers from the lowest to the highest."""

    label: str
    x: tuple[str, ...]
    low: tuple[float, ...]
    quarter: tuple[float, ...]
    median: tuple[float, ...]
    three_quarters: tuple[float, ...]
    high: tuple[float, ...]
    colour: int = 0


@dataclass(frozen=True)
class Edges:
    """Lines between a row of nodes at the bottom and one at the top, by node number.

    Red where the value is positive, blue where negative, wider where it is large. Ticks at the
    nodes are as long as the node has lines.
    """

    bottom: tuple[int, ...]
    top: tuple[int, ...]
    values: tuple[float, ...]
    nodes: tuple[int, int]  # how many there are at the bottom and at the top
    rows: tuple[str, str] = ("from", "to")  # what the two rows are called
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # of the nodes, where not numbers

    def name(self, row: int, node: int) -> str:
        """What one node is called."""
        return self.names[row][node] if self.names[row] else str(node)

    def places(self, row: int) -> tuple[float, ...]:
        """Where the nodes of a row stand, between 0 and 1."""
        return tuple((node + 0.5) / self.nodes[row] for node in range(self.nodes[row]))

    def degrees(self, row: int) -> list[int]:
        """How many lines each node of a row has."""
        found = [0] * self.nodes[row]
        for node in (self.bottom, self.top)[row]:
            found[node] += 1
        return found

    def strengths(self) -> list[float]:
        """How large each value is among them, from 0 to 1."""
        sizes = [abs(value) for value in self.values]
        least, most = min(sizes, default=0.0), max(sizes, default=0.0)
        return [(size - least) / (most - least) if most > least else 1.0 for size in sizes]


@dataclass(frozen=True)
class Rule:
    """A reference line across the panel, at one x or one y."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class Span:
    """A shaded range of x, such as the lengths seen in training."""

    label: str
    start: float
    stop: float


@dataclass(frozen=True)
class Points(Coloured):
    """Places in a plane, such as states in two principal components, named where given."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: int = 0
    shape: Literal["dot", "square", "star", "cross"] = "dot"
    size: float = 1.0
    faint: bool = False
    names: tuple[str, ...] | None = None


M = TypeVar("M")
Mark = Line | Bars | Heat | Boxes | Edges | Rule | Span | Points
MARKS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Line, Bars, Heat, Boxes, Edges, Rule, Span, Points)
}


@dataclass(frozen=True)
class Panel:
    """Marks on one pair of axes. Units belong into the axis labels."""

    title: str
    x: str
    y: str
    marks: tuple[Mark, ...]
    y_range: tuple[float, float] | None = None
    square: bool = False  # one unit has the same length on both axes
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    wide: bool = False  # has a row of the figure to itself

    @classmethod
    def of(cls, title: str, x: str, y: str, *marks: Mark, **more: Any) -> Panel:
        """Some marks, one after the other."""
        return cls(title, x, y, marks, **more)

    def select(self, kind: type[M]) -> list[M]:
        """Its marks of one kind."""
        return [mark for mark in self.marks if isinstance(mark, kind)]


@dataclass(frozen=True)
class Figure:
    """Panels side by side, a name for files, and a caption."""

    name: str
    caption: str
    panels: tuple[Panel, ...]

    @classmethod
    def of(cls, name: str, caption: str, *panels: Panel) -> Figure:
        """Some panels, one after the other."""
        return cls(name, caption, panels)

    def svg(self) -> str:
        """The figure as vector graphics."""
        from regard.display.vector import svg

        return svg(self)

    def interactive(self) -> dict[str, Any]:
        """The figure as a plotly specification."""
        from regard.display.interactive import plotly

        return plotly(self)

    def save(self, path: str | Path) -> Path:
        """Write .svg, .pdf or .png, by the ending."""
        from regard.display.vector import save

        return save(self, Path(path))

    def _repr_html_(self) -> str:
        return self.svg()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        data = asdict(self)
        for panel, plain in zip(self.panels, data["panels"], strict=True):
            for mark, entry in zip(panel.marks, plain["marks"], strict=True):
                entry["mark"] = type(mark).__name__
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Figure:
        """The inverse of `to_json`."""
        panels = tuple(
            Panel(**{**panel, "marks": tuple(_mark(mark) for mark in panel["marks"])})
            for panel in data["panels"]
        )
        return cls(data["name"], data["caption"], panels)


def _mark(entry: dict[str, Any]) -> Any:
    fields = {key: _tuples(value) for key, value in entry.items() if key != "mark"}
    return MARKS[entry["mark"]](**fields)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
