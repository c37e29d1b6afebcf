"""Rename and fsync come in their order, and whether a run is done is asked under the lock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.runs import assemble, execute, execution
from regard.runs.files import write_whole
from regard.runs.parcels import receive

SMALL = {"hidden": 6, "batch": 4, "held_out": 10, "updates": 4, "evaluate_every": 2}


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is put on disk, in order."""
    seen: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        seen.append(f"fsync {Path(f'/proc/self/fd/{descriptor}').resolve().name}")
        fsync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        seen.append(f"rename {Path(target).name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    return seen


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path: Path, events: list[str]) -> None:
    write_whole(tmp_path / "x.json", b"{}")
    assert [event.split()[0] for event in events] == ["fsync", "rename"]
    assert events[0].endswith(".part") and events[1] == "rename x.json"


def test_a_recording_is_on_disk_before_it_has_its_name(tmp_path: Path, events: list[str]) -> None:
    arrays = {"encoder.states": np.zeros((2, 3, 4)), "encoder.words": np.zeros((2, 3), int)}
    regard.record(arrays, out=tmp_path / "x.safetensors")
    assert [event.split()[0] for event in events] == ["fsync", "rename"]


def test_metrics_then_hashes_then_weights_then_the_state(tmp_path: Path, events: list[str]) -> None:
    execute(assemble("reversal", "chapter36", 0, SMALL), tmp_path)
    names = [event.split()[-1] for event in events]
    for state in (i for i, event in enumerate(events) if event == "rename state.safetensors"):
        before = names[:state]
        metrics = max(i for i, name in enumerate(before) if name == "metrics.jsonl")
        weights = [i for i, name in enumerate(before) if name[:8].isdigit() or "best." in name]
        assert weights, "weights come before the state"
        after = [i for i in weights if i > metrics]
        hashed = [i for i, name in enumerate(before) if name == "SHA256SUMS" and i > metrics]
        assert not after or (hashed and min(hashed) < min(after))
    assert names.index("DONE") > len(names) - 3
    assert events[-1] == "rename DONE" and "rename SHA256SUMS" in events


def test_who_waited_does_not_train_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finishes the run between our look and our lock."""
    config = assemble("reversal", "chapter36", 0, SMALL)
    elsewhere = execute(config, tmp_path / "other")
    real = execution.locked

    @contextmanager
    def late(folder: Path, *more: bool) -> Iterator[None]:
        with real(folder, *more):
            (folder / "DONE").write_bytes((elsewhere.folder / "DONE").read_bytes())
            yield

    monkeypatch.setattr(execution, "locked", late)
    monkeypatch.setattr(execution, "_train", lambda *_: pytest.fail("trained again"))
    assert execute(config, tmp_path / "ours").done


def test_what_a_node_adds_to_a_file_is_on_disk(tmp_path: Path, events: list[str]) -> None:
    folder = tmp_path / "run"
    receive(folder, assemble("reversal", "chapter36", 0, SMALL), [("metrics.jsonl", 0, b"{}\n")])
    assert "fsync metrics.jsonl" in events and (folder / "metrics.jsonl").read_bytes() == b"{}\n"
