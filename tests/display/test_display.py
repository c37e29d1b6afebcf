from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.display import Bars, Boxes, Edges, Figure, Heat, Line, Panel, Points, Rule, Span, Table
from regard.display.vector import draw
from regard.statistics import Estimate

NAN = float("nan")
FIGURE = Figure(
    "all-marks",
    "Every mark there is.",
    (
        Panel(
            "lines <b>",
            "x (s)",
            "y (m)",
            (
                Line("a", (1.0, 2.0), (0.1, 0.2), (0.0, 0.1), (0.2, 0.3), points=True),
                Line("b", (1.0, 2.0), (0.3, 0.2), colour=1, dashed=True),
                Rule("half", y=0.5),
                Rule("here", x=1.5),
                Span("seen", 1.0, 1.5),
            ),
            y_range=(0, 1),
            x_scale="log",
        ),
        Panel("bars", "", "share", (Bars("n", ("a", "<b>"), (0.1, 0.9), (0.0, 0.8), (0.3, 1.0)),)),
        Panel("numbers", "length", "share", (Bars("m", (3.0, 4.0), (0.1, 0.9), colour=2),)),
        Panel(
            "points",
            "PC 1",
            "PC 2",
            (
                Points("cloud", (0.0, 1.0), (1.0, 0.0), faint=True),
                Points("", (0.5,), (0.5,), 1, "star", 2.0, names=("<i>run</i>",)),
                Points("ends", (0.1,), (0.2,), 2, "square"),
                Points("χ", (0.3,), (0.2,), 3, "cross"),
            ),
            square=True,
        ),
        Panel("heat", "c", "r", (Heat(("a", "a"), ("x", "y"), ((0.0, 1.0), (0.5, NAN))),)),
        Panel(
            "graph",
            "unit",
            "layer",
            (Edges((0, 0, 2), (1, 0, 1), (0.5, -0.2, 0.9), (3, 2), names=((), ("u", "<b>"))),),
            wide=True,
        ),
        Panel("boxes", "unit", "h", (Boxes("", ("4", "7"), *((n, n + 1.0) for n in range(5))),)),
    ),
)  # fmt: skip


def test_a_figure_survives_json() -> None:
    text = json.dumps(FIGURE.to_json())
    back = Figure.from_json(json.loads(text))
    assert json.dumps(back.to_json()) == text


def test_vector_and_interactive_show_the_same() -> None:
    svg = FIGURE.svg()
    root = ElementTree.fromstring(svg)
    text = "".join(root.itertext())
    spec = json.dumps(FIGURE.interactive())
    for word in ("lines", "x (s)", "share", "trained", "seen", "half"):
        assert (word in text) == (word in spec), word
    assert "seen" in text
    assert {trace["type"] for trace in FIGURE.interactive()["data"]} == {
        "scatter",
        "bar",
        "heatmap",
        "box",
    }


def test_interactive_text_cannot_carry_markup() -> None:
    spec = json.dumps(FIGURE.interactive())
    assert "<b>" not in spec
    assert "&lt;b&gt;" in spec


def test_the_same_figure_is_the_same_bytes() -> None:
    first = FIGURE.svg()
    assert all(FIGURE.svg() == first for _ in range(5))


@pytest.mark.parametrize(("count", "rows"), [(3, [3]), (4, [2, 2]), (5, [3, 2]), (7, [3, 3, 1])])
def test_rows_of_panels_are_about_as_long_as_each_other(count: int, rows: list[int]) -> None:
    names = tuple(map(str, range(24)))
    heat = Heat(names, names, ((0.5,) * 24,) * 24, numbers=False)
    panels = (Panel(f"panel {n}", "column", "row", (heat,)) for n in range(count))
    canvas = draw(Figure.of("heats", "Heats.", *panels))
    drawn = [[ax for ax in row.axes if ax.get_title(loc="left")] for row in canvas.subfigs]
    assert [len(axes) for axes in drawn] == rows


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_saving(tmp_path: Path, ending: str) -> None:
    path = FIGURE.save(tmp_path / f"figure.{ending}")
    assert path.stat().st_size > 1000


def test_equal_names_keep_their_places() -> None:
    heat = next(t for t in FIGURE.interactive()["data"] if t["type"] == "heatmap")
    assert len(set(heat["y"])) == 2


def test_table() -> None:
    table = Table("t", ("a", "b"), ((1, Estimate.of([0.25, 0.75])), (None, 0.123456)))
    assert table.cells() == [["1", "0.5 [-2.68, 3.68] (n = 2)"], ["–", "0.123"]]
    assert table.records()[0]["b"]["seeds"] == 2
    assert Table.from_json(json.loads(json.dumps(table.to_json()))).cells() == table.cells()


def test_a_wide_panel_stands_alone() -> None:
    layout = FIGURE.interactive()["layout"]
    assert layout["xaxis6"]["domain"] == [0, 1], "the graph has the whole row"
    assert layout["xaxis7"]["domain"][1] < 0.5


def test_lines_between_nodes() -> None:
    edges = Edges((0, 0, 2), (1, 0, 1), (0.5, -0.2, 0.9), (3, 2))
    assert (edges.degrees(0), edges.degrees(1)) == ([2, 0, 1], [1, 2])
    assert edges.strengths() == pytest.approx([3 / 7, 0, 1])
    assert edges.places(1) == (0.25, 0.75)
    data = Figure("f", "c.", (Panel("t", "x", "y", (edges,), wide=True),)).interactive()["data"]
    lines = [trace for trace in data if trace["mode"] == "lines"]
    drawn = {
        (trace["name"], trace["text"][place], tuple(trace["x"][place : place + 4]))
        for trace in lines
        for place in range(0, len(trace["x"]), 4)
    }
    assert drawn == {
        ("positive", "0 → 1: 0.5", (1 / 6, (1 / 6 + 0.75) / 2, 0.75, None)),
        ("negative", "0 → 0: -0.2", (1 / 6, (1 / 6 + 0.25) / 2, 0.25, None)),
        ("positive", "2 → 1: 0.9", (5 / 6, (5 / 6 + 0.75) / 2, 0.75, None)),
    }
    assert sum(len(trace["x"]) for trace in lines) == 12, "and nothing twice"


def test_many_names_are_thinned_and_crowded_cells_touch() -> None:
    names = tuple(str(n) for n in range(200))
    heat = Heat(names, names, ((0.0,) * 200,) * 200, "w", -1, 1, numbers=False, signed=True)
    figure = Figure("f", "c.", (Panel("t", "x", "y", (heat,)),))
    text = "".join(ElementTree.fromstring(figure.svg()).itertext())
    assert "192" in text and "193" not in text
    trace = figure.interactive()["data"][0]
    assert (trace["xgap"], trace["ygap"]) == (0, 0)
    assert figure.interactive()["layout"]["height"] < 1000
