"""Nothing in a text steers a terminal, ends a block of Markdown, or fills a template."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from regard.cli import _console
from regard.display import Figure, Line, Panel, Table
from regard.display.escaping import escape_json, visible
from regard.display.film import film_page
from regard.errors import RegardError
from regard.report.markdown import code, plain, table_text
from regard.runs.places import require_name

STEERING = [
    "\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "a\rb", "\x08\x08", "\x7f", "\x00", "\u202etxt",
    "\u2066x", "\x85",
]  # fmt: skip


@pytest.mark.parametrize("text", STEERING)
def test_a_terminal_is_not_steered(text: str) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=120)
    console.print(Table(text, (text,), ((text,),)).rich())
    shown = out.getvalue()
    bad = set(text) & {chr(c) for c in (*range(32), *range(127, 160), 0x202E, 0x2066)} - {"\n"}
    assert bad and not bad & set(shown.replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert visible(text).strip()[:4] in shown


def test_plain_text_stays_as_it_is() -> None:
    for text in ("Größe, 日本語, ελ, é", "a\tb\nc", "[bold]not markup[/bold]", "emoji 🙂"):
        assert visible(text) == text


@pytest.mark.parametrize("text", STEERING)
def test_json_says_the_same(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    _console.print_json({"word": text, text: 1})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"word": text, text: 1}
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown.replace("\n", ""))
    assert escape_json('{"a": "b"}') == '{"a": "b"}'


def test_a_title_is_no_markup() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(Table("[red]x[/red]", ("a" * 20,), ()).rich())
    assert "[red]x[/red]" in out.getvalue()


def test_faults_do_not_steer_either(tmp_path: Path) -> None:
    name = tmp_path / "no\x1b[31mrun"
    answer = subprocess.run(
        [sys.executable, "-m", "regard", "record", str(name)], capture_output=True, text=True
    )
    assert answer.returncode == 2 and "\x1b" not in answer.stderr and r"\x1b[31m" in answer.stderr


def test_a_film_fills_in_nothing() -> None:
    figure = Figure("f", "{{ plotly }}", (Panel("", "x", "y", (Line("", (0.0,), (1.0,)),)),))
    page = film_page("{{plotly}} {{ 7 * 7 }}", [("{% raw %}", figure)], "{{ film }}")
    assert "<h1>{{plotly}} {{ 7 * 7 }}</h1>" in page
    assert "<p>{{ film }}</p>" in page


def test_markdown() -> None:
    assert code("c36.length") == "`c36.length`"
    assert code("a`b|c") == plain("a`b|c") == r"a\`b\|c"
    assert plain("<img src=x onerror=alert(1)>").startswith("&lt;img")
    text = table_text(Table("t", ("a|b",), (("c|d\ne",),)))
    assert [line.count("|") - line.count(r"\|") for line in text.splitlines()[2:]] == [2, 2, 2]


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", ".", "", "a\\b", "a\x00b", "a\nb"])
def test_a_figure_stays_in_its_folder(name: str) -> None:
    with pytest.raises(RegardError, match="is no name for a file"):
        require_name(name)
    assert require_name("ait-breakdown.svg") == "ait-breakdown.svg"
