"""Orders that take no memory per row, and batches of rows that are about equally long."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.tasks import by_length, order
from regard.tasks.by_length import ByLength, sort_by_length
from regard.tasks.order import Permutation, draw_rows, order_rows
from regard.tasks.packed import PackedBatch, Side


def rows_of(lengths: list[tuple[int, int]]) -> PackedBatch:
    """Row `i` is the number `i`, as often as its two lengths say."""
    sides = (Side.of([i] * pair[side] for i, pair in enumerate(lengths)) for side in (0, 1))
    return PackedBatch(*sides)


def names(batch: PackedBatch) -> list[int]:
    return batch.source[:, 0].tolist()


@given(st.integers(1, 3000), st.integers(0, 9))
def test_a_permutation_has_every_number_once(count: int, seed: int) -> None:
    found = Permutation.of(count, seed)(np.arange(count))
    assert sorted(found.tolist()) == list(range(count))


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(1, 40), st.integers(0, 5))
def test_an_epoch_has_every_row_once_whatever_the_blocks(
    count: int, blocks: int, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "BLOCKS", blocks)
        found = order_rows(np.arange(count), seed, 0, count)
        pieces = [
            order_rows(np.arange(a, min(a + 7, count)), seed, 0, count) for a in range(0, count, 7)
        ]
    assert sorted(found.tolist()) == list(range(count))
    assert np.concatenate(pieces).tolist() == found.tolist()


def test_orders_are_even_and_differ() -> None:
    """Every row is equally likely at every place: a chi-squared of 99 degrees of freedom."""
    count, draws = 10, 4_000
    seen = np.zeros((count, count))
    for seed in range(draws):
        seen[np.arange(count), Permutation.of(count, seed)(np.arange(count))] += 1
    expected = draws / count
    assert ((seen - expected) ** 2 / expected).sum() < 150
    assert (
        len({tuple(order_rows(np.arange(50), s, e, 50)) for s in range(3) for e in range(3)}) == 9
    )


def test_drawn_rows_are_different_and_in_order() -> None:
    found = draw_rows(10**12, 1000, 7)
    assert len(set(found.tolist())) == 1000 and (np.diff(found) > 0).all()
    assert found.min() >= 0 and found.max() < 10**12
    assert draw_rows(5, 9, 1).tolist() == [0, 1, 2, 3, 4]


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 60), st.integers(1, 25), st.integers(0, 3), st.integers(1, 6))
def test_every_epoch_has_every_row_once(count: int, size: int, seed: int, batches: int) -> None:
    rng = np.random.default_rng(count)
    made = rows_of([(int(a), int(b)) for a, b in rng.integers(1, 9, (count, 2))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_length, "ROWS", size * batches)
        patch.setattr(by_length, "BATCHES", batches)
        both = ByLength(made)
        updates = range(-(-3 * count // size))
        seen = [name for update in updates for name in names(both.batch(update, size, seed))]
        for update in updates[::-3]:  # a run that was cut asks for one in the middle
            again = names(ByLength(made).batch(update, size, seed))
            assert again == seen[update * size : (update + 1) * size]
    for epoch in range(3):
        assert sorted(seen[epoch * count : (epoch + 1) * count]) == list(range(count))


def test_little_of_a_batch_is_padding() -> None:
    """Lengths as those of captions are; drawn rows would be padding by half."""
    rng = np.random.default_rng(0)
    logs = rng.multivariate_normal(np.log([15.5, 14.4]), [[0.096, 0.078], [0.078, 0.09]], 40_000)
    lengths = np.exp(logs).round().astype(int).clip(2, 60)
    made = ByLength(rows_of([(int(a), int(b)) for a, b in lengths]))
    for size in (16, 64, 128):
        batches = [made.batch(update, size, 0) for update in range(60)]
        there = sum(int(b.source_lengths.sum() + b.target_lengths.sum()) for b in batches)
        wide = sum(b.source.numel() + b.target.numel() for b in batches)
        assert 1 - there / wide < 0.1
        first = [int(b.source_lengths.max()) for b in batches]
        assert len(set(first)) > 8 and first != sorted(first), "long and short ones in any order"


def test_rows_are_sorted_by_both_lengths() -> None:
    sources, targets = np.array([2, 1, 2, 1, 3]), np.array([5, 4, 6, 9, 1])
    assert sort_by_length(sources, targets).tolist() == [3, 1, 0, 2, 4]


def test_batches_depend_on_seed_and_epoch() -> None:
    made = ByLength(rows_of([(1 + n % 5, 1 + n % 3) for n in range(200)]))
    asked = [(0, 20, 0), (0, 20, 1), (10, 20, 0), (20, 20, 0)]
    assert len({tuple(names(made.batch(*each))) for each in asked}) == 4
    assert Counter(names(made.batch(0, 200, 5))) == Counter(range(200))
