"""`rec.check` on made recordings: which parts are held against which, and by how much they miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard import RegardError
from regard.recordings import Recording
from regard.recordings.recording import Metadata
from regard.recordings.site import Site
from regard.recordings.storage import InMemory

WORDS = ("<PAD>", "<SOS>", "<EOS>", "a", "b")
MASK = np.array([[True, True, True], [True, True, False]])
ALSO = np.array([[True, True], [True, False]])  # of the target


def softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    raised = np.where(mask, np.exp(scores), 0.0)
    return raised / raised.sum(axis=-1, keepdims=True)


def make(site: Site, bias: bool = False, off: float = 0.0, **more: Any) -> Recording:
    """Two samples, one head, two target and three source steps."""
    rng = np.random.default_rng(0)
    scores, added = rng.normal(size=(2, 1, 2, 3)), rng.normal(size=(2, 1, 2, 3))
    weights = softmax(scores + (added if bias else 0), MASK[:, None, None])
    weights[0, 0, 1, :2] += (off, -off)
    arrays = {
        "encoder.words": np.full((2, 3), 3), "encoder.mask": MASK,
        "decoder.words": np.full((2, 2), 3), "decoder.mask": ALSO,
        "attention.scores": scores.astype(np.float32),
        "attention.weights": weights.astype(np.float32), **more,
    }  # fmt: skip
    if bias:
        arrays["attention.bias"] = added.astype(np.float32)
    kept = {name: value for name, value in arrays.items() if value is not None}
    return Recording(InMemory(kept), Metadata(WORDS, WORDS, {"attention": site}))


@pytest.mark.parametrize("bias", [True, False])
def test_weights_follow_from_scores_and_bias(bias: bool) -> None:
    found = make(Site(), bias).check()
    assert set(found) == {"attention, rows", "attention.weights"}
    assert max(found.values()) < 1e-6
    with pytest.raises(RegardError, match=r"attention\.weights: off by 0\.2[ ,]"):
        make(Site(), bias, off=0.2).check()


@pytest.mark.parametrize(
    ("site", "scores"),
    [(Site(score="given"), True), (Site(masked=False), True), (Site(), False)],
)
def test_scores_that_say_nothing_about_weights_are_not_asked(site: Site, scores: bool) -> None:
    """Given scores, attention to padding, or none recorded: only rows are added up."""
    more = {} if scores else {"attention.scores": None}
    found = make(site, off=0.01, **more).check()
    assert set(found) == {"attention, rows"}


def test_rows_add_up_where_there_is_a_query() -> None:
    weights = np.full((2, 1, 2, 3), 1 / 3, np.float32)
    weights[1, 0, 1] = 9.0  # no word is there
    assert make(Site(score="given"), **{"attention.weights": weights}).check()
    weights[1, 0, 0, 2] += 0.5
    with pytest.raises(RegardError, match=r"attention, rows: off by 0\.5"):
        make(Site(score="given"), **{"attention.weights": weights}).check()


def test_given_weights_are_compared_inside_the_mask() -> None:
    made = make(Site())
    given = made["attention.weights"][:, 0].copy()
    given[1, 1], given[1, 0, 2] = 7.0, 7.0  # padding of the target, and of the source
    assert made.check(weights=given)["attention.weights, given"] < 1e-6
    given[0, 1, 2] += 0.25
    with pytest.raises(RegardError, match=r"weights, given: off by 0\.25"):
        made.check(weights=given)
    with pytest.raises(RegardError, match=r"are \(2, 1, 1, 3\), the recorded ones \(2, 1, 2, 3\)"):
        made.check(weights=given[:, :1])


def test_a_decoder_that_looks_at_itself_sees_the_past_alone() -> None:
    scores = np.array([[[[0.0, 9.0], [1.0, 2.0]]]])
    weights = softmax(scores, np.tril(np.ones((2, 2), bool)))
    arrays = {
        "encoder.words": np.full((1, 1), 3), "encoder.mask": np.ones((1, 1), bool),
        "decoder.words": np.full((1, 2), 3), "decoder.mask": np.ones((1, 2), bool),
        "own.scores": scores.astype(np.float32), "own.weights": weights.astype(np.float32),
    }  # fmt: skip
    site = Site(query_side="decoder", key_side="decoder")
    made = Recording(InMemory(arrays), Metadata(WORDS, WORDS, {"own": site}))
    assert max(made.check().values()) < 1e-6
