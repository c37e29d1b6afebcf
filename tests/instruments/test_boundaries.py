"""Cases on the boundary, where a wrong definition would give the right answer elsewhere."""

from __future__ import annotations

import brute
import numpy as np
import pytest

from regard import RegardError
from regard.instruments.components import clusters, variance
from regard.instruments.scores import Scores
from regard.instruments.words.aer import link_best
from regard.instruments.words.ibm1 import ibm1


def counts(made: dict[str, np.ndarray]) -> np.ndarray:
    return np.bincount(made["encoder.words"][made["encoder.mask"]], minlength=5)


def test_a_word_that_was_seen_just_often_enough_counts() -> None:
    made = brute.arrays(4, samples=20)
    seen = counts(made)
    for word in np.flatnonzero(seen >= 2):
        kept = variance(brute.recording(made), least=int(seen[word])).first.words
        assert f"e{word}" in kept
        with_more = [f"e{w}" for w in np.flatnonzero(seen > seen[word])]
        if with_more:
            kept = variance(brute.recording(made), least=int(seen[word]) + 1).first.words
            assert f"e{word}" not in kept and set(kept) <= set(with_more)


def test_the_most_restless_word_is_seen_often_enough() -> None:
    made = brute.arrays(7, samples=30)
    most = int(counts(made).max())
    assert clusters(brute.recording(made), least=2).first.word in ("e0", "e1", "e2", "e3")
    with pytest.raises(RegardError, match="Record more samples"):
        clusters(brute.recording(made), least=most + 1)


def test_one_negative_score_is_enough_for_a_threshold_to_be_refused() -> None:
    values = np.array([[[0.5, 0.3, 0.2], [0.6, -0.1, 0.5]]])
    mask = np.ones_like(values, bool)
    with pytest.raises(RegardError, match="some scores are negative"):
        link_best(Scores(values, mask), threshold=0.2)
    masked = mask.copy()
    masked[0, 1, 1] = False  # it is not there
    (links,) = link_best(Scores(values, masked), threshold=0.3)
    assert links.sure == {(0, 0), (1, 0), (0, 1), (2, 1)}


def test_a_share_on_the_threshold_is_a_link() -> None:
    values = np.array([[[0.5, 0.25, 0.25], [0.0, 0.0, 0.0]]])
    (links,) = link_best(Scores(values, np.ones_like(values, bool)), threshold=0.25)
    assert links.sure == {(0, 0), (1, 0), (2, 0)}, "a row of nothing has no links"


def test_words_that_never_met_are_not_aligned() -> None:
    pairs = [(["a"], ["x"]), (["b"], ["y"]), (["a", "b"], ["x", "y"])]
    table = ibm1(pairs)
    assert table.align([(["a"], ["x"]), (["c"], ["x"]), (["b", "a"], ["x", "z"])]) == [
        [0], [-1], [1, -1],
    ]  # fmt: skip
