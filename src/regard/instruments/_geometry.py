"""Principal components, and what several instruments need to draw and to compare vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Panel, Points
from regard.display.figure import Mark
from regard.instruments.result import to_floats
from regard.recordings.decomposition import Components
from regard.recordings.storage import Array


@dataclass(frozen=True)
class Axes:
    """Principal components: where the middle is, the directions, and what each explains."""

    middle: Array  # (features,)
    directions: Array  # (component, features)
    explained: Array  # (component,), shares of the variance

    @classmethod
    def of(cls, vectors: Array) -> Axes:
        """Of some vectors (n, features), by singular values."""
        middle = vectors.mean(axis=0)
        _, sizes, directions = np.linalg.svd(vectors - middle, full_matrices=False)
        total = max(float((sizes**2).sum()), np.finfo(float).tiny)
        return cls(middle, directions, sizes**2 / total)

    def project(self, vectors: Array, count: int = 2) -> Array:
        """The coordinates of vectors in the first components. (n, count)"""
        found = (vectors - self.middle) @ self.directions[:count].T
        return np.pad(found, ((0, 0), (0, count - found.shape[1])))

    def turn(self, vectors: Array, count: int = 2) -> Array:
        """The same for directions, which have no place: nothing is subtracted. (n, count)"""
        found = vectors @ self.directions[:count].T
        return np.pad(found, ((0, 0), (0, count - found.shape[1])))

    def share(self, count: int) -> float:
        """The share of the variance in the first components."""
        return float(self.explained[:count].sum())

    def draw_points(self, label: str, vectors: Array, colour: int, **how: Any) -> Points:
        """Vectors (n, features) as marks in the first two components."""
        x, y = self.project(vectors).T
        return Points(label, to_floats(x), to_floats(y), colour, **how)

    def draw_panel(self, title: str, marks: Sequence[Mark]) -> Panel:
        """Marks in the plane of the first two components."""
        return Panel(title, self.label(0), self.label(1), tuple(marks), square=True)

    def label(self, number: int) -> str:
        """An axis title with its share: PC 1 (62 %)."""
        share = self.explained[number] if number < len(self.explained) else 0.0
        return f"PC {number + 1} ({share:.0%})"


def softmax(scores: Array) -> Array:
    """Over the last axis."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def stack_padded(rows: Sequence[Array]) -> Array:
    """Arrays of which some may be shorter as one, NaN where one has nothing. (row, …)"""
    shape = tuple(np.max([row.shape for row in rows], axis=0))
    values = np.full((len(rows), *shape), np.nan)
    for number, row in enumerate(rows):
        values[number][tuple(slice(size) for size in row.shape)] = row
    return values


def mean_finite(rows: Sequence[Array]) -> Array:
    """The mean over seeds of what is a number, NaN where nothing is; some may be shorter."""
    values = stack_padded(rows)
    finite = np.isfinite(values)
    counts = finite.sum(axis=0)
    sums = np.where(finite, values, 0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def take_path(components: Components) -> Array:
    """μ over the steps that occurred. (step, features)"""
    return components.temporal[: components.steps]


def rank_frequent(counts: Array, least: float = 1) -> list[int]:
    """The places of what was counted `least` times or more, the most frequent first."""
    order = np.argsort(-counts, kind="stable")
    return [int(place) for place in order if counts[place] >= least]


def cosines(a: Array, b: Array) -> Array:
    """Cosines between all rows of two matrices. (n, features), (m, features) -> (n, m)"""
    tiny = np.finfo(float).tiny
    a = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), tiny)
    b = b / np.maximum(np.linalg.norm(b, axis=1, keepdims=True), tiny)
    return np.asarray(a @ b.T)


def rank(values: Array) -> Array:
    """Ranks, ties by the mean, for a rank correlation."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(middle[inverse])


def correlation(a: Array, b: Array) -> float:
    """Pearson's correlation; 0 where one side does not vary."""
    x, y = np.asarray(a), np.asarray(b)
    if x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's correlation; 0 where one side does not vary."""
    return correlation(rank(np.asarray(a)), rank(np.asarray(b)))
