"""What all tests share: folders of their own, one thread."""

from __future__ import annotations

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
