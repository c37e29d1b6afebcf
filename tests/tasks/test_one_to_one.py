"""One-to-one and reversed: what is right is what the paper says."""

from __future__ import annotations

import numpy as np
import pytest

from regard.tasks import EOS, Batch
from regard.tasks.synthetic.one_to_one import OneToOne


def drawn(**settings: object) -> tuple[list[list[str]], list[list[str]], Batch]:
    task = OneToOne(OneToOne.Config.model_validate(settings))
    batch = task.draw(np.random.default_rng(0), 200)
    source = [task.source_vocabulary.decode(row) for row in batch.source.tolist()]
    target = [task.target_vocabulary.decode(row) for row in batch.target.tolist()]
    return source, target, batch


def test_letters_become_their_numbers() -> None:
    source, target, batch = drawn()
    lengths = {len(row) for row in source}
    assert lengths == set(range(15, 20)), "15 to 20 with the end token"
    for letters, numbers in zip(source, target, strict=True):
        assert [str("ABC".index(letter) + 1) for letter in letters] == numbers
    assert batch.alignment is not None
    for row in batch.alignment.tolist():
        assert row == [place if place in row else -1 for place in range(len(row))], (
            "each at its own"
        )


def test_reversed_turns_the_words_and_not_the_end() -> None:
    source, target, batch = drawn(reversed=True, words=5, shortest=2, longest=4)
    for row, (letters, numbers) in enumerate(zip(source, target, strict=True)):
        assert [str("ABCDE".index(letter) + 1) for letter in reversed(letters)] == numbers
        n = len(letters)
        assert batch.target[row, n] == EOS
        assert batch.alignment is not None
        assert batch.alignment[row, : n + 1].tolist() == [*range(n - 1, -1, -1), n]


def test_lengths_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="shortest is 9"):
        OneToOne.Config(shortest=9, longest=3)
