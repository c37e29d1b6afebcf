"""The command line in the process of the test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from command import Command, Done

from regard.cli.main import main


@pytest.fixture
def regard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: starting another takes seconds, and there are many."""

    def run(*words: str | Path, cwd: Path | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, words)])
        if cwd is not None:
            monkeypatch.chdir(cwd)
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return Done(code, *capsys.readouterr())

    return run
