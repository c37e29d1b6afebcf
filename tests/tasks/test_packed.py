"""Rows without padding give the batches that padded rows give, and take no memory for padding."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.tasks import TASKS, Batch, collate
from regard.tasks.batch import reverse_sources
from regard.tasks.packed import PackedBatch, Side


def pack(rows: list[tuple[list[int], list[int]]]) -> PackedBatch:
    return PackedBatch(Side.of(a for a, _ in rows), Side.of(b for _, b in rows))


def agree(packed: Batch, padded: Batch) -> None:
    for name in ("source", "source_lengths", "target", "target_lengths"):
        one, two = getattr(packed, name), getattr(padded, name)
        assert one.dtype == two.dtype and torch.equal(one, two), name


@pytest.mark.parametrize("seed", range(40))
def test_packed_rows_are_padded_as_a_batch_is(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def draw() -> list[int]:
        return [int(n) for n in rng.integers(3, 2**31 - 1, size=rng.integers(0, 7))]

    rows = [(draw(), draw()) for _ in range(rng.integers(1, 10))]
    packed, padded = pack(rows), collate([a for a, _ in rows], [b for _, b in rows])
    picked, size = rng.integers(len(rows), size=rng.integers(1, 10)), int(rng.integers(1, 5))
    agree(packed, padded)
    agree(packed[picked].padded(), padded[picked])
    agree(packed[:size].to("cpu"), padded[:size])
    if (mask := padded.source_lengths > 2).any():
        agree(packed[mask], padded[mask])
    for one, two in zip(packed.pieces(size), padded.pieces(size), strict=True):
        agree(one, two)


def test_sources_are_turned_when_they_are_padded() -> None:
    rows = [([3, 4, 5, 2], [6, 2]), ([7, 2], [8, 9, 2])]
    turned = pack(rows).apply(reverse_sources)
    assert turned.source.tolist() == [[5, 4, 3, 2], [7, 2, 0, 0]]
    assert [piece.source.tolist() for piece in turned.pieces(1)] == [[[5, 4, 3, 2]], [[7, 2]]]


@pytest.mark.parametrize("task", ["parallel", "classification"])
def test_a_long_row_costs_its_own_words_and_no_padding(task: str, tmp_path: Path) -> None:
    short, long, count = "a b c", " ".join(["a"] * 2000), 3000
    texts = [*(f"{i} {short}" for i in range(count)), long]
    lines = {
        "parallel": [f"{text}\t{text}" for text in texts],
        "classification": [f"{i % 2}\t{text}" for i, text in enumerate(texts)],
    }[task]
    path = tmp_path / "rows.tsv"
    path.write_text("\n".join(lines) + "\n")
    kind = TASKS[task]
    key = {"parallel": "source", "classification": "data"}[task]
    tracemalloc.start()
    made = kind(kind.Config(**{key: str(path), "longest": 2000, "held_out": 100}))
    for update in range(60):  # the long one is met on the way
        made.train_batch(update, 64, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    padded = count * 2000 * 8  # bytes of one side, were all rows as long as the longest
    assert peak < padded / 3
