from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import corpora, corpora_process
from benchmarks.made_text import write_pairs
from regard.errors import RegardError


def test_made_pairs_are_many_and_all_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.made_text.BLOCK", 50)
    source, target = (path.read_text().splitlines() for path in write_pairs(tmp_path, 220))
    assert len(source) == len(target) == 220 == len({*zip(source, target, strict=True)})
    assert all(4 <= len(line.split()) <= 40 for line in [*source, *target])


def test_a_corpus_is_made_trained_on_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in {"ROUNDS": 1, "CALLS": 2}.items():
        monkeypatch.setattr(corpora_process, name, size)
    write_pairs(tmp_path, 1500)
    assert corpora_process.make(tmp_path)["rows"] == 500, "two splits of 500 are held out"
    trained = corpora_process.train(tmp_path, updates=3)
    assert 0 < trained["padding"] < 0.6 and trained["megabytes"] > 50
    assert corpora_process.compare(tmp_path)["updates"] == 2


def test_the_ratios_are_of_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    large = {
        "pairs": 7,
        "make": {"megabytes": 300},
        "train": {"megabytes": 1200, "processor_seconds_to_first_update": 2.5},
        "compare": {"memory": 3, "mapped": 4},
    }
    small = {"sentences_per_processor_second": 30, "before": 20, "padding": 0.05}
    ratios = {name: row[0] for name, row in corpora.judge(large, small, small).ratios.items()}
    assert ratios == {
        "memory": 0.5, "memory_making": 2, "first_update": 2, "speed": 0.75, "less_padding": 1.5,
        "no_padding": 2,
    }  # fmt: skip
    monkeypatch.delenv("REGARD_DATA", raising=False)
    with pytest.raises(RegardError, match="REGARD_DATA"):
        corpora.measure_padding()


def test_updates_stand_for_all_lengths() -> None:
    class Task:
        rows = {"train": range(64)}

        def train_batch(self, update: int, size: int, seed: int) -> Any:
            width = (update * 7) % 16  # each width once, in disorder
            return SimpleNamespace(source=np.zeros((size, width)), target=np.zeros((size, 1)))

    chosen = corpora.choose_updates(Task(), 4, 4)
    assert [update * 7 % 16 for update in chosen] == [2, 6, 10, 14]
