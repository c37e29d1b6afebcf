"""`groups`: how few units hold what a probe reads (baan2019, section 4.1, Tables 2 and 3)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from regard.display import Bars, Figure, Line, Panel, Points, Rule
from regard.instruments._settings import Share
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Key, Measured, Range, Result, to_floats
from regard.instruments.sources import Recordings
from regard.instruments.units._classifier import (
    Growing,
    Linear,
    Regularisation,
    fit,
    inverse_penalty,
)
from regard.instruments.units._steps import (
    LIMIT,
    By,
    Label,
    Reading,
    Splitting,
    Steps,
    ask_for_gates,
)
from regard.recordings.recording import Recording
from regard.recordings.storage import Array

SHOWN = 16
# A fit whose accuracy is this far below what is asked for need not be exact to say so.
FAR, ROUGH = 0.05, 1e-3
Ranking = Literal["aggregate", "first-class", "both"]


@dataclass(frozen=True)
class Group:
    """The units of one split, in the order in which they came, and what they achieve."""

    units: tuple[int, ...]
    accuracies: tuple[float, ...]  # with the first unit, the first two, …
    full: float  # with all units

    @property
    def accuracy(self) -> float:
        """Of the whole group."""
        return self.accuracies[-1]


@dataclass(frozen=True)
class Grouped(Measured):
    """The groups of one recording: per ranking, one per split."""

    quantity: str
    label: str
    width: int  # units there are
    share: float  # of the full accuracy that is asked for
    groups: dict[str, tuple[Group, ...]]
    described = ("quantity", "label")

    def values(self) -> dict[tuple[str, str], float]:
        """Means over splits, by ranking."""
        return {
            (ranking, name): value
            for ranking, groups in self.groups.items()
            for name, value in self._average(groups).items()
        }

    def _average(self, groups: Sequence[Group]) -> dict[str, float]:
        sizes = float(np.mean([len(group.units) for group in groups]))
        return {
            "units": sizes,
            "share of units": sizes / self.width,
            "accuracy": float(np.mean([group.accuracy for group in groups])),
            "full accuracy": float(np.mean([group.full for group in groups])),
            "overlap": overlap([group.units for group in groups]),
        }


class GroupsResult(Result[Grouped]):
    """Groups over seeds."""

    title = "Groups for {first.label} in {first.quantity}, {first.width} units"
    columns = ("ranking",)
    headers = {
        "units": "units in the group",
        "accuracy": "its accuracy",
        "full accuracy": "with all units",
    }
    within = SHARE

    def label(self, key: Key) -> str:
        """With two rankings, each with its name before it."""
        return f"{key[0]}: {key[1]}" if len(self.first.groups) > 1 else key[1]

    def bounds(self, key: Key) -> Range:
        """All but the number of units are shares."""
        return (1.0, float(self.first.width)) if key[1] == "units" else SHARE

    def figure(self) -> Figure:
        """Accuracy as the group grows, and which units return; the first seed's."""
        first = self.first
        lines: list[Line | Points | Rule] = []
        for colour, (ranking, groups) in enumerate(first.groups.items()):
            for number, group in enumerate(groups):
                label = f"{ranking}, {len(groups)} splits" if number == 0 else ""
                x = to_floats(range(1, 1 + len(group.units)))
                y = to_floats(a / max(group.full, 1e-9) for a in group.accuracies)
                lines.append(Line("", x, y, colour=colour))
                lines.append(Points(label, x[-1:], y[-1:], colour, size=1.6))
        lines.append(Rule("", y=first.share))
        panels = [
            Panel("The group grows", "units", "accuracy / full accuracy", tuple(lines), (0, 1.08))
        ]
        for colour, (ranking, groups) in enumerate(first.groups.items()):
            often = count_units(groups)[:SHOWN]
            bars = Bars(
                "",
                tuple(f"{unit}" for unit, _ in often),
                to_floats(count for _, count in often),
                colour=colour,
            )
            title = "Which units" if len(first.groups) == 1 else f"Which units, {ranking}"
            top = (0, len(groups) * 1.05)
            panels.append(Panel(title, "unit", f"groups of {len(groups)}", (bars,), top))
        sizes = {key: size for key, size in self.by_key().items() if key[1] == "units"}
        means = "; ".join(f"{self.label(key)} {size}" for key, size in sizes.items())
        return Figure(
            "groups",
            f"Units added by their weight until a classifier of {first.label} on {first.quantity}"
            f" has {first.share:.0%} of the accuracy that it has with all {first.width} (dotted)."
            f" Mean over splits: {means}; {self.over_seeds}, the first is shown.",
            tuple(panels),
        )

    def to_json(self) -> dict[str, Any]:
        """The estimates, and every group's units."""
        units = [
            {ranking: [list(g.units) for g in groups] for ranking, groups in seed.groups.items()}
            for seed in self.seeds
        ]
        return {**super().to_json(), "units of each split": units}


@instrument(
    GroupsResult,
    Recordings(also=ask_for_gates),
    not_sum="Classifiers are fitted to vectors that are all in memory, at most `limit` of them.",
)
def groups(
    recording: Recording,
    quantity: str = "encoder.states",
    label: Label = "word",
    only: str | None = None,
    ranking: Ranking = "aggregate",
    share: Share = 0.95,
    C: float = 1.0,
    regularisation: Regularisation = "l2",
    splits: int = 5,
    test_share: float = 0.1,
    by: By = "sample",
    head: int = 0,
    limit: int = LIMIT,
    seed: int = 0,
) -> Grouped:
    """The fewest units, by their rank, that give a `share` of a probe's accuracy.

    `probe`'s classifier is fitted on all units of the `quantity`, which ranks them: by the norm of
    their weights over classes times their standard deviation (`aggregate`), by the size of the
    weight for the first class alone (`first-class`, as baan2019's program does), or `both` ways.
    Units are added one by one, with a new classifier each time, until its accuracy on the test
    steps reaches `share` of the full one. Other settings as in `probe`.
    """
    reading = Reading(quantity, label, only, head, limit)
    how = Splitting(splits, test_share, by, seed)
    strength = inverse_penalty(C, regularisation)
    return find_groups(recording, reading, how, strength, ranking, share)


def find_groups(
    recording: Recording,
    reading: Reading,
    how: Splitting,
    C: float,
    ranking: Ranking,
    share: float,
) -> Grouped:
    """The groups of one recording."""
    steps = Steps.of(recording, reading)
    names = ("aggregate", "first-class") if ranking == "both" else (ranking,)
    found: dict[str, list[Group]] = {name: [] for name in names}
    for train, test in steps.split(how):
        learnt = steps.vectors[train], steps.labels[train]
        tested = steps.vectors[test], steps.labels[test]
        model = fit(*learnt, C)
        full = model.accuracy(*tested)
        for name in names:
            order = rank_units(model, learnt[0], name)
            found[name].append(grow(*learnt, *tested, order, full, share, C))
    return Grouped(
        steps.quantity,
        reading.label,
        steps.vectors.shape[1],
        share,
        {name: tuple(groups) for name, groups in found.items()},
    )


def rank_units(model: Linear, vectors: Array, ranking: str) -> Array:
    """The units, the weightiest first. (unit,)"""
    weights = model.weights[:, 1:]
    if ranking == "first-class":
        size = np.abs(weights[0])
    else:
        size = np.linalg.norm(weights - weights.mean(axis=0), axis=0) * vectors.std(axis=0)
    return np.argsort(-size, kind="stable")


def grow(
    vectors: Array,
    labels: Array,
    test_vectors: Array,
    test_labels: Array,
    order: Array,
    full: float,
    share: float = 0.95,
    C: float = 1.0,
) -> Group:
    """Add units in an order until a classifier has `share` of the `full` accuracy, or all are in.

    vectors (step, unit), labels (step,), and those of the test.
    """
    growing = Growing(labels, len(order), C)
    accuracies: list[float] = []
    for size, unit in enumerate(order, 1):
        tested = test_vectors[:, order[:size]]
        accuracy = growing.add(vectors[:, unit], ROUGH).accuracy(tested, test_labels)
        if accuracy >= share * full - FAR:
            accuracy = growing.refined().accuracy(tested, test_labels)
        accuracies.append(accuracy)
        if accuracy >= share * full:
            break
    return Group(tuple(int(u) for u in order[: len(accuracies)]), tuple(accuracies), full)


def overlap(groups: Sequence[Sequence[int]]) -> float:
    """The mean over pairs of groups of what they share, of all that they have (Jaccard); 1 of 1."""
    pairs = [(set(a), set(b)) for a, b in combinations(groups, 2)]
    return float(np.mean([len(a & b) / len(a | b) for a, b in pairs])) if pairs else 1.0


def count_units(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """Units and how many of the groups they are in, the most frequent first."""
    units, counts = np.unique([u for group in groups for u in group.units], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(int(units[n]), int(counts[n])) for n in order]
