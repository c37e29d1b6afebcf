from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from regard.display import Figure, Heat, Panel, Table
from regard.papers.framework.result import Result
from regard.report import render, write_markdown

EVIL = "<script>alert('&')</script>"


def result() -> Result:
    heat = Heat((EVIL, "b"), ("x", "y"), ((0.0, 1.0), (1.0, 0.0)))
    figure = Figure("figure", EVIL, (Panel(EVIL, EVIL, "y", (heat,)),))
    row = {
        "id": "x.y", "statement": EVIL, "expected": EVIL, "headline": "h", "measures": {},
        "verdict": "partly", "rule": "h > 1", "scale": "quick",
    }  # fmt: skip
    return Result(
        "paper/one", "quick", EVIL, EVIL, (EVIL,), (Table(EVIL, (EVIL,), ((EVIL,),)),), (figure,),
        (row,), {"condition": {"seeds": [0], "task": {"name": EVIL}, "model": {}, "training": {}}},
        {"regard": "0", "torch": "0", "started": "now", "commit": None}, "hash",
    )  # fmt: skip


def test_tokens_are_escaped_everywhere() -> None:
    page = render([result()], EVIL)
    assert EVIL not in page
    assert "&lt;script&gt;alert" in page


def test_the_page_needs_no_network() -> None:
    page = render([result()], "title")
    library = page.index("</script>")  # plotly itself names addresses of its licence
    rest = page[: page.index("<script>")] + page[library:]
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", rest)
    assert not re.search(r"<script[^>]+src=", page)
    assert "data:image/svg+xml;base64," in rest


def test_every_figure_has_a_place() -> None:
    page = render([result()], "title")
    assert 'id="figure-quick-figure"' in page
    both = render([result(), replace(result(), scale="full")], "title")
    assert len(set(re.findall(r'id="(figure-[^"]+)"', both))) == 2
    assert 'class="verdict fair"' in page


def test_markdown_is_plain_and_complete(tmp_path: Path) -> None:
    path = write_markdown([result()], tmp_path / "paper.md", "title")
    text = path.read_text().split("```json")[0]
    assert EVIL not in text
    assert (tmp_path / "figures" / "figure-quick.svg").is_file()
    assert (tmp_path / "paper.json").is_file()
