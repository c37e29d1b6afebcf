"""What one holds shows itself, in a notebook and at a prompt, and says how far it is."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.display import Figure, Table
from regard.display import progress as bars
from regard.runs import Run
from regard.runs.progress import BarMonitor, make_monitor
from regard.statistics import Estimate

SMALL = {"updates": 0, "held_out": 10, "hidden": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return regard.train("one-to-one", "aed", 0, tmp_path_factory.mktemp("runs"), **SMALL)


def test_what_one_holds_shows_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figure, "svg", lambda _: '<?xml version="1.0"?><svg></svg>')
    rec = run.record(n=20)
    table = Table("A <b>", ("x",), (("<i>",),))
    things: dict[str, Any] = {
        "run": run, "recording": rec, "decomposition": rec.decomposition, "table": table,
        "estimate": Estimate.share([0.5, 0.7]), "claims": regard.claims("chapter36"),
        "result": rec.inspect("breakdown"),
    }  # fmt: skip
    for name, thing in things.items():
        page = thing._repr_html_()
        assert "<" in page and "<?xml" not in page, name
        assert len(repr(thing)) < 400 and "\n" not in repr(thing), name
        if name not in ("estimate",):
            assert "<th" in page and "<caption" in page, f"{name} has headers and a title"
    assert "&lt;i&gt;" in table.html() and "<i>" not in table.html()
    assert "color:inherit" in table.html(), "light and dark alike"


class Shown:
    """What IPython gives for a display that can be changed."""

    def __init__(self, pages: list[str]):
        self.pages = pages

    def update(self, page: Any) -> None:
        self.pages.append(page)


def test_bars_appear_in_notebooks_after_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []

    class ZMQInteractiveShell: ...

    def display(page: str, display_id: bool) -> Shown:
        pages.append(page)
        return Shown(pages)

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    inside = types.ModuleType("IPython.display")
    inside.HTML, inside.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    clock = [0.0]
    monkeypatch.setattr(bars.time, "monotonic", lambda: clock[0])
    bar = bars.make_bar("update")
    assert bar is not None
    for moment, done in ((1.0, 5), (3.0, 50), (3.1, 51), (4.0, 100)):
        clock[0] = moment
        bar(done, 100, "loss <1>")
    assert len(pages) == 2 and "50.0%" in pages[0] and "100.0%" in pages[1]
    assert "loss &lt;1&gt;" in pages[0]
    assert isinstance(make_monitor(), BarMonitor)


def test_scripts_are_quiet_unless_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert bars.make_bar("x") is None and make_monitor() is None
    few = {"updates": 3, "held_out": 4, "hidden": 4}
    regard.train("reversal", out=tmp_path, **few)
    assert capsys.readouterr().err == ""
    bar = bars.make_bar("update", True)
    assert bar is not None
    bar.began -= 10
    bar.drawn -= 10
    bar(3, 3)
    assert "update 3/3" in capsys.readouterr().err
