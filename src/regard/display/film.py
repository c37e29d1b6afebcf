"""Pictures of one thing at several moments: a page with a slider and a play button."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from regard.display.figure import Figure

Specification = dict[str, Any]


def film_page(title: str, moments: Sequence[tuple[str, Figure]], about: str = "") -> str:
    """Figures by the name of their moment, as one page that needs no network.

    Each moment is drawn anew, so that figures may differ in their marks and panels. Axes keep
    the range of all moments together unless the reader lets go of them.
    """
    from plotly.offline import get_plotlyjs

    specs = [figure.interactive() for _, figure in moments]
    shown = [
        {"name": name, "caption": figure.caption, "data": spec["data"], "layout": spec["layout"]}
        for (name, figure), spec in zip(moments, specs, strict=True)
    ]
    page = files("regard.display").joinpath("film.html").read_text(encoding="utf-8")
    parts = {
        "{{title}}": escape(title),
        "{{about}}": escape(about),
        "{{last}}": str(len(moments) - 1),
        "{{plotly}}": get_plotlyjs(),
        "{{film}}": script_json({"moments": shown, "axes": shared_axes(specs)}),  # last: its words
    }
    for place, text in parts.items():
        page = page.replace(place, text)
    return page


def script_json(data: Any) -> str:
    """JSON for a script element; no character in it can end the element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def shared_axes(specs: Sequence[Specification]) -> dict[str, list[float]]:
    """A range for each axis of numbers that holds what every moment shows.

    Left out are axes of names, those that have a range already, and those of a mark whose extent
    plotly alone knows.
    """
    seen: dict[str, list[float]] = {}
    free: set[str] = set()
    for spec in specs:
        for trace in spec["data"]:
            for axis, values in _along(trace):
                about = spec["layout"].get(axis, {})
                if values is None or about.get("type") == "category" or "range" in about:
                    free.add(axis)
                    continue
                if about.get("type") == "log":
                    values = [math.log10(value) for value in values if value > 0]
                seen.setdefault(axis, []).extend(values)
    return {axis: _padded(values) for axis, values in seen.items() if axis not in free and values}


def _along(trace: dict[str, Any]) -> Iterator[tuple[str, list[float] | None]]:
    """The numbers that a trace has along each of its axes; None where they are not numbers."""
    for letter in "xy":
        axis = trace.get(f"{letter}axis", letter).replace(letter, f"{letter}axis")
        values = trace.get(letter)
        if trace["type"] not in ("scatter", "bar") or not isinstance(values, list):
            yield axis, None
            continue
        if any(isinstance(value, str) for value in values):
            yield axis, None
            continue
        found = [value for value in values if value is not None and math.isfinite(value)]
        if trace["type"] == "bar" and letter == "y":
            found += [0.0, *_whiskers(trace)]
        yield axis, found


def _whiskers(trace: dict[str, Any]) -> list[float]:
    error = trace.get("error_y", {})
    up, down = error.get("array", []), error.get("arrayminus", [])
    return (
        [
            end
            for value, above, below in zip(trace["y"], up, down, strict=True)
            for end in (value - below, value + above)
        ]
        if up
        else []
    )


def _padded(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    pad = 0.05 * (high - low) or 0.5
    return [low - pad, high + pad]
