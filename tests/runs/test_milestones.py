"""Milestones, training without clipping, and frozen parts: what snell2021's recipes need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from regard.runs import assemble, execute

SMALL: dict[str, Any] = {
    "vocabulary": 6, "length": 5, "hidden": 6, "embedding": 5, "held_out": 8, "batch": 4,
}  # fmt: skip


def test_milestones_are_evaluated_and_kept(tmp_path: Path) -> None:
    settings = {**SMALL, "updates": 9, "milestones": "0,2,7", "evaluate_every": 4}
    config = assemble("keyword", "snell-classifier", 0, {**settings, "checkpoint_every": 4})
    run = execute(config, tmp_path)
    assert run.checkpoints() == [0, 2, 4, 7, 8, 9]
    assert run.curve("accuracy", "validation")[0] == [0, 2, 4, 7, 8, 9]


def test_milestones_change_no_update(tmp_path: Path) -> None:
    settings = {**SMALL, "updates": 6, "report": "last"}
    plain = execute(
        assemble("keyword", "snell-classifier", 0, {**settings, "milestones": ()}), tmp_path
    )
    noted = execute(
        assemble("keyword", "snell-classifier", 0, {**settings, "milestones": (0, 1, 3)}), tmp_path
    )
    assert plain.weights("last") == noted.weights("last")


def test_without_clipping_gradients_keep_their_size(tmp_path: Path) -> None:
    def weights(clip: float | None) -> str:
        settings = {**SMALL, "updates": 3, "clip": clip, "milestones": ()}
        return execute(assemble("copying", "snell-copying", 0, settings), tmp_path).weights()

    assert weights(None) == weights(1e9) != weights(1e-3)


def test_frozen_knowledge_leaves_only_attention_to_learn(tmp_path: Path) -> None:
    """snell2021, A.6."""
    settings = {**SMALL, "updates": 3, "freeze": "encoder,output", "report": "last"}
    run = execute(assemble("keyword", "snell-classifier", 0, settings), tmp_path)
    before, after = run.model(0).state_dict(), run.model("last").state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all(name.startswith("attention.") for name in changed)
