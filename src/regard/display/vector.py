"""Figures as vector graphics, by matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from regard.display.figure import (
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
from regard.display.fonts import check_directions, choose_fonts

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
NOTE: Any = {"fontsize": 6, "color": "#555555"}  # text beside a mark
WIDEST = 14.0  # inches; panels that would go beyond begin a new row
WIDE = 10.0  # a panel that has its row to itself
ROOM = 40  # names along an axis, where cells have no numbers; of more, some are left out
NARROW = 28  # the same, side by side in a panel of one column
LEVELS = 16  # of strength, in a graph
SHAPES = {"dot": ("o", 3.0), "square": ("s", 5.0), "star": ("*", 8.0), "cross": ("X", 6.0)}
Numbers = NDArray[np.float64]


def svg(figure: Figure) -> str:
    """The figure as an SVG document."""
    out = StringIO()
    with _style(figure):
        draw(figure).savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def save(figure: Figure, path: Path) -> Path:
    """Write the figure in the format that the path ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".svg":
        check_directions(figure)
    with _style(figure):
        draw(figure).savefig(path, dpi=200)
    return path


@contextmanager
def _style(figure: Figure) -> Iterator[None]:
    """While it lasts, all is drawn in our style, with fonts for every script there is one for."""
    fonts = choose_fonts(figure)
    more: dict[Any, Any] = {} if len(fonts) == 1 else {"font.family": [*fonts, "sans-serif"]}
    with mpl.rc_context({**STYLE, **more}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")  # it was told, once
        yield


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
    _settle(canvas)
    return canvas


def _settle(canvas: Canvas) -> None:
    """Keep the layout as it was found, rounded: its solver differs in the last bits."""
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    for ax in canvas.axes:
        place = ax.get_position()
        ax.set_position(np.round(place.bounds, 6).tolist())


def _rows(panels: tuple[Panel, ...]) -> list[list[Panel]]:
    """As few rows as there is room for, and none wider than it has to be: four panels are 2 + 2."""
    few = len(_fill(panels, WIDEST))
    widths = [_size(panel)[0] for panel in panels]
    ends = range(1, len(widths) + 1)
    limits = sorted({sum(widths[i:j]) for j in ends for i in range(j) if sum(widths[i:j]) < WIDEST})
    return _fill(panels, next((w for w in limits if len(_fill(panels, w)) == few), WIDEST))


def _fill(panels: tuple[Panel, ...], widest: float) -> list[list[Panel]]:
    """Each row has as many panels as there is room for."""
    rows: list[list[Panel]] = [[]]
    for panel in panels:
        used = sum(_size(other)[0] for other in rows[-1])
        alone = panel.wide or any(other.wide for other in rows[-1])
        if rows[-1] and (alone or used + _size(panel)[0] > widest + 1e-6):
            rows.append([])
        rows[-1].append(panel)
    return rows


def _size(panel: Panel) -> tuple[float, float]:
    """Inches: a column's width, taller where a matrix has many rows."""
    width, height = _own_size(panel)
    return (max(width, WIDE) if panel.wide else width), (4.2 if panel.select(Edges) else height)


def _own_size(panel: Panel) -> tuple[float, float]:
    heats, bars = panel.select(Heat), panel.select(Bars)
    if not heats:
        legend = 1.0 if any(mark.label for mark in bars) else 0.0
        return max(3.4, 0.14 * sum(len(mark.x) for mark in bars) + 1.0) + legend, 2.6
    rows, columns = len(heats[0].rows), len(heats[0].columns)
    if heats[0].numbers:
        return max(2.6, 0.36 * columns + 1.3), max(2.4, 0.3 * rows + 1.0)
    # Colours alone need less room than numbers.
    return min(4.5, max(2.6, 0.14 * columns + 1.3)), min(4.2, max(2.6, 0.13 * rows + 0.9))


def _panel(panel: Panel, ax: Axes) -> None:
    # The labels of spans stand below the title.
    ax.set_title(panel.title, loc="left", pad=13 if panel.select(Span) else 6)
    ax.set(xlabel=panel.x, ylabel=panel.y, xscale=panel.x_scale, yscale=panel.y_scale)
    for mark in panel.marks:
        DRAW[type(mark)](mark, ax, panel)
    if panel.y_range:
        ax.set_ylim(*panel.y_range)
    for axis, scale in ((ax.xaxis, panel.x_scale), (ax.yaxis, panel.y_scale)):
        if scale == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    places = {x for line in panel.select(Line) for x in line.x}
    if panel.x_scale == "log":
        ax.set_xticks(sorted(places))
    elif places and all(x == int(x) for x in places):
        ax.xaxis.set_major_locator(_whole_numbers())
    if panel.square:
        ax.set_aspect("equal", adjustable="datalim")
    if any(bars.label for bars in panel.select(Bars)):
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))  # bars fill the whole panel
    elif any(mark.label for mark in (*panel.select(Line), *panel.select(Points))):
        ax.legend()


def _set_names(
    axis: Axis, names: Sequence[str], room: int, places: Sequence[float] = (), **style: Any
) -> None:
    """Name the places along an axis, as far as there is room: all, or one in 2, 4, 8, …"""
    step = 1
    while len(names) > step * room:
        step *= 2
    axis.set_ticks((places or range(len(names)))[::step], labels=names[::step], **style)


def _line(mark: Line, ax: Axes, _: Panel) -> None:
    style: dict[str, Any] = {"marker": "o", "markersize": 3} if mark.points else {}
    style |= {"color": mark.paint, "lw": 1.3, "ls": "--" if mark.dashed else "-"}
    ax.plot(mark.x, mark.y, label=mark.label or None, **style)
    if mark.low is not None and mark.high is not None:
        ax.fill_between(mark.x, mark.low, mark.high, color=mark.paint, alpha=0.18, lw=0)


def _bars(mark: Bars, ax: Axes, panel: Panel) -> None:
    every = panel.select(Bars)
    width, index = 0.8 / len(every), every.index(mark)
    named = any(isinstance(x, str) for x in mark.x)
    places = np.arange(len(mark.x)) if named else np.array(mark.x, dtype=float)
    whiskers = None
    if mark.low is not None and mark.high is not None:
        y = np.array(mark.y)
        whiskers = np.clip([y - np.array(mark.low), np.array(mark.high) - y], 0, None)
    left = places + (index - (len(every) - 1) / 2) * width
    style: dict[str, Any] = {"error_kw": {"lw": 0.8}, "color": mark.paint}
    ax.bar(left, mark.y, width, yerr=whiskers, label=mark.label or None, **style)
    if named:
        names = [str(x) for x in mark.x]
        ax.set_xticks(places, names, **_slant(25, max(map(len, names)) > 8))
    else:
        ax.xaxis.set_major_locator(_whole_numbers())


def _whole_numbers() -> MaxNLocator:
    """Ticks at whole numbers, as many as there is room for."""
    return MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True)


def _slant(angle: int, slanted: bool) -> dict[str, Any]:
    """How names stand below an axis."""
    return {"rotation": angle, "ha": "right"} if slanted else {"rotation": 0, "ha": "center"}


def _points(mark: Points, ax: Axes, _: Panel) -> None:
    shape, size = SHAPES[mark.shape]
    alpha, edge = (0.25, 0) if mark.faint else (1.0, 0.5)
    style: dict[str, Any] = {"marker": shape, "markersize": size * mark.size, "color": mark.paint}
    style |= {"alpha": alpha, "markeredgewidth": edge, "markeredgecolor": "white"}
    ax.plot(mark.x, mark.y, ls="none", label=mark.label or None, **style)
    for x, y, name in zip(mark.x, mark.y, mark.names or (), strict=False):
        ax.annotate(name, (x, y), (3, 3), textcoords="offset points", fontsize=6, color=mark.paint)


def _heat(mark: Heat, ax: Axes, panel: Panel) -> None:
    values = np.array(mark.values, dtype=float)
    colours = "RdBu_r" if mark.signed else "cividis"
    image = ax.imshow(
        values, cmap=colours, vmin=mark.low, vmax=mark.high, aspect="auto", interpolation="nearest"
    )
    if not mark.numbers:
        ax.tick_params(labelsize=6)
    slanted = max((len(name) for name in mark.columns), default=0) > 3
    every = max(len(mark.columns), len(mark.rows)) if mark.numbers else 0
    mode = "anchor" if slanted else "default"
    room = every or (ROOM if slanted or panel.wide else NARROW)
    _set_names(ax.xaxis, mark.columns, room, rotation_mode=mode, **_slant(50, slanted))
    _set_names(ax.yaxis, mark.rows, every or ROOM)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if mark.numbers:
        middle = (mark.low + mark.high) / 2
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if value < middle else "black"
                ax.text(column, row, f"{value:.2f}", color=colour, **style)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(mark.label)


def _boxes(mark: Boxes, ax: Axes, _: Panel) -> None:
    places = np.arange(len(mark.x))
    quarter, upper = np.array(mark.quarter), np.array(mark.three_quarters)
    ax.vlines(places, mark.low, mark.high, color=mark.paint, lw=0.8)
    for ends in (mark.low, mark.high):
        ax.hlines(ends, places - 0.2, places + 0.2, color=mark.paint, lw=0.8)
    ax.bar(places, upper - quarter, 0.7, quarter, color=mark.paint, label=mark.label or None)
    ax.hlines(mark.median, places - 0.35, places + 0.35, color="white", lw=1.2)
    _set_names(ax.xaxis, mark.x, 2 * ROOM, rotation=90, fontsize=6)  # they stand upright
    ax.set_xlim(-0.8, len(mark.x) - 0.2)


def _edges(mark: Edges, ax: Axes, _: Panel) -> None:
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
    names = [mark.name(0, node) for node in range(mark.nodes[0])]
    _set_names(ax.xaxis, names, ROOM, mark.places(0), fontsize=6)
    ax.set_yticks((0, 1), mark.rows)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _segments(start: Numbers, stop: Numbers | float) -> Numbers:
    """One coordinate of separate lines as one path: start, stop, gap, and so on."""
    ends = np.stack([start, np.broadcast_to(stop, start.shape), np.full_like(start, np.nan)], 1)
    joined: Numbers = ends.ravel()
    return joined


def _rule(mark: Rule, ax: Axes, _: Panel) -> None:
    style: dict[str, Any] = {"color": "#555555", "lw": 0.8, "ls": ":"}
    if mark.y is not None:
        ax.axhline(mark.y, **style)
        along = ax.get_yaxis_transform()
        ax.text(1.0, mark.y, mark.label, transform=along, ha="right", va="bottom", **NOTE)
    if mark.x is not None:
        ax.axvline(mark.x, **style)
        along = ax.get_xaxis_transform()
        ax.text(
            mark.x, 0.98, mark.label, transform=along, rotation=90, ha="right", va="top", **NOTE
        )


def _span(mark: Span, ax: Axes, _: Panel) -> None:
    ax.axvspan(mark.start, mark.stop, color="#999999", alpha=0.15, lw=0)
    middle, above = (mark.start + mark.stop) / 2, ax.get_xaxis_transform()
    ax.text(middle, 1.0, mark.label, transform=above, ha="center", va="bottom", **NOTE)


DRAW: dict[type[Any], Callable[[Any, Axes, Panel], None]] = {
    Line: _line,
    Bars: _bars,
    Heat: _heat,
    Points: _points,
    Boxes: _boxes,
    Edges: _edges,
    Rule: _rule,
    Span: _span,
}
