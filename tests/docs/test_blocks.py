"""Every code block in docs/ runs: Python for real, on small networks; commands as far as parsing.

A block that needs what is not here is preceded by `<!-- needs: … -->`, which says what.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
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


# Pages speak of long runs; here they are short, and few samples are looked at.
SHORTER = {
    r"\bn=\d+": "n=40", r"checkpoint=500": "checkpoint=2", r"\]\[500\]": "][2]",
    r"checkpoints=\[0, 100, 1000\]": "checkpoints=[0, 2]", r"epochs=\d+": "updates=1",
    r"updates=5000": "updates=1", r'"runs/one-to-one-s(\d)-…"': r"PLACES[\1]",
}  # fmt: skip
ALSO = ("gates", "values", "lexical", "saliency")
LOOKUP = {"strength", "groups", "probe", "prune", "swap"}  # pages about lookup tables


def shorten(text: str) -> str:
    for long, short in SHORTER.items():
        text = re.sub(long, short, text)
    return text


def make_runs(folder: Path, task: str, model: str, **more: Any) -> list[Run]:
    return [regard.train(task, model, seed, folder, **SMALL, **more) for seed in range(3)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return make_runs(tmp_path_factory.mktemp("runs"), "one-to-one", "aed")


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return make_runs(tmp_path_factory.mktemp("lookup"), "lookup", "baan", recipe="fast")


@pytest.fixture
def page_runs(request: pytest.FixtureRequest, runs: list[Run], tmp_path: Path) -> list[Run]:
    """The runs that a page speaks of."""
    stem = request.node.callspec.params["page"].stem
    if stem == "clusters":
        return make_runs(tmp_path, "escan", "aed")
    return request.getfixturevalue("lookup") if stem in LOOKUP else runs


@pytest.fixture
def world(page_runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What pages take for granted: runs and recordings, files, and trainings that are short."""
    real = execution.train

    def short(
        task: str, model: str = "chapter36", seed: int = 0, out: Any = None, **more: Any
    ) -> Run:
        return real(task, model, seed, out, **{**SMALL, **more, "updates": 2})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(regard, "train", short)
    for name in ("gold.txt", "found.txt"):
        Path(name).write_text("0-0 1-1\n0-0\n")
    tables = page_runs[0].config.task_name == "lookup"  # whose models have no lexical probe
    rec = page_runs[0].record(n=40, also=("gates",) if tables else ALSO)
    return {
        "regard": regard, "np": np, "torch": torch, "run": page_runs[0], "rec": rec,
        "other": page_runs[1], "third": page_runs[2],
        "guided": page_runs[0], "guided1": page_runs[1],
        "baseline": page_runs[1], "baseline1": page_runs[2],
        "PLACES": [str(run.folder) for run in page_runs],
    }  # fmt: skip


WITH_PYTHON = [page for page in PAGES if blocks(page, ("python",))]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda p: p.relative_to(ROOT / "docs").as_posix())
def test_python(page: Path, world: dict[str, Any]) -> None:
    if page.name == "extending.md":
        pytest.skip("its blocks are files, which tests/docs/test_extending.py puts in their places")
    for number, text in enumerate(blocks(page, ("python",)), 1):
        exec(compile(shorten(text), f"{page}, block {number}", "exec"), world)


def commands(page: Path) -> list[str]:
    """The lines of plain blocks that call `regard`; two may stand side by side."""
    texts = (text.replace("\\\n", " ") for text in blocks(page, ("", "sh", "bash", "console")))
    lines = [line for text in texts for line in text.splitlines()]
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
