from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.synthetic.reversal import Reversal


@given(st.integers(1, 8), st.integers(0, 8), st.integers(2, 26), st.integers(0, 999))
def test_targets_are_reversals(shortest: int, more: int, alphabet: int, seed: int) -> None:
    config = Reversal.Config(shortest=shortest, longest=shortest + more, alphabet=alphabet)
    task = Reversal(config)
    batch = task.draw(np.random.default_rng(seed), 9)
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        word = "".join(task.source_vocabulary.decode(source))
        assert "".join(task.target_vocabulary.decode(target)) == word[::-1]
        assert shortest <= len(word) <= shortest + more
        assert all(letter < chr(ord("a") + alphabet) for letter in word)


def test_all_lengths_and_letters_occur() -> None:
    task = Reversal(Reversal.Config())
    batch = task.draw(np.random.default_rng(0), 2000)
    lengths, counts = np.unique(batch.source_lengths.numpy() - 1, return_counts=True)
    assert lengths.tolist() == [5, 6, 7, 8, 9, 10]
    assert counts.min() > 250
    assert len(np.unique(batch.source.numpy())) == 26 + 2  # and <EOS>, <PAD>


def test_range_must_be_ordered() -> None:
    with pytest.raises(ValueError, match="shortest is 9 but longest is 4"):
        Reversal.Config(shortest=9, longest=4)
