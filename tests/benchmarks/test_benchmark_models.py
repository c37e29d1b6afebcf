"""The benchmark of other people's models, small."""

from __future__ import annotations

import pytest

from benchmarks import BENCHMARKS
from benchmarks.models import models


def test_recording_is_compared_with_plain_passes() -> None:
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    found = models(sentences=20, rounds=1, layers=1, size=16)
    assert BENCHMARKS["models"] is models
    assert set(found.ratios) == {"recording", "memory"} and found.raw["cost"] > 0
    assert found.table().rows
