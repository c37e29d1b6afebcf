"""The benchmark of shards, at a size that takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import shards
from benchmarks.adding_up import measure
from regard.recordings import load_recording


def test_made_shards_are_one_recording(tmp_path: Path) -> None:
    size = shards.write_shards(tmp_path / "large", 4000, count=4)
    assert size > 4000 * shards.LENGTH * shards.HIDDEN * 4 * 4  # states, queries and keys
    shards.take_shards(tmp_path / "large", tmp_path / "small", 2)
    assert len(load_recording(tmp_path / "large")) == 4000
    assert len(load_recording(tmp_path / "small")) == 2000
    found = measure(str(tmp_path / "small"), 1)
    assert found["samples"] == 2000 and sum(found["shares"]) == pytest.approx(1)
    assert found["seconds"] > 0 and found["megabytes"] >= found["megabytes_before"]
