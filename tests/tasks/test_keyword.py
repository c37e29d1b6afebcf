from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.tasks.synthetic.keyword import Keyword

KEY, NEGATIVE, POSITIVE = 2, 2, 3


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_keyword_makes_a_sentence_positive(size: int) -> None:
    batch = Keyword(Keyword.Config()).draw(np.random.default_rng(0), size)
    assert batch.alignment is not None
    assert batch.source.shape == (size, 40)
    occurs = (batch.source == KEY).sum(dim=1)
    assert set(occurs.tolist()) <= {0, 1}
    assert torch.equal(batch.target[:, 0], NEGATIVE + occurs)
    assert abs(2 * int(occurs.sum()) - size) <= 1, "balanced"
    for row, place in zip(batch.source.tolist(), batch.alignment[:, 0].tolist(), strict=True):
        assert place == (row.index(KEY) if KEY in row else -1)


def test_one_sentence_is_as_often_positive_as_negative() -> None:
    task, rng = Keyword(Keyword.Config()), np.random.default_rng(0)
    labels = [int(task.draw(rng, 1).target) for _ in range(1000)]
    assert abs(np.mean(labels) - 2.5) < 0.05


def test_sentences_are_distributed_as_rejection_would_leave_them() -> None:
    """All sentences of 2 words out of 3: counts against those of drawing and throwing away."""
    batch = Keyword(Keyword.Config(vocabulary=3, length=2)).draw(np.random.default_rng(3), 40_000)
    rng, found, wanted = np.random.default_rng(4), {}, {}
    drawn = rng.integers(2, 5, size=(90_000, 2))
    times = (drawn == KEY).sum(axis=1)
    for label, count in ((NEGATIVE, 0), (POSITIVE, 1)):
        mine = batch.source[batch.target[:, 0] == label].numpy()
        for name, rows in (("found", mine), ("wanted", drawn[times == count])):
            shares = np.bincount(rows @ [5, 1], minlength=25) / len(rows)
            (found if name == "found" else wanted)[label] = shares
        np.testing.assert_allclose(found[label], wanted[label], atol=0.015)


def test_neither_side_ends() -> None:
    task = Keyword(Keyword.Config())
    assert len(task.source_vocabulary) == 42
    assert task.target_vocabulary.words == ("<PAD>", "<SOS>", "negative", "positive")
    assert task.target_vocabulary.decode([POSITIVE]) == ["positive"]
    assert task.target_vocabulary.decode([NEGATIVE]) == ["negative"], "2 is no end here"
