"""The same configuration and seed give the same rows: those that are kept beside this test."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shown import hold

from regard.runs import assemble
from regard.tasks import TASKS, Batch

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "copying": [{}, {"permuted": True, "permutation": 3}, {"vocabulary": 50, "sets": 2}],
    "one-to-one": [{}, {"reversed": True}],
    "escan": [{}, {"conjunction": False, "period": False}],
    "reversal": [{}, {"padding": "read"}, {"reverse_source": True}],
}


def digest(batch: Batch) -> str:
    """All rows of a batch, in letters."""
    parts = [batch.source, batch.target, batch.source_lengths, batch.target_lengths]
    parts += [] if batch.alignment is None else [batch.alignment]
    found = sha256(b"".join(np.ascontiguousarray(p.numpy().astype(np.int64)) for p in parts))
    return found.hexdigest()[:12].translate(str.maketrans("0123456789", "ghijklmnop"))


CASES = [(name, number) for name in TASKS for number in range(len(SETTINGS.get(name, [{}])))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_the_same_rows(name: str, number: int, task_files: dict[str, dict[str, Any]]) -> None:
    given = {**task_files.get(name, {}), **SETTINGS.get(name, [{}])[number]}
    preset = "snell-classifier" if name == "classification" else "chapter36"
    if name != "lookup":  # whose splits are fixed
        given = {"held_out": 20, **given}
    task = assemble(name, preset, 0, given).make_task()
    asked = ((0, 3, 0), (1, 3, 0), (0, 3, 1), (7, 40, 2))
    found = {f"batch {'abcd'[k]}": digest(task.train_batch(*a)) for k, a in enumerate(asked)}
    found |= {split: digest(task.split(split)[:20]) for split in task.splits}
    found["words"] = [len(task.source_vocabulary), len(task.target_vocabulary)]  # type: ignore[assignment]
    hold(Path(__file__).with_name("rows.json"), f"{name} {number}", found, exact=True)
