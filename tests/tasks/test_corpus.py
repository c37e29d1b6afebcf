from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.tasks import EOS, CorpusTask, TaskConfig, Vocabulary, collate
from regard.tasks.corpus import partition, pick_rows


class Ten(CorpusTask):
    """Ten rows, each with a word of its own."""

    def __init__(self, config: TaskConfig):
        super().__init__(config)
        self.source_vocabulary = self.target_vocabulary = Vocabulary.of("abcdefghijkl")
        given = [[3 + row] * (1 + row % 3) + [EOS] for row in range(12)]
        self.rows = {
            "train": collate(given[:10], given[:10]),
            "validation": collate(given[10:11], given[10:11]),
            "test": collate(given[11:], given[11:]),
        }


@pytest.fixture
def ten() -> Ten:
    return Ten(TaskConfig())


def firsts(task: Ten, update: int, size: int, seed: int = 0) -> list[int]:
    return task.train_batch(update, size, seed).source[:, 0].tolist()


def test_every_epoch_has_every_row_once(ten: Ten) -> None:
    seen = [word for update in range(10) for word in firsts(ten, update, 3)]
    epochs = [seen[start : start + 10] for start in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(3, 13)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_batches_may_be_larger_than_the_corpus(ten: Ten) -> None:
    assert firsts(ten, 0, 25) == [word for update in range(5) for word in firsts(ten, update, 5)]


@given(st.integers(0, 50), st.integers(1, 30), st.integers(0, 5), st.integers(1, 20))
def test_rows_do_not_depend_on_the_batch_size(start: int, size: int, seed: int, count: int) -> None:
    alone = [int(pick_rows(start + i, 1, seed, count)[0]) for i in range(size)]
    assert pick_rows(start, size, seed, count).tolist() == alone


def test_training_rows_obey_the_settings() -> None:
    settings = TaskConfig(padding="read", reverse_source=True)
    batch = Ten(settings).train_batch(0, 10, 0)
    assert (batch.source_lengths == batch.source.shape[1]).all()


def test_rows_are_drawn_with_replacement(ten: Ten) -> None:
    words = ten.draw(np.random.default_rng(0), 500).source[:, 0]
    assert set(words.tolist()) == set(range(3, 13))


def test_splits_are_the_given_rows(ten: Ten) -> None:
    assert torch.equal(ten.split("test").source, ten.rows["test"].source)
    with pytest.raises(RegardError, match=r"no split 'tset'. Did you mean 'test'"):
        ten.split("tset")


def test_parts_share_nothing() -> None:
    first, second, rest = partition(20, [3, 4], "task.held_out")
    assert [len(first), len(second), len(rest)] == [3, 4, 13]
    assert sorted([*first, *second, *rest]) == list(range(20))
    with pytest.raises(RegardError, match=r"task.held_out=10 sets 20 of 20"):
        partition(20, [10, 10], "task.held_out")
