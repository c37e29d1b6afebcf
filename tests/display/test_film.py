"""A film is a page with all its moments, and axes that hold still."""

from __future__ import annotations

import json

import pytest

from regard.display import Bars, Figure, Heat, Line, Panel
from regard.display.film import film_page, shared_axes
from regard.display.page import figure_page, script_json


def figure(*panels: Panel, caption: str = "A caption.") -> Figure:
    return Figure("made", caption, panels)


def lines(scale: float, log: bool = False) -> Panel:
    line = Line("a", (1.0, 2.0), (scale, 10 * scale))
    return Panel("lines", "x", "y", (line,), y_scale="log" if log else "linear")


def test_axes_hold_what_every_moment_shows() -> None:
    moments = [figure(lines(1)), figure(lines(3))]
    axes = shared_axes([one.interactive() for one in moments])
    assert axes["yaxis"] == pytest.approx([1 - 0.05 * 29, 30 + 0.05 * 29])
    assert axes["xaxis"] == pytest.approx([0.95, 2.05])
    (low, high) = shared_axes([figure(lines(1, log=True)).interactive()])["yaxis"]
    assert (low, high) == pytest.approx((-0.05, 1.05)), "a logarithmic axis counts in powers"


def test_whiskers_and_zero_count() -> None:
    bars = Bars("", ("a", "b"), (2.0, 3.0), (1.0, 2.5), (2.5, 7.0))
    axes = shared_axes([figure(Panel("bars", "x", "y", (bars,))).interactive()])
    assert axes == {"yaxis": pytest.approx([-0.35, 7.35])}, "an axis of names has no range"


def test_other_axes_are_left_alone() -> None:
    heat = Heat(("a",), ("b",), ((1.0,),), "value")
    ranged = Panel("r", "x", "y", (Line("a", (0.0,), (0.0,)),), (0, 1))
    axes = shared_axes([figure(Panel("h", "x", "y", (heat,)), ranged).interactive()])
    assert list(axes) == ["xaxis2"]


def test_a_page_has_everything_and_nothing_gets_out() -> None:
    words = "</script><script>alert(1)</script>{{plotly}}"
    heat = Heat((words,), ("b",), ((1.0,),), "value")
    page = film_page(
        "A <title>",
        [
            ("first", figure(lines(1))),
            (words, figure(Panel("h", "x", "y", (heat,)), caption=words)),
        ],
        "about & more",
    )
    assert "A &lt;title&gt;" in page and "about &amp; more" in page
    assert "alert(1)</script>" not in page and 'max="1"' in page
    text = page.split("const film = ")[1].split(";\nconst get")[0]
    film = json.loads(text)
    assert [moment["name"] for moment in film["moments"]] == ["first", words]
    assert film["moments"][1]["caption"] == words
    assert 'src="http' not in page


def test_json_in_a_script_cannot_end_it() -> None:
    made = script_json({"a": "</script>&"})
    assert "<" not in made and "&" not in made and json.loads(made) == {"a": "</script>&"}


def test_a_single_figure_is_a_page_of_its_own() -> None:
    words = "</script><b>"
    one = figure(Panel(words, "x", "y", (Heat((words,), ("b",), ((1.0,),)),)), caption=words)
    page = figure_page(words, one)
    assert "<title>&lt;/script&gt;&lt;b&gt;</title>" in page and f"{words}" not in page
    drawn = json.loads(page.split("const figure = ")[1].split(";\nPlotly.newPlot")[0])
    assert drawn == one.interactive()
    assert 'src="http' not in page
