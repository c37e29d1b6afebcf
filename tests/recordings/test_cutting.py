"""A part of the samples of many batches, by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from regard.recordings.adapters.model import _cover, _cut
from regard.tasks.batch import Batch, collate

SIZES = (4, 3, 5)  # samples of each batch


def batches() -> list[Batch]:
    ends = np.cumsum((0, *SIZES))
    return [collate([[i + 4] for i in range(a, b)], [[2]] * (b - a)) for a, b in pairwise(ends)]


@pytest.mark.parametrize("skip", range(12))
def test_samples_from_any_place_to_any_other(skip: int) -> None:
    for count in range(1, 13 - skip):
        kept, left = _cover(batches(), skip, count)
        pieces = ({"encoder.words": batch.source.numpy()} for batch in kept)
        found = [word for piece in _cut(pieces, left, count) for (word,) in piece["encoder.words"]]
        assert found == list(range(skip + 4, skip + count + 4))
        assert sum(map(len, kept)) - left - count < SIZES[-1], "no batch is read for nothing"
