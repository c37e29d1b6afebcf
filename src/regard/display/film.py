"""Pictures of one thing at several moments: a page with a slider and a play button."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from regard.display.figure import Figure
from regard.display.page import render_page

Specification = dict[str, Any]


def film_page(title: str, moments: Sequence[tuple[str, Figure]], about: str = "") -> str:
    """Figures by the name of their moment, as one page that needs no network.

    Each moment is drawn anew, so that figures may differ in their marks and panels. Axes keep
    the range of all moments together unless the reader lets go of them.
    """
    specs = [figure.interactive() for _, figure in moments]
    shown = [
        {"name": name, "caption": figure.caption, "data": spec["data"], "layout": spec["layout"]}
        for (name, figure), spec in zip(moments, specs, strict=True)
    ]
    film = {"moments": shown, "axes": shared_axes(specs)}
    return render_page("film.html", title=title, about=about, last=len(moments) - 1, film=film)


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
    ends = zip(trace["y"], up, down, strict=True) if up else ()
    return [end for value, above, below in ends for end in (value - below, value + above)]


def _padded(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    pad = 0.05 * (high - low) or 0.5
    return [low - pad, high + pad]
