"""Functional groups, against scikit-learn fitted from scratch whenever a unit is added."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.instruments.classifier import ITERATIONS, fit
from regard.instruments.groups import Group, grow, ranked
from regard.recordings.storage import Array

APART = 1  # units by which the mean sizes of groups may differ


@dataclass(frozen=True)
class Problem:
    """Steps to learn from and to test on."""

    vectors: Array  # (step, unit)
    labels: Array  # (step,)
    test_vectors: Array
    test_labels: Array

    @classmethod
    def planted(
        cls, seed: int = 0, steps: int = 1700, units: int = 512, classes: int = 8, told: int = 45
    ) -> Problem:
        """Units that are told the class, more or less, among others; all move together a little."""
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, classes, steps)
        means = 0.25 * rng.normal(size=(classes, units))
        means[:, rng.permutation(units)[told:]] = 0
        shared = 0.15 * rng.normal(size=(steps, 20)) @ rng.normal(size=(20, units))
        states = np.tanh(means[labels] + shared + 0.35 * rng.normal(size=(steps, units)))
        test = rng.permutation(steps) < steps // 10
        states = states.astype(np.float32)
        return cls(states[~test], labels[~test], states[test], labels[test])

    def ours(self) -> Group:
        """As `groups` does it."""
        model = fit(self.vectors, self.labels, 1.0)
        full = model.accuracy(self.test_vectors, self.test_labels)
        order = ranked(model, self.vectors, "aggregate")
        parts = self.vectors, self.labels, self.test_vectors, self.test_labels
        return grow(*parts, order, full)

    def plainly(self) -> Group:
        """As one would write it."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=ITERATIONS).fit(self.vectors, self.labels)
        full = model.score(self.test_vectors, self.test_labels)
        size = np.linalg.norm(model.coef_, axis=0) * self.vectors.std(axis=0)
        order = np.argsort(-size)
        accuracies: list[float] = []
        while not accuracies or (accuracies[-1] < 0.95 * full and len(accuracies) < len(order)):
            units = order[: len(accuracies) + 1]
            model = LogisticRegression(max_iter=ITERATIONS).fit(self.vectors[:, units], self.labels)
            accuracies.append(float(model.score(self.test_vectors[:, units], self.test_labels)))
        return Group(tuple(map(int, order[: len(accuracies)])), tuple(accuracies), float(full))


def groups_ratio(problems: int = 5, units: int = 512) -> dict[str, Any]:
    """Processor seconds of both on the same problems, and the sizes of their groups.

    `ratio` is the median over problems. Where one test step decides, two exact fits may differ by
    a unit or two; mean sizes further apart than one unit are an error.
    """
    taken: dict[str, list[float]] = {"ours": [], "plain": []}
    sizes: dict[str, list[int]] = {"ours": [], "plain": []}
    Problem.planted(units=16).plainly()  # imports, and what else only the first fit needs
    for seed in range(problems):
        problem = Problem.planted(seed, units=units)
        for name, work in (("ours", problem.ours), ("plain", problem.plainly)):
            start = time.process_time()
            group = work()
            taken[name].append(time.process_time() - start)
            sizes[name].append(len(group.units))
    apart = abs(statistics.mean(sizes["ours"]) - statistics.mean(sizes["plain"]))
    if apart > APART:
        raise RegardError(
            f"Our groups are {apart:g} units apart from those of scikit-learn, so there is nothing"
            " to compare. One of the two is wrong: see instruments/classifier.py."
        )
    ratios = [plain / ours for ours, plain in zip(taken["ours"], taken["plain"], strict=True)]
    return {
        "ratio": statistics.median(ratios),
        "seconds": taken["ours"],
        "plain_seconds": taken["plain"],
        "units": sizes["ours"],
        "plain_units": sizes["plain"],
    }
