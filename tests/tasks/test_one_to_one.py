"""One-to-one, reversed, and sorting: what is right is what the paper says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from regard.tasks import EOS, Batch, mean_offset, tasks


def drawn(name: str, **settings: object) -> tuple[list[list[str]], list[list[str]], Batch]:
    kind = tasks[name]
    task = kind(kind.Config(**settings))
    batch = task.draw(np.random.default_rng(0), 200)
    source = [task.source_vocabulary.decode(row) for row in batch.source.tolist()]
    target = [task.target_vocabulary.decode(row) for row in batch.target.tolist()]
    return source, target, batch


def test_letters_become_their_numbers() -> None:
    source, target, batch = drawn("one-to-one")
    lengths = {len(row) for row in source}
    assert lengths == set(range(15, 20)), "15 to 20 with the end token"
    for letters, numbers in zip(source, target, strict=True):
        assert [str("ABC".index(letter) + 1) for letter in letters] == numbers
    assert (mean_offset(batch) == 0).all()


def test_reversed_turns_the_words_and_not_the_end() -> None:
    source, target, batch = drawn("one-to-one", reversed=True, words=5, shortest=2, longest=4)
    for row, (letters, numbers) in enumerate(zip(source, target, strict=True)):
        assert [str("ABCDE".index(letter) + 1) for letter in reversed(letters)] == numbers
        n = len(letters)
        assert batch.target[row, n] == EOS
        assert batch.alignment is not None
        assert batch.alignment[row, : n + 1].tolist() == [*range(n - 1, -1, -1), n]


def test_sorting_repeats_what_is_repeated() -> None:
    source, target, batch = drawn("sorting", words=3, shortest=4, longest=7)
    for row, (letters, ordered) in enumerate(zip(source, target, strict=True)):
        assert sorted(letters) == ordered
        assert batch.alignment is not None
        places = batch.alignment[row, : len(letters)].tolist()
        assert sorted(places) == list(range(len(letters)))
        assert [letters[place] for place in places] == ordered
        repeated = pairwise(places)
        assert all(a < b for a, b in repeated if letters[a] == letters[b]), "equal ones keep order"
        assert batch.alignment[row, len(letters)] == len(letters)


@pytest.mark.parametrize("name", ["one-to-one", "sorting"])
def test_lengths_must_be_in_order(name: str) -> None:
    with pytest.raises(ValueError, match="shortest is 9"):
        tasks[name].Config(shortest=9, longest=3)
