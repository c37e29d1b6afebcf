"""What all tests share: folders of their own, one thread, small files, published data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("REGARD_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def task_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What tasks that need files of the user's are told; all others need nothing."""
    folder = tmp_path_factory.mktemp("data")
    labelled, both = folder / "labelled.tsv", folder / "both.tsv"
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    pairs = [(a, b) for a in words for b in words]
    labelled.write_text("".join(f"{'even' if a < b else 'odd'}\t{a} {b} {a}\n" for a, b in pairs))
    both.write_text("".join(f"{a} and {b}\t{a.upper()} {b.upper()}\n" for a, b in pairs))
    return {
        "classification": {"data": str(labelled)},
        "translation": {"source": str(both), "pieces": 50},
    }


@pytest.fixture
def real() -> Callable[[str], Path]:
    """Finds a file under the folder REGARD_DATA; the test is skipped where it is not there."""

    def find(name: str) -> Path:
        folder = os.environ.get("REGARD_DATA")
        if not folder:
            pytest.skip("REGARD_DATA is not set: it names a folder of published data")
        if not Path(folder, name).exists():
            pytest.skip(f"REGARD_DATA has no {name}")
        return Path(folder, name)

    return find
