"""How long a translation may get, and how sentences go through the beam: with a made beam."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.runs import assemble
from regard.training import bleu as module


def test_translations_may_have_half_as_many_words_again_and_ten(
    monkeypatch: pytest.MonkeyPatch, task_files: dict[str, dict[str, Any]]
) -> None:
    settings = {**task_files["translation"], "held_out": 6, "hidden": 4, "embedding": 4}
    config = assemble("translation", "snell-translation", 0, settings)
    task = config.make_task()
    model = config.make_model(task)
    asked: list[tuple[int, int, int]] = []

    def beam(model: Any, memory: Any, limit: int, width: int) -> torch.Tensor:
        asked.append((limit, width, len(memory.mask)))
        return torch.full((len(memory.mask), 1), 2)

    monkeypatch.setattr(module, "beam", beam)
    monkeypatch.setattr(module, "PIECE", 4)
    module.bleu(model, task, "validation", n=6)
    lengths = sorted(task.split("validation").source_lengths[:6].tolist())
    assert sorted(count for _, _, count in asked) == [2, 4]
    assert max(limit for limit, _, _ in asked) == lengths[-1] * 3 // 2 + 10
    assert {width for _, width, _ in asked} == {5}
