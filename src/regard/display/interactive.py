"""Figures as interactive pictures, by plotly."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from regard.display.figure import (
    SIGNS,
    Bars,
    Boxes,
    Coloured,
    Edges,
    Figure,
    Heat,
    Line,
    Mark,
    Panel,
    Points,
    Rule,
    Span,
)

TALLEST = 640  # pixels, of a matrix without numbers
CROWDED = 64  # names along an axis; with more, cells have no gaps and some names are left out
WIDTHS = 4  # of the lines of a graph: one trace has one width
SHAPES = {"dot": ("circle", 5), "square": ("square", 9), "star": ("star", 12), "cross": ("x", 9)}
SHADE: dict[str, Any] = {  # of a range of x
    "fillcolor": "#999999",
    "opacity": 0.15,
    "line_width": 0,
    "annotation_position": "inside bottom left",  # curves mostly begin high
    "annotation_font_size": 10,
    "layer": "below",
}


def plotly(figure: Figure) -> dict[str, Any]:
    """The figure as a plotly specification (data and layout), ready for JSON.

    Panels stand two in a row, so that a page of ordinary width can hold them; a wide one alone.
    """
    places = _places(figure.panels)
    rows = places[-1][0]
    columns = max(column for _, column in places)
    specs: list[list[dict[str, int] | None]] = [[None] * columns for _ in range(rows)]
    for panel, (row, column) in zip(figure.panels, places, strict=True):
        specs[row - 1][column - 1] = {"colspan": columns} if panel.wide else {}
    picture = make_subplots(
        rows,
        columns,
        specs=specs,
        subplot_titles=[escape(panel.title) for panel in figure.panels],
        horizontal_spacing=0.12 if columns > 1 else 0,
        vertical_spacing=0.3 / rows,
    )
    for panel, (row, column) in zip(figure.panels, places, strict=True):
        _panel(picture, panel, {"row": row, "col": column})
    heights = [_height(mark) for panel in figure.panels for mark in panel.marks]
    picture.update_layout(
        template="simple_white",
        height=rows * max(360, *heights, 0) + 40,
        margin={"l": 60, "r": 20, "t": 50, "b": 100},
        font={"family": "system-ui, sans-serif", "size": 13},
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        bargap=0.2,
    )
    specification: dict[str, Any] = json.loads(picture.to_json())
    return specification


def _places(panels: tuple[Panel, ...]) -> list[tuple[int, int]]:
    """Row and column of each panel, from 1."""
    found: list[tuple[int, int]] = []
    row, column = 1, 0
    for before, panel in zip((None, *panels), panels, strict=False):
        full = column == 2 or panel.wide or (before is not None and before.wide)
        row, column = (row + 1, 1) if found and full else (row, column + 1)
        found.append((row, column))
    return found


def _height(mark: Mark) -> int:
    """Pixels that a mark wants."""
    if isinstance(mark, Heat):
        wanted = 26 * len(mark.rows) + 130
        return wanted if mark.numbers else min(wanted, TALLEST)
    return 520 if isinstance(mark, Edges) else 0


def _panel(picture: go.Figure, panel: Panel, at: dict[str, int]) -> None:
    for mark in panel.marks:
        for trace in TRACES[type(mark)](mark) if type(mark) in TRACES else ():
            picture.add_trace(trace, **at)
    for mark in panel.marks:  # plotly puts these only where a trace is already
        if isinstance(mark, Rule):
            note = {"annotation_text": escape(mark.label), "line": {"dash": "dot", "width": 1}}
            if mark.y is not None:
                picture.add_hline(mark.y, **note, **at)
            if mark.x is not None:
                picture.add_vline(mark.x, **note, **at)
        if isinstance(mark, Span):
            text = escape(mark.label)
            picture.add_vrect(mark.start, mark.stop, annotation_text=text, **SHADE, **at)
    picture.update_xaxes(title_text=escape(panel.x), type=_scale(panel.x_scale), **at)
    picture.update_yaxes(title_text=escape(panel.y), type=_scale(panel.y_scale), **at)
    if panel.square:
        axis = next(picture.select_xaxes(**at)).plotly_name.replace("axis", "")
        picture.update_yaxes(scaleanchor=axis, scaleratio=1, **at)
    if panel.select(Heat):
        picture.update_xaxes(type="category", tickangle=0, nticks=16 * _crowded(panel), **at)
        picture.update_yaxes(type="category", autorange="reversed", **at)
    elif panel.y_range:
        picture.update_yaxes(range=list(panel.y_range), **at)
    for edges in panel.select(Edges):
        names = [escape(row) for row in edges.rows]
        picture.update_xaxes(showticklabels=False, ticks="", showline=False, **at)
        picture.update_yaxes(tickvals=[0, 1], ticktext=names, showline=False, **at)
    if panel.select(Boxes):
        picture.update_xaxes(type="category", **at)


def _crowded(panel: Panel) -> bool:
    """Whether a matrix has more columns than there is room for names."""
    heats = panel.select(Heat)
    return any(len(heat.columns) > CROWDED and not heat.numbers for heat in heats)


def _scale(scale: str) -> str | None:
    return "log" if scale == "log" else None


def _name(mark: Coloured) -> dict[str, Any]:
    """How a mark is called, in the legend where it has a label."""
    return {"name": escape(mark.label), "showlegend": bool(mark.label)}


def _line(mark: Line) -> list[Any]:
    style = {"color": mark.paint, "dash": "dash" if mark.dashed else "solid"}
    mode = "lines+markers" if mark.points else "lines"
    line = go.Scatter(x=list(mark.x), y=list(mark.y), mode=mode, line=style, **_name(mark))
    if mark.low is None or mark.high is None:
        return [line]
    band = go.Scatter(
        x=[*mark.x, *mark.x[::-1]],
        y=[*mark.high, *mark.low[::-1]],
        fill="toself",
        fillcolor=mark.paint,
        opacity=0.18,
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
    return [band, line]


def _points(mark: Points) -> list[Any]:
    shape, size = SHAPES[mark.shape]
    opacity = 0.3 if mark.faint else 1.0
    points = go.Scatter(
        x=list(mark.x),
        y=list(mark.y),
        mode="markers+text" if mark.names else "markers",
        text=[escape(name) for name in mark.names] if mark.names else None,
        textposition="top right",
        marker={"symbol": shape, "size": size * mark.size, "color": mark.paint, "opacity": opacity},
        **_name(mark),
    )
    return [points]


def _bars(mark: Bars) -> list[Any]:
    whiskers = None
    if mark.low is not None and mark.high is not None:
        whiskers = {
            "type": "data",
            "symmetric": False,
            "array": [max(0, h - y) for h, y in zip(mark.high, mark.y, strict=True)],
            "arrayminus": [max(0, y - low) for low, y in zip(mark.low, mark.y, strict=True)],
        }
    names = [escape(x) if isinstance(x, str) else x for x in mark.x]
    y = list(mark.y)
    return [go.Bar(x=names, y=y, error_y=whiskers, marker_color=mark.paint, **_name(mark))]


def _heat(mark: Heat) -> list[Any]:
    values = [[None if v != v else v for v in row] for row in mark.values]
    # Positions may repeat a word, and a category axis would merge equal names.
    columns, rows = _distinct(mark.columns), _distinct(mark.rows)
    cells = go.Heatmap(
        z=values,
        x=columns,
        y=rows,
        zmin=mark.low,
        zmax=mark.high,
        colorscale="RdBu_r" if mark.signed else "Cividis",
        texttemplate="%{z:.2f}" if mark.numbers else None,
        xgap=int(len(columns) <= CROWDED),
        ygap=int(len(rows) <= CROWDED),
        showscale=False,  # numbers, or the pointer, tell more than a scale of colours
        hovertemplate=f"%{{y}}, %{{x}}: %{{z:.3f}}<extra>{escape(mark.label)}</extra>",
    )
    return [cells]


def _boxes(mark: Boxes) -> list[Any]:
    boxes = go.Box(
        x=[escape(name) for name in mark.x],
        lowerfence=list(mark.low),
        q1=list(mark.quarter),
        median=list(mark.median),
        q3=list(mark.three_quarters),
        upperfence=list(mark.high),
        marker_color=mark.paint,
        line_width=1,
        **_name(mark),
    )
    return [boxes]


def _edges(mark: Edges) -> list[Any]:
    """A trace per sign and width, weak ones first, and one for the nodes of each row.

    A line has a point in its middle, where the pointer finds it.
    """
    places = mark.places(0), mark.places(1)
    widths = [min(WIDTHS - 1, int(strength * WIDTHS)) for strength in mark.strengths()]
    lines = list(zip(mark.bottom, mark.top, mark.values, widths, strict=True))
    traces = []
    for width in range(WIDTHS):
        for sign, colour in zip((-1, 1), SIGNS, strict=True):
            x: list[float | None] = []
            text: list[str] = []
            for low, high, value, own in lines:
                if own == width and (value > 0) == (sign > 0):
                    start, stop = places[0][low], places[1][high]
                    x += [start, (start + stop) / 2, stop, None]
                    text += [f"{mark.name(0, low)} → {mark.name(1, high)}: {value:.3g}"] * 4
            traces.append(
                go.Scatter(
                    x=x,
                    y=[0, 0.5, 1, None] * (len(x) // 4),
                    text=[escape(words) for words in text],
                    hoverinfo="text",
                    mode="lines",
                    opacity=0.35 + 0.5 * width / WIDTHS,
                    line={"color": colour, "width": 0.6 + 0.7 * width},
                    name="positive" if sign > 0 else "negative",
                    legendgroup=str(sign),
                    showlegend=width == WIDTHS - 1,
                )
            )
    return [*traces, *(_nodes(mark, row) for row in (0, 1))]


def _nodes(mark: Edges, row: int) -> Any:
    degrees = mark.degrees(row)
    sizes = [4 + 22 * degree / max(1, *degrees) for degree in degrees]
    return go.Scatter(
        x=list(mark.places(row)),
        y=[row] * len(degrees),
        text=[f"{escape(mark.name(row, n))}: {d} lines" for n, d in enumerate(degrees)],
        hoverinfo="text",
        mode="markers",
        marker={"symbol": "line-ns-open", "color": "#222222", "size": sizes},
        showlegend=False,
    )


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Names made different by invisible marks, so that equal words keep their own place."""
    shown = [escape(name).replace("\n", "<br>") for name in names]
    return [name + "\u200b" * shown[:index].count(name) for index, name in enumerate(shown)]


TRACES: dict[type[Any], Callable[[Any], list[Any]]] = {  # rules and spans have none
    Line: _line,
    Bars: _bars,
    Heat: _heat,
    Points: _points,
    Boxes: _boxes,
    Edges: _edges,
}
