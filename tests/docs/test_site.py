"""The site's helpers: equations are typeset without a network, notebooks become pages."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = runpy.run_path(str(ROOT / "tools" / "site.py"))


def test_equations_are_typeset() -> None:
    text = SITE["typeset"]("Words.\n\na_st = (μ_s + χ_y) · Δ_t\n\nMore: `x_y = 3` stays.\n")
    assert '<p class="equation"><i>a</i><sub>st</sub> = (<i>μ</i><sub>s</sub>' in text
    assert "`x_y = 3` stays" in text
    kept = "Words.\n\nThis is so = no equation at all\n\nMore.\n"
    assert SITE["typeset"](kept) == kept


def test_notebooks_become_pages() -> None:
    book = ROOT / "docs" / "tutorials" / "1-first-hour.ipynb"
    page = SITE["to_markdown"](json.loads(book.read_text()))
    assert page.startswith("# First hour") and "```python\nimport regard" in page


def test_the_reference_is_readable_unbuilt() -> None:
    page = (ROOT / "docs" / "reference.md").read_text()
    made = runpy.run_path(str(ROOT / "tools" / "reference.py"))
    assert "doctest" not in page and ":::" not in page
    assert all(f"### {name}\n" in page for name in made["FRONT"])
    assert (
        made["show"]("Do it.\n\n>>> x = 1   # doctest: +SKIP\n") == "Do it.\n\n```text\nx = 1\n```"
    )
