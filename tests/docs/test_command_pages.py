"""Every command has a page that says what the command says of itself."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pages_are_those_of_the_commands() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "commands.py"))["pages"]()
    folder = ROOT / "docs" / "commands"
    assert {path.name for path in folder.iterdir()} == set(made), "run python tools/commands.py"
    for file, text in made.items():
        assert (folder / file).read_text() == text, f"{file}: run python tools/commands.py"


def test_the_site_names_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    pages = (ROOT / "docs").rglob("*.md")
    names = [path.relative_to(ROOT / "docs").as_posix() for path in pages]
    assert [name for name in names if name not in nav] == []
