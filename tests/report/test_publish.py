"""Publishing merges: what was measured replaces what was published, and the rest stays."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regard.display import Figure, Panel
from regard.papers import EXPERIMENTS, Result, ledger
from regard.statistics import Estimate

ROOT = Path(__file__).parents[2]
ORIGIN = {"regard": "1", "commit": None, "torch": "2", "started": "now"}


@pytest.fixture(scope="module")
def publish() -> ModuleType:
    """The tool, which is no part of the package."""
    found = importlib.util.spec_from_file_location("publish", ROOT / "tools" / "publish.py")
    assert found and found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def make(name: str, level: float, scale: str = "full", figure: str = "made") -> Result:
    """A result of an experiment in which every measure has the same value."""
    kind = EXPERIMENTS[name]
    rows = tuple(
        ledger()[claim].row(
            scale,
            {n: Estimate.of([level, level]) for n in ledger()[claim].names},
            "all 2 conditions",
            1.5,
        )
        for claim in kind.claims
    )
    drawn = Figure(figure, "caption", (Panel("panel", "x", "y", ()),))
    words = (f"It is {level:g}.",)
    return Result(
        name, scale, kind.title, kind.about, words, (), (drawn,), rows, {}, dict(ORIGIN), "plan",
        "all 2 conditions", 1.5,
    )  # fmt: skip


def read(folder: Path) -> tuple[str, dict[str, Any]]:
    page = (folder / "chapter36.md").read_text(encoding="utf-8")
    rows = json.loads((folder / "chapter36.json").read_text())
    return page, {row["id"]: row for row in rows}


def test_what_is_not_measured_again_stays(publish: ModuleType, tmp_path: Path) -> None:
    both = [make("chapter36/loss", 0.25), make("chapter36/scratchpad", 0.5, figure="pad")]
    publish.merge_paper(both, "chapter36", tmp_path)
    before, old = read(tmp_path)
    publish.merge_paper([make("chapter36/loss", 0.75, figure="other")], "chapter36", tmp_path)
    after, new = read(tmp_path)
    assert "It is 0.75." in after and "It is 0.25." not in after and "It is 0.5." in after
    assert new["c36.loss"]["measured"] == 0.75 and new["c36.scratchpad"] == old["c36.scratchpad"]
    assert new["c36.scratchpad"]["core_hours"] == 1.5
    assert new["c36.length"]["verdict"] == "not run" and new["c36.length"]["coverage"] is None
    assert list(new) == [c.id for c in ledger().values() if c.paper == "chapter36"]
    start = before.index("## A scratchpad")
    assert before[start:] == after[after.index("## A scratchpad") :]  # word for word
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert figures == {"other-full.svg", "pad-full.svg"}  # what no page shows is gone


def test_sections_come_in_the_order_of_the_experiments(publish: ModuleType, tmp_path: Path) -> None:
    publish.merge_paper([make("chapter36/scratchpad", 0.5)], "chapter36", tmp_path)
    publish.merge_paper([make("chapter36/loss", 0.5)], "chapter36", tmp_path)
    page, _ = read(tmp_path)
    assert page.index("## The loss") < page.index("## A scratchpad")


def test_a_quick_look_does_not_replace_full_scale(publish: ModuleType, tmp_path: Path) -> None:
    publish.merge_paper([make("chapter36/loss", 0.25)], "chapter36", tmp_path)
    publish.merge_paper([make("chapter36/loss", 0.75, "quick")], "chapter36", tmp_path)
    assert read(tmp_path)[1]["c36.loss"]["measured"] == 0.25
    publish.merge_paper([make("chapter36/mixture", 0.75, "quick")], "chapter36", tmp_path)
    publish.merge_paper([make("chapter36/mixture", 0.5)], "chapter36", tmp_path)
    assert read(tmp_path)[1]["c36.mixture"]["measured"] == 0.5


def test_merging_nothing_changes_nothing(publish: ModuleType, tmp_path: Path) -> None:
    whole = replace(make("chapter36/loss", 0.25), found=("# odd | words\n## of it",))
    publish.merge_paper([whole], "chapter36", tmp_path)
    before = read(tmp_path)
    publish.merge_paper([], "chapter36", tmp_path)
    assert read(tmp_path) == before


def test_the_pages_are_what_merging_nothing_makes(publish: ModuleType) -> None:
    for page in publish.RESULTS.glob("*.json"):
        text = page.with_suffix(".md").read_text(encoding="utf-8")
        rows = publish.merge_rows(json.loads(page.read_text()), [], page.stem)
        sections = publish.merge_sections(text, [], page.stem)
        assert publish.join_page(f"Results: {page.stem}", rows, sections) == text, page
        for figure in publish.named_figures(text):
            assert (publish.RESULTS / "figures" / figure).is_file(), figure


def test_the_index_has_every_row(publish: ModuleType) -> None:
    text = (publish.RESULTS / "index.md").read_text(encoding="utf-8")
    missing = [claim for claim in ledger() if f"| `{claim}` |" not in text]
    assert not missing
