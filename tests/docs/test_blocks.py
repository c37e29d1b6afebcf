"""Every code block in docs/ runs: Python for real, on small networks; commands as far as parsing.

A block that needs what is not here is preceded by `<!-- needs: … -->`, which says what.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import regard
from regard.cli.main import app
from regard.runs import Run, execution

ROOT = Path(__file__).parents[2]
PAGES = [p for p in sorted((ROOT / "docs").rglob("*.md")) if "results" not in p.parts]
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>.*?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```", re.S | re.M
)
SMALL = {"updates": 2, "held_out": 10, "hidden": 8}


def blocks(page: Path, kinds: tuple[str, ...]) -> list[str]:
    """The blocks of a page that can be run here."""
    found = BLOCK.finditer(page.read_text())
    return [m["text"] for m in found if m["kind"] in kinds and not m["needs"]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [regard.train("one-to-one", "aed", seed, folder, **SMALL) for seed in range(3)]


@pytest.fixture
def world(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """What pages take for granted: runs and recordings, and trainings that are short."""
    real = execution.train

    def short(
        task: str, model: str = "chapter36", seed: int = 0, out: Any = None, **more: Any
    ) -> Run:
        return real(task, model, seed, out, **{**SMALL, **more, "updates": 2})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(regard, "train", short)
    recs = [run.record(n=40, also=("gates", "values", "lexical", "saliency")) for run in runs]
    yield {
        "regard": regard, "run": runs[0], "rec": recs[0], "recording": recs[0], "runs": runs,
        "run0": runs[0], "run1": runs[1], "run2": runs[2],
        "rec0": recs[0], "rec1": recs[1], "rec2": recs[2],
    }  # fmt: skip


WITH_PYTHON = [page for page in PAGES if blocks(page, ("python",))]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda p: p.relative_to(ROOT / "docs").as_posix())
def test_python(page: Path, world: dict[str, Any]) -> None:
    if page.name == "extending.md":
        pytest.skip("its blocks are files, which tests/docs/test_extending.py puts in their places")
    for number, text in enumerate(blocks(page, ("python",)), 1):
        exec(compile(text, f"{page}, block {number}", "exec"), world)


def commands(page: Path) -> list[str]:
    """The lines of plain blocks that call `regard`; two may stand side by side."""
    lines = [
        line for text in blocks(page, ("", "sh", "bash", "console")) for line in text.splitlines()
    ]
    parts = [part for line in lines for part in re.split(r"\s{3,}", line.split("#")[0].strip())]
    return [part for part in parts if part.startswith("regard ")]


WITH_COMMANDS = [page for page in [*PAGES, ROOT / "README.md"] if commands(page)]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands(page: Path) -> None:
    """Each names a command that there is, with options and arguments that it has."""
    group: Any = typer.main.get_command(app)
    for line in commands(page):
        words = shlex.split(line.replace("…", "x"))[1:]
        while words and words[0] == "--plugin":
            words = words[2:]
        if words[0].startswith("-"):
            continue
        command = group.commands[words[0]]
        command.make_context(words[0], words[1:], resilient_parsing=False)
