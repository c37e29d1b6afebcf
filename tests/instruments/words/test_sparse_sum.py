"""Sums of sparse tables, many at a time, against one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from regard.instruments.words import _sparse_sum
from regard.instruments.words._sparse_sum import SparseSum, split_rows


@given(
    st.integers(0, 1000), st.integers(1, 9), st.sampled_from([0, 3, 10**6]), st.sampled_from([1, 7])
)
@settings(max_examples=40, deadline=None)
def test_the_bits_are_those_of_one_after_the_other(
    seed: int, count: int, waiting: int, cells: int
) -> None:
    rng = np.random.default_rng(seed)
    ours, plain = SparseSum(), csr_array((0, 0))
    shape = np.array([1, 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sparse_sum, "WAITING", waiting)
        patch.setattr(_sparse_sum, "CELLS", cells)
        for _ in range(count):
            shape += rng.integers(0, 3, 2)
            table = rng.random(tuple(shape)) * (rng.random(tuple(shape)) < 0.5) / 3
            ours.add(csr_array(table))
            plain.resize(tuple(shape))
            plain = csr_array(plain + csr_array(table))
        total = ours.total
    assert total.shape == tuple(shape) and total.nnz == plain.nnz
    assert np.array_equal(total.toarray(), plain.toarray())
    assert total.has_sorted_indices and total is ours.total


def test_the_work_grows_with_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with the same cells over and over: each cell is added up a few times, at most."""
    monkeypatch.setattr(_sparse_sum, "WAITING", 10)
    handled = []
    add = _sparse_sum._add_rows

    def count(tables: list[csr_array], first: int, last: int) -> object:
        handled.append(sum(int(t.indptr[last] - t.indptr[first]) for t in tables))
        return add(tables, first, last)

    monkeypatch.setattr(_sparse_sum, "_add_rows", count)
    total, given = SparseSum(), 0
    for number in range(400):
        total.add(csr_array(np.eye(100)[: 1 + number % 100]))
        given += 1 + number % 100
    assert total.total.sum() == given and sum(handled) < 8 * given


def test_ranges_of_rows() -> None:
    assert split_rows(np.array([5, 1, 1, 1, 9, 0]), 3) == [0, 1, 4, 5, 6]
    assert split_rows(np.array([], np.int64), 3) == [0]
