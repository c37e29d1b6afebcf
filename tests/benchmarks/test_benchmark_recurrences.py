"""The race of recurrences: both sides compute the same, in every kind of batch."""

from __future__ import annotations

import pytest

from benchmarks import BENCHMARKS
from benchmarks import recurrences as module
from benchmarks.recurrences import KINDS, SHAPES, compare, recurrences
from regard.errors import RegardError


def test_every_cell_and_batch_has_a_ratio() -> None:
    found = recurrences(sizes=(8,), rounds=1, time=5)
    assert set(found.ratios) == {f"{name}_{shape}_8" for name in KINDS for shape in SHAPES}
    assert all(ratio > 0 for ratio, _, _ in found.ratios.values())
    assert "recurrences" in BENCHMARKS


def test_different_gradients_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    (ours, _), (_, other) = (module.passes("lstm", 8, shape, 5) for shape in ("mixed", "equal"))
    monkeypatch.setattr(module, "passes", lambda *_: (ours, other))
    with pytest.raises(RegardError, match="Gradients of lstm"):
        compare("lstm", 8, "mixed", rounds=1, time=5)
