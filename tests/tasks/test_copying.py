from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from regard.tasks.synthetic.copying import Copying


def drawn(size: int = 64, seed: int = 0, **keys: object) -> tuple[Copying, list[list[int]]]:
    task = Copying(Copying.Config.model_validate(keys))
    return task, task.draw(np.random.default_rng(seed), size).source.tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.data(), st.integers(1, 3), st.booleans())
def test_every_target_word_is_where_its_alignment_says(
    vocabulary: int, data: st.DataObject, sets: int, permuted: bool
) -> None:
    length = data.draw(st.integers(1, vocabulary))
    config = Copying.Config(vocabulary=vocabulary, length=length, sets=sets, permuted=permuted)
    task = Copying(config)
    batch = task.draw(np.random.default_rng(1), 9)
    assert batch.alignment is not None
    for source, target, places in zip(
        batch.source.tolist(), batch.target.tolist(), batch.alignment.tolist(), strict=True
    ):
        assert target == [source[place] for place in places]
        assert len(set(source)) == length
        assert len({(word - 2) // vocabulary for word in source}) == 1
        assert min(source) >= 2 and max(source) < 2 + sets * vocabulary
    assert (batch.alignment == batch.alignment[0]).all(), "one order for all sentences"


def test_forty_of_forty_is_a_permutation_of_all_words() -> None:
    task, rows = drawn()
    assert len(task.source_vocabulary) == 42
    assert all(sorted(row) == list(range(2, 42)) for row in rows)
    assert len({tuple(row) for row in rows}) == 64


def test_places_and_words_are_uniform() -> None:
    _, rows = drawn(30_000, vocabulary=6, length=4)
    counts = np.stack([np.bincount(column, minlength=8)[2:] for column in np.array(rows).T])
    assert np.abs(counts / 30_000 - 1 / 6).max() < 0.01


def test_both_sets_occur_equally_often() -> None:
    task, rows = drawn(4000, sets=2, vocabulary=60)
    assert len(task.source_vocabulary) == 122
    assert abs(np.mean([row[0] >= 62 for row in rows]) - 0.5) < 0.04


def test_an_order_is_fixed_by_its_seed() -> None:
    orders = [drawn(permuted=True, permutation=seed)[0].order.tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(40)) != orders[0]
    assert drawn()[0].order.tolist() == list(range(40))


def test_turned_sources_keep_their_alignment() -> None:
    task = Copying(Copying.Config(reverse_source=True, vocabulary=9, length=5))
    batch = task.split("test")
    assert batch.alignment is not None and len(batch) == 128
    assert torch.equal(batch.source.gather(1, batch.alignment), batch.target)
    assert torch.equal(batch.source.flip(1), batch.target)


def test_more_words_than_there_are_is_an_error() -> None:
    with pytest.raises(ValidationError, match="length is 41 but vocabulary is 40"):
        Copying.Config(length=41)
