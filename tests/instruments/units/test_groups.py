"""groups: against scikit-learn, loops by hand, and planted answers."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import brute
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.lookup_groups import Problem, groups_ratio
from regard.instruments.units import groups
from regard.instruments.units._classifier import Growing, fit
from regard.instruments.units._steps import Reading, Splitting, Steps
from regard.instruments.units.groups import grow, overlap, rank_units
from regard.recordings import record


@pytest.mark.parametrize(("classes", "C"), [(2, 1.0), (3, 0.1), (8, 1.0), (5, np.inf), (2, 0.02)])
def test_growing_finds_the_optimum(classes: int, C: float) -> None:
    """Every size: the same weights as a fit from scratch that is a hundred times as exact."""
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, 300) * 3  # classes need not be numbered one by one
    vectors = (rng.normal(size=(300, 6)) + 0.3 * labels[:, None]).astype(np.float32)
    growing = Growing(labels, 6, C)
    for size in range(1, 7):
        ours = growing.add(vectors[:, size - 1])
        model = LogisticRegression(C=C, tol=1e-7, max_iter=20_000)
        exact = model.fit(vectors[:, :size].astype(float), labels)
        scores = ours.weights[:, 1:] @ vectors[:, :size].T + ours.weights[:, :1]
        wanted = exact.decision_function(vectors[:, :size].astype(float)).T
        if classes == 2:
            wanted = np.stack([-wanted, wanted]) / 2
        scores, wanted = scores - scores.mean(axis=0), wanted - wanted.mean(axis=0)
        assert np.abs(scores - wanted).max() < 0.05 * max(1, np.abs(wanted).max())
        assert ours.accuracy(vectors[:, :size], labels) == pytest.approx(
            exact.score(vectors[:, :size], labels), abs=0.011
        )


@pytest.mark.parametrize("ranking", ["aggregate", "first-class"])
def test_groups_by_hand(ranking: Any) -> None:
    """Scikit-learn, from scratch for every size, split by split."""
    recording = brute.recording(
        brute.arrays(3, samples=150, hidden=12, noise=1.2, words=(7, 6)), (7, 6)
    )
    found = groups(recording, ranking=ranking, seed=1, splits=4).first
    steps = Steps.of(recording, Reading())
    x, y = steps.vectors, steps.labels
    pairs = zip(steps.split(Splitting(4, 0.1, "sample", 1)), found.groups[ranking], strict=True)
    for (train, test), group in pairs:
        full = LogisticRegression(max_iter=1000).fit(x[train], y[train])
        size = np.abs(full.coef_[0])
        if ranking == "aggregate":
            size = np.sqrt((full.coef_**2).sum(axis=0)) * x[train].std(axis=0)
        order = np.argsort(-size)
        assert group.full == pytest.approx(full.score(x[test], y[test]))
        assert group.units == tuple(order[: len(group.units)])
        for count, accuracy in enumerate(group.accuracies, 1):
            units = order[:count]
            model = LogisticRegression(max_iter=1000).fit(x[train][:, units], y[train])
            assert accuracy == pytest.approx(model.score(x[test][:, units], y[test]), abs=0.02)
        assert all(a < 0.95 * group.full for a in group.accuracies[:-1])
        assert group.accuracy >= 0.95 * group.full
    values = found.values()
    assert values[ranking, "units"] == np.mean([len(g.units) for g in found.groups[ranking]])
    assert values[ranking, "share of units"] == pytest.approx(values[ranking, "units"] / 12)


def test_a_planted_group_is_found() -> None:
    """One class each is told to units 2 and 5; the rest is noise."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 3, (200, 4))
    states = 0.3 * rng.normal(size=(200, 4, 9)).astype(np.float32)
    states[..., 2] += words == 1
    states[..., 5] += words == 2
    recording = record({"encoder.states": states, "encoder.words": words}, scorer="none")
    found = groups(recording, share=0.97)
    assert all(set(g.units) == {2, 5} for g in found.first.groups["aggregate"])
    assert found.estimates()["overlap"].mean == 1
    both = groups(recording, share=0.97, ranking="both").estimates()
    assert both["aggregate: units"].mean == 2 <= both["first-class: units"].mean
    assert found.to_json()["units of each split"][0]["aggregate"][0] in ([2, 5], [5, 2])


def test_a_unit_that_hardly_varies_does_not_rank_first() -> None:
    """Without a penalty its raw weight is the largest, though all that it tells is elsewhere."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 500)
    x = np.stack([labels + rng.normal(size=500), 1e-3 * rng.normal(size=500)], axis=1)
    model = fit(x.astype(np.float32), labels, np.inf)
    assert list(rank_units(model, x, "aggregate")) == [0, 1]


def test_all_units_where_few_do_not_reach() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    group = grow(x[:40], y[:40], x[40:], y[40:], np.arange(3), full=1.0, share=1.0)
    assert group.units == (0, 1, 2) and len(group.accuracies) == 3


def test_overlap() -> None:
    sets = [(1, 2), (2, 3), (1, 2, 3)]
    pairs = [len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in combinations(sets, 2)]
    assert overlap(sets) == pytest.approx(np.mean(pairs)) and overlap(sets[:1]) == 1


def test_sizes_are_those_of_scikit_learn() -> None:
    sizes = []
    for seed in range(4):
        problem = Problem.planted(seed, steps=900, units=64, told=20)
        ours, plain = problem.ours(), problem.plainly()
        assert ours.full == plain.full
        shared = zip(ours.accuracies, plain.accuracies, strict=False)
        assert max(abs(a - b) for a, b in shared) <= 3 / 90
        sizes.append((len(ours.units), len(plain.units)))
    assert abs(np.mean([a - b for a, b in sizes])) <= 1 < np.mean(sizes)
    found = groups_ratio(1, units=48)
    assert found["ratio"] > 0 and len(found["seconds"]) == len(found["plain_units"]) == 1
