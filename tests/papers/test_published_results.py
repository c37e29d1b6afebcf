"""Published results are at hand without running anything; what was measured here comes first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.cli._results import write_published
from regard.errors import RegardError
from regard.papers.framework import result as results
from regard.papers.framework.claims import ledger

ROOT = Path(__file__).parents[2]


def test_a_fresh_clone_shows_what_is_published() -> None:
    rows = {row["id"]: row for row in regard.claims()}
    assert list(rows) == list(ledger())
    loss = rows["c36.loss"]
    assert loss["source"] == "published" and loss["verdict"] == "reproduced"
    assert loss["measured"] == pytest.approx(0.0383, abs=1e-3) and loss["seeds"] == 5
    assert {row["source"] for row in rows.values()} <= {"published", None}
    assert all((row["verdict"] == "not run") == (row["source"] is None) for row in rows.values())
    here = regard.claims("chapter36", source="here")
    assert {row["verdict"] for row in here} == {"not run"}
    with pytest.raises(RegardError, match="Did you mean 'published'"):
        regard.claims(source="publisched")


def test_what_was_measured_here_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {**results.published_rows()["c36.loss"], "scale": "quick", "verdict": "partly"}
    found = {"c36.loss": row}
    monkeypatch.setattr(results, "_find_row", lambda claim, experiment, place: found.get(claim))
    rows = {row["id"]: row for row in regard.claims("chapter36")}
    assert (rows["c36.loss"]["source"], rows["c36.loss"]["verdict"]) == ("here", "partly")
    assert rows["c36.length"]["source"] == "published"
    published = {row["id"]: row for row in regard.claims("chapter36", source="published")}
    assert published["c36.loss"]["verdict"] == "reproduced"


def test_the_package_has_what_the_docs_have() -> None:
    shipped = Path(results.__file__).parents[1] / "published"
    for page in (ROOT / "docs" / "results").glob("*.json"):
        assert json.loads((shipped / page.name).read_text()) == json.loads(page.read_text())


def test_no_share_leaves_its_range() -> None:
    for row in results.published_rows().values():
        for name, measure in row["measures"].items():
            values, interval = measure["values"], measure["interval"]
            if interval and min(values) >= 0 and name.endswith(("share", "diagonal")):
                assert interval[0] >= 0, (row["id"], name)


def test_the_page_of_the_published_results(tmp_path: Path) -> None:
    page = write_published(tmp_path / "all.html").read_text()
    assert "c36.loss" in page and "Rule: reproduced if" in page and "reproduced</span>" in page
    text = write_published(tmp_path / "all.md").read_text()
    assert "`ait.breakdown`" in text
