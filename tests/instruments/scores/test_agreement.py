"""Agreement of scores, against the definition in loops and against scipy."""

from __future__ import annotations

import json
import math
from typing import Any

import brute
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kendalltau

import regard
from regard import RegardError, Scores
from regard.instruments.scores import Agreement
from regard.instruments.scores._kendall import kendall, packed
from regard.recordings import Site
from regard.recordings.recording import Metadata
from regard.recordings.storage import InMemory

Rows = list[list[float]]


def by_hand(u: list[float], v: list[float], top: float) -> float:
    best = max(range(len(u)), key=lambda k: (u[k], -k))
    above = sum(1 for value in v if value > v[best])
    return float(above < math.ceil(round(top * len(u), 9)))


@st.composite
def two(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Ragged rows with many ties."""
    lengths = draw(st.lists(st.integers(1, 30), min_size=1, max_size=6))
    numbers = st.integers(-3, 3).map(float)
    rows = [[draw(st.lists(numbers, min_size=n, max_size=n)) for n in lengths] for _ in range(2)]
    return rows[0], rows[1]


@given(two(), st.sampled_from([0.05, 0.1, 0.25, 1.0]))
@settings(max_examples=30, deadline=None)
def test_the_definition(rows: tuple[Rows, Rows], top: float) -> None:
    u, v = rows
    found = regard.agreement(u, v, top)
    assert found == pytest.approx(np.mean([by_hand(a, b, top) for a, b in zip(u, v, strict=True)]))
    assert found.rows == len(u) and found.top == top
    values = [
        kendalltau(a, b).statistic if len(a) > 1 else np.nan for a, b in zip(u, v, strict=True)
    ]
    if np.isfinite(values).any():
        assert found.kendall == pytest.approx(np.nanmean(values), abs=1e-12)
    else:
        assert math.isnan(found.kendall)


@given(two(), st.integers(0, 4))
@settings(max_examples=20, deadline=None)
def test_padding_changes_nothing(rows: tuple[Rows, Rows], more: int) -> None:
    lists = [Scores.of([np.array(row) for row in side] + [np.zeros(31 + more)]) for side in rows]
    mask = lists[0].mask.copy()
    mask[-1] = False  # a row without any position counts nowhere
    rng = np.random.default_rng(0)
    junk = [np.where(mask, s.values, rng.normal(size=mask.shape) * 9) for s in lists]
    one, two = regard.agreement(*rows), regard.agreement(junk[0], junk[1], mask=mask)
    assert one == two and one.rows == two.rows
    np.testing.assert_equal(one.kendall, two.kendall)


def test_it_is_a_number_with_yardsticks() -> None:
    rng = np.random.default_rng(1)
    u, v = rng.random((300, 4, 20)), rng.random((300, 4, 20))
    same, other = regard.agreement(u, u), regard.agreement(u, v, seed=3)
    assert isinstance(same, float) and isinstance(same, Agreement)
    assert same == 1 and same.kendall == pytest.approx(1)
    assert f"{same:.2f}" == "1.00" and json.dumps({"a": same}) == '{"a": 1.0}'
    assert other == pytest.approx(0.05, abs=0.03) and other.rows == 1200
    assert same.shuffled == pytest.approx(0.05, abs=0.03)
    assert other.shuffled == regard.agreement(u, v, seed=3).shuffled
    assert other.shuffled != regard.agreement(u, v, seed=4).shuffled


def test_shuffling_stays_within_the_row() -> None:
    """Where all of v's values are 1 in short rows and 0 in long ones, nothing changes."""
    u = [np.arange(3.0), np.arange(30.0)]
    v = [np.ones(3), np.zeros(30)]
    assert regard.agreement(u, v) == regard.agreement(u, v).shuffled == 1


def test_kendall_of_no_rows() -> None:
    none = np.zeros((0, 4))
    assert kendall(none, none, none.astype(bool)).shape == (0,)
    assert [x.shape for x in packed(none, none, none.astype(bool))] == [(0, 0)] * 3


def test_kendall_of_wide_rows() -> None:
    rng = np.random.default_rng(2)
    u, v = rng.integers(0, 50, (20, 120)) / 7, rng.normal(size=(20, 120))
    mask = rng.random(u.shape) < 0.8
    wanted = [kendalltau(a[m], b[m]).statistic for a, b, m in zip(u, v, mask, strict=True)]
    np.testing.assert_allclose(kendall(u, v, mask), wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: regard.agreement([1.0, 2.0], [1.0, 2.0, 3.0]), "differ"),
        (lambda: regard.agreement([[1.0], [1.0, 2.0]], [[1.0, 2.0], [1.0]]), "other positions"),
        (lambda: regard.agreement([1.0], [1.0], top=5), "share"),
        (lambda: regard.agreement(np.ones((2, 3)), np.ones((2, 3)), mask=np.ones(2)), "mask"),
        (lambda: regard.agreement([np.nan, 1.0], [1.0, 1.0]), "not a number"),
        (lambda: regard.agreement(["a"], ["b"]), "no scores"),
        (lambda: regard.agreement(3.0, 3.0), "vector"),
        (lambda: regard.agreement([], []), "no row"),
        (lambda: regard.contextualised(0.1, [0.1, 0.2], [1]), "shapes"),
    ],
)
def test_what_does_not_fit(call: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        call()


def test_contextualised() -> None:
    assert regard.contextualised(0.3, [0.1, 0.3, 0.4], [10, 20, 30]) == (30, True)
    assert regard.contextualised(0.5, [0.1, 0.3, 0.4], [10, 40, 30]) == (30, False)
    runs = [[0.0, 0.6, 0.7], [0.0, 0.2, 0.9]]  # means 0, 0.4, 0.8
    assert regard.contextualised(0.5, runs, [[0, 10, 20], [0, 30, 40]]) == (30, True)


def recordings(heads: int = 1) -> list[regard.Recording]:
    made = []
    for seed in (0, 1):
        arrays = brute.arrays(0, samples=9)
        rng = np.random.default_rng(seed)
        shape = (9, heads, 5, 6)
        raw: NDArray[Any] = rng.random(shape)
        arrays["attention.weights"] = (raw / raw.sum(-1, keepdims=True)).astype(np.float32)
        made.append(arrays)
    names = [[f"{letter}{n}" for n in range(count)] for letter, count in (("e", 5), ("d", 6))]
    meta = Metadata(tuple(names[0]), tuple(names[1]), {"attention": Site(heads=heads)})
    return [regard.Recording(InMemory(arrays), meta) for arrays in made]


def test_recordings_are_compared_with_the_first() -> None:
    one, two = recordings()
    result = regard.agreements([one, two, one])
    assert result.n == 2
    mask = one["decoder.mask"][:, :, None] & one["encoder.mask"][:, None, :]
    wanted = regard.agreement(*(r["weights"][:, 0] for r in (one, two)), mask=mask)
    assert result.first.values()["agreement"] == wanted
    assert result.seeds[1].values()["agreement"] == 1
    assert result.first.values()["kendall"] == pytest.approx(wanted.kendall)


def test_heads() -> None:
    one, two = recordings(heads=3)
    weights = one["attention.weights"]
    np.testing.assert_allclose(Scores.of_attention(one).values, weights.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(Scores.of_attention(one, head=2).values, weights[:, 2])
    with pytest.raises(RegardError, match="heads 0 to 2"):
        regard.agreements([one, two], head=3)


def test_other_phrases_are_refused() -> None:
    one = brute.recording(brute.arrays(1, samples=6))
    two = brute.recording(brute.arrays(2, samples=6))
    with pytest.raises(RegardError, match="other phrases"):
        regard.agreements([one, two])
    with pytest.raises(RegardError, match="another run"):
        regard.agreements(one)
