"""Figures as vector graphics, by matplotlib."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from regard.display.figure import (
    PALETTE,
    SIGNS,
    Bars,
    Boxes,
    Edges,
    Figure,
    Heat,
    Line,
    Panel,
    Points,
    Rule,
    Span,
)

STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "svg.fonttype": "none",
    "svg.hashsalt": "regard",  # the same figure, the same bytes
    "text.parse_math": False,  # a dollar sign in a caption is a dollar sign
}


def svg(figure: Figure) -> str:
    """The figure as an SVG document."""
    out = StringIO()
    with mpl.rc_context(STYLE):
        draw(figure).savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def save(figure: Figure, path: Path) -> Path:
    """Write the figure in the format that the path ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        draw(figure).savefig(path, dpi=200)
    return path


WIDEST = 14.0  # inches; panels that would go beyond begin a new row
WIDE = 10.0  # a panel that has its row to itself
ROOM = 40  # names along an axis, where cells have no numbers; of more, some are left out
Numbers = NDArray[np.float64]
LEVELS = 16  # of strength, in a graph
NARROW = 28  # the same, side by side in a panel of one column


def draw(figure: Figure) -> Canvas:
    """The figure on a canvas, panels side by side, in as many rows as they need."""
    rows = _rows(figure.panels)
    sizes = [[_size(panel) for panel in row] for row in rows]
    heights = [max(height for _, height in row) for row in sizes]
    width = max(sum(w for w, _ in row) for row in sizes)
    canvas = Canvas(figsize=(width, sum(heights)), layout="constrained")
    FigureCanvasAgg(canvas)
    parts = canvas.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)
    for row, part, own in zip(rows, parts[:, 0], sizes, strict=True):
        ratios = [w for w, _ in own]
        if len(rows) > 1 and sum(ratios) < width:  # a short last row keeps its panels' widths
            ratios.append(width - sum(ratios))
        axes = part.subplots(1, len(ratios), squeeze=False, gridspec_kw={"width_ratios": ratios})
        for panel, ax in zip(row, axes[0], strict=False):
            _panel(panel, ax)
        for ax in axes[0][len(row) :]:
            ax.axis("off")
    return canvas


def _rows(panels: tuple[Panel, ...]) -> list[list[Panel]]:
    rows: list[list[Panel]] = [[]]
    for panel in panels:
        used = sum(_size(other)[0] for other in rows[-1])
        alone = panel.wide or any(other.wide for other in rows[-1])
        if rows[-1] and (alone or used + _size(panel)[0] > WIDEST):
            rows.append([])
        rows[-1].append(panel)
    return rows


def _size(panel: Panel) -> tuple[float, float]:
    """Inches: a column's width, taller where a matrix has many rows."""
    width, height = _own_size(panel)
    if any(isinstance(mark, Edges) for mark in panel.marks):
        height = 4.2
    return (max(width, WIDE) if panel.wide else width), height


def _own_size(panel: Panel) -> tuple[float, float]:
    heat = next((mark for mark in panel.marks if isinstance(mark, Heat)), None)
    if heat is None:
        bars = [mark for mark in panel.marks if isinstance(mark, Bars)]
        count = sum(len(mark.x) for mark in bars)
        legend = 1.0 if any(mark.label for mark in bars) else 0.0
        return max(3.4, 0.14 * count + 1.0) + legend, 2.6
    if not heat.numbers:  # colours alone need less room than numbers
        return (
            min(4.5, max(2.6, 0.14 * len(heat.columns) + 1.3)),
            min(4.2, max(2.6, 0.13 * len(heat.rows) + 0.9)),
        )
    return max(2.6, 0.36 * len(heat.columns) + 1.3), max(2.4, 0.3 * len(heat.rows) + 1.0)


def _panel(panel: Panel, ax: Axes) -> None:
    spans = any(isinstance(mark, Span) for mark in panel.marks)  # their labels stand below it
    ax.set_title(panel.title, loc="left", pad=13 if spans else 6)
    ax.set_xlabel(panel.x)
    ax.set_ylabel(panel.y)
    ax.set_xscale(panel.x_scale)
    ax.set_yscale(panel.y_scale)
    bars = [mark for mark in panel.marks if isinstance(mark, Bars)]
    for mark in panel.marks:
        match mark:
            case Line():
                _line(mark, ax)
            case Bars():
                _bars(mark, ax, bars.index(mark), len(bars))
            case Heat():
                _heat(mark, ax, panel.wide)
            case Points():
                _points(mark, ax)
            case Boxes():
                _boxes(mark, ax)
            case Edges():
                _edges(mark, ax)
            case Rule():
                _rule(mark, ax)
            case Span():
                ax.axvspan(mark.start, mark.stop, color="#999999", alpha=0.15, lw=0)
                ax.text(
                    (mark.start + mark.stop) / 2,
                    1.0,
                    mark.label,
                    transform=ax.get_xaxis_transform(),
                    ha="center",
                    va="bottom",
                    fontsize=6,
                    color="#555555",
                )
    if panel.y_range:
        ax.set_ylim(*panel.y_range)
    for axis, scale in ((ax.xaxis, panel.x_scale), (ax.yaxis, panel.y_scale)):
        if scale == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    places = {x for mark in panel.marks if isinstance(mark, Line) for x in mark.x}
    if panel.x_scale == "log":
        ax.set_xticks(sorted(places))
    elif places and all(x == int(x) for x in places):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.square:
        ax.set_aspect("equal", adjustable="datalim")
    if any(isinstance(m, Bars) and m.label for m in panel.marks):
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))  # bars fill the whole panel
    elif any(isinstance(m, Line | Points) and m.label for m in panel.marks):
        ax.legend()


def _line(mark: Line, ax: Axes) -> None:
    colour = PALETTE[mark.colour % len(PALETTE)]
    style: dict[str, Any] = {"marker": "o", "markersize": 3} if mark.points else {}
    ax.plot(
        mark.x,
        mark.y,
        color=colour,
        lw=1.3,
        ls="--" if mark.dashed else "-",
        label=mark.label or None,
        **style,
    )
    if mark.low is not None and mark.high is not None:
        ax.fill_between(mark.x, mark.low, mark.high, color=colour, alpha=0.18, lw=0)


def _bars(mark: Bars, ax: Axes, index: int, count: int) -> None:
    width = 0.8 / count
    named = any(isinstance(x, str) for x in mark.x)
    places = np.arange(len(mark.x)) if named else np.array(mark.x, dtype=float)
    whiskers = None
    if mark.low is not None and mark.high is not None:
        y = np.array(mark.y)
        whiskers = np.clip([y - np.array(mark.low), np.array(mark.high) - y], 0, None)
    ax.bar(
        places + (index - (count - 1) / 2) * width,
        mark.y,
        width,
        yerr=whiskers,
        error_kw={"lw": 0.8},
        color=PALETTE[mark.colour % len(PALETTE)],
        label=mark.label or None,
    )
    if named:
        long = max(len(str(x)) for x in mark.x) > 8
        ax.set_xticks(
            places,
            [str(x) for x in mark.x],
            rotation=25 if long else 0,
            ha="right" if long else "center",
        )
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


SHAPES = {"dot": ("o", 3.0), "square": ("s", 5.0), "star": ("*", 8.0), "cross": ("X", 6.0)}


def _points(mark: Points, ax: Axes) -> None:
    colour = PALETTE[mark.colour % len(PALETTE)]
    shape, size = SHAPES[mark.shape]
    ax.plot(
        mark.x,
        mark.y,
        ls="none",
        marker=shape,
        markersize=size * mark.size,
        color=colour,
        alpha=0.25 if mark.faint else 1.0,
        markeredgewidth=0 if mark.faint else 0.5,
        markeredgecolor="white",
        label=mark.label or None,
    )
    for x, y, name in zip(mark.x, mark.y, mark.names or (), strict=False):
        ax.annotate(name, (x, y), (3, 3), textcoords="offset points", fontsize=6, color=colour)


def _heat(mark: Heat, ax: Axes, wide: bool) -> None:
    values = np.array(mark.values, dtype=float)
    colours = "RdBu_r" if mark.signed else "cividis"
    image = ax.imshow(
        values, cmap=colours, vmin=mark.low, vmax=mark.high, aspect="auto", interpolation="nearest"
    )
    if not mark.numbers:
        ax.tick_params(labelsize=6)
    slanted = max((len(name) for name in mark.columns), default=0) > 3
    every = max(len(mark.columns), len(mark.rows)) if mark.numbers else 0
    columns = _kept(mark.columns, every or (ROOM if slanted or wide else NARROW))
    rows = _kept(mark.rows, every or ROOM)
    ax.set_xticks(
        list(columns),
        list(columns.values()),
        rotation=50 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor" if slanted else "default",
    )
    ax.set_yticks(list(rows), list(rows.values()))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if mark.numbers:
        middle = (mark.low + mark.high) / 2
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                ax.text(
                    column,
                    row,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if value < middle else "black",
                )
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(mark.label)


def _kept(names: tuple[str, ...], most: int) -> dict[int, str]:
    """The names that there is room for, by place: all, or one in 2, 4, 8, …"""
    step = 1
    while len(names) > step * most:
        step *= 2
    return dict(list(enumerate(names))[::step])


def _boxes(mark: Boxes, ax: Axes) -> None:
    colour = PALETTE[mark.colour % len(PALETTE)]
    places = np.arange(len(mark.x))
    quarter, upper = np.array(mark.quarter), np.array(mark.three_quarters)
    ax.vlines(places, mark.low, mark.high, color=colour, lw=0.8)
    for ends in (mark.low, mark.high):
        ax.hlines(ends, places - 0.2, places + 0.2, color=colour, lw=0.8)
    ax.bar(places, upper - quarter, 0.7, quarter, color=colour, label=mark.label or None)
    ax.hlines(mark.median, places - 0.35, places + 0.35, color="white", lw=1.2)
    kept = _kept(mark.x, 2 * ROOM)  # they stand upright
    ax.set_xticks(list(kept), list(kept.values()), rotation=90, fontsize=6)
    ax.set_xlim(-0.8, len(mark.x) - 0.2)


def _edges(mark: Edges, ax: Axes) -> None:
    """Strong lines over weak ones, weak ones thin and faint; ticks as long as nodes have lines."""
    values, strength = np.array(mark.values), np.array(mark.strengths())
    ends = [
        np.array(mark.places(row))[np.array(nodes, dtype=int)]
        for row, nodes in enumerate((mark.bottom, mark.top))
    ]
    # Lines of one sign and about one strength are one path: thousands alone make a large file.
    levels = np.round(strength * LEVELS) / LEVELS
    for level in np.unique(levels):
        for sign, colour in enumerate(SIGNS):
            here = (levels == level) & ((values > 0) == bool(sign))
            lines = _segments(ends[0][here], ends[1][here]), _segments(0.0 * ends[0][here], 1.0)
            ax.plot(*lines, color=colour, alpha=0.3 + 0.6 * level, lw=0.25 + 1.5 * level)
    most = max(1, *mark.degrees(0), *mark.degrees(1))
    for row, outwards in ((0, -1), (1, 1)):
        lengths = 0.015 + 0.13 * np.array(mark.degrees(row)) / most
        places, start = np.array(mark.places(row)), np.full(len(lengths), row + 0.01 * outwards)
        ticks = _segments(places, places), _segments(start, start + outwards * lengths)
        ax.plot(*ticks, color="#222222", lw=0.9)
    for label, colour in zip(("negative", "positive"), SIGNS, strict=True):
        ax.plot([], [], color=colour, label=label)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    ax.set(xlim=(0, 1), ylim=(-0.17, 1.17))
    kept = _kept(tuple(mark.name(0, node) for node in range(mark.nodes[0])), ROOM)
    ax.set_xticks([mark.places(0)[node] for node in kept], list(kept.values()), fontsize=6)
    ax.set_yticks((0, 1), mark.rows)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _segments(start: Numbers, stop: Numbers | float) -> Numbers:
    """One coordinate of separate lines as one path: start, stop, gap, and so on."""
    ends = np.stack([start, np.broadcast_to(stop, start.shape), np.full_like(start, np.nan)], 1)
    joined: Numbers = ends.ravel()
    return joined


def _rule(mark: Rule, ax: Axes) -> None:
    style: dict[str, Any] = {"color": "#555555", "lw": 0.8, "ls": ":"}
    if mark.y is not None:
        ax.axhline(mark.y, **style)
        ax.text(
            1.0,
            mark.y,
            mark.label,
            transform=ax.get_yaxis_transform(),
            fontsize=6,
            ha="right",
            va="bottom",
            color="#555555",
        )
    if mark.x is not None:
        ax.axvline(mark.x, **style)
        ax.text(
            mark.x,
            0.98,
            mark.label,
            transform=ax.get_xaxis_transform(),
            fontsize=6,
            rotation=90,
            ha="right",
            va="top",
            color="#555555",
        )
