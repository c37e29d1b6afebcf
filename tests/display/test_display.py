from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.display import Bars, Figure, Heat, Line, Panel, Points, Rule, Span, Table
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
    }


def test_interactive_text_cannot_carry_markup() -> None:
    spec = json.dumps(FIGURE.interactive())
    assert "<b>" not in spec
    assert "&lt;b&gt;" in spec


def test_the_same_figure_is_the_same_bytes() -> None:
    assert FIGURE.svg() == FIGURE.svg()


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
