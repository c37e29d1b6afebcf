"""Functional groups, against scikit-learn fitted from scratch whenever a unit is added."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.benchmark import Measured, agree
from regard.instruments.units._classifier import ITERATIONS, fit
from regard.instruments.units.groups import Group, grow, rank_units
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
        order = rank_units(model, self.vectors, "aggregate")
        parts = self.vectors, self.labels, self.test_vectors, self.test_labels
        return grow(*parts, order, full)

    def plainly(self) -> Group:
        """As one would write it."""
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


def groups_ratio(problems: int = 5, units: int = 512) -> Measured:
    """Processor seconds of both on the same problems, and the sizes of their groups.

    `ratio` is the median over problems. Where one test step decides, two exact fits may differ by
    a unit or two; mean sizes further apart than one unit are an error.
    """
    taken: dict[str, list[float]] = {"ours": [], "plainly": []}
    sizes: dict[str, list[int]] = {"ours": [], "plainly": []}
    Problem.planted(units=16).plainly()  # what only the first fit needs
    for problem in (Problem.planted(seed, units=units) for seed in range(problems)):
        for name in taken:
            start = time.process_time()
            group = getattr(problem, name)()
            taken[name].append(time.process_time() - start)
            sizes[name].append(len(group.units))
    agree("The mean sizes of groups", np.mean(sizes["ours"]), np.mean(sizes["plainly"]), APART)
    ratios = [plain / ours for ours, plain in zip(*taken.values(), strict=True)]
    return {
        "ratio": statistics.median(ratios),
        "seconds": taken["ours"],
        "plain_seconds": taken["plainly"],
        "units": sizes["ours"],
        "plain_units": sizes["plainly"],
    }
