"""Costs of rows that were measured before costs were kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regard.papers.framework import cost

TOOL = Path(__file__).resolve().parents[2] / "tools" / "time_rows.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, where an update takes a second and an evaluation nothing."""
    monkeypatch.setattr(cost, "time_parts", lambda config: (1.0, 0.0))
    monkeypatch.delenv("REGARD_DATA", raising=False)
    spec = importlib.util.spec_from_file_location("time_rows", TOOL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(**more: Any) -> dict[str, Any]:
    return {"experiment": "chapter36/loss", "scale": "full", "core_hours": None, **more}


def test_runs_are_added_up(tool: ModuleType) -> None:
    assert tool.expect_hours("chapter36/loss") == pytest.approx(5 * 2000 / 3600)


def test_what_cannot_be_told_is_left_out(tool: ModuleType) -> None:
    assert tool.expect_hours("baan2019/prune") is None, "runs follow from the first ones"
    assert tool.expect_hours("snell2021/aer") is None, "its data are not there"


def test_what_was_measured_is_kept(tool: ModuleType) -> None:
    hours = {"chapter36/loss": 2.5}
    new = tool.with_hours(row(), hours)
    assert (new["core_hours"], new["core_hours_from"]) == (2.5, "timed")
    again = tool.with_hours(new, {"chapter36/loss": 2.0})
    assert (again["core_hours"], again["core_hours_from"]) == (2.0, "timed")
    assert tool.with_hours(new, {"chapter36/loss": None}) == new
    old = tool.with_hours(row(core_hours=1.0), hours)
    assert (old["core_hours"], old["core_hours_from"]) == (1.0, "measured")
    none = tool.with_hours(row(scale=None), hours)
    assert (none["core_hours"], none["core_hours_from"]) == (None, None)
