from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from regard.tasks.synthetic.sorting import Sorting


def test_sorting_repeats_what_is_repeated() -> None:
    task = Sorting(Sorting.Config(words=3, shortest=4, longest=7))
    batch = task.draw(np.random.default_rng(0), 200)
    source = [task.source_vocabulary.decode(row) for row in batch.source.tolist()]
    target = [task.target_vocabulary.decode(row) for row in batch.target.tolist()]
    for row, (letters, ordered) in enumerate(zip(source, target, strict=True)):
        assert sorted(letters) == ordered
        assert batch.alignment is not None
        places = batch.alignment[row, : len(letters)].tolist()
        assert sorted(places) == list(range(len(letters)))
        assert [letters[place] for place in places] == ordered
        repeated = pairwise(places)
        assert all(a < b for a, b in repeated if letters[a] == letters[b]), "equal ones keep order"
        assert batch.alignment[row, len(letters)] == len(letters)


def test_lengths_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="shortest is 9"):
        Sorting.Config(shortest=9, longest=3)
