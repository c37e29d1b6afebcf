"""`probe`: can a linear classifier read a label off the states (baan2019, section 4.1)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Bars, Figure, Panel, Rule
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SHARE, Measured, Result, estimate_over_seeds
from regard.instruments.sources import Recordings
from regard.instruments.units._classifier import Regularisation, fit, inverse_penalty
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


@dataclass(frozen=True)
class Probed(Measured):
    """What one recording's classifiers got right, split by split."""

    quantity: str
    label: str
    classes: tuple[str, ...]
    steps: int
    shares: dict[str, tuple[float, ...]]  # accuracy, training, majority, … -> one per split
    recall: Array  # (class,): the share found of each class's test steps, NaN where there were none
    described = ("quantity", "label", "classes")

    def values(self) -> dict[str, float]:
        """Means over splits; `selectivity` = accuracy − control."""
        found = {name: float(np.mean(values)) for name, values in self.shares.items()}
        if "control" in found:
            found["selectivity"] = found["accuracy"] - found["control"]
        return found


class ProbeResult(Result[Probed]):
    """Accuracies over seeds."""

    within = SHARE
    ranges = {"selectivity": CORRELATION}

    def heading(self) -> str:
        """What was read off what."""
        first = self.first
        title = f"{first.label} from {first.quantity}, {len(first.classes)} classes"
        return f"{title}, {self.over_seeds}"

    def figure(self) -> Figure:
        """Accuracy beside its yardsticks, and class by class."""
        found, first = self.estimates(), self.first
        names = ("accuracy", "training", "control", "majority")
        bars = Bars.of("", {name: found[name] for name in names if name in found})
        recalls = estimate_over_seeds(
            [
                {c: float(r) for c, r in zip(s.classes, s.recall, strict=True) if np.isfinite(r)}
                for s in self.seeds
            ],
            (0.0, 1.0),
        )
        shown = {name: recalls[name] for name in list(recalls)[:SHOWN]}
        panels = [Panel("All steps", "classifier", "share right", (bars,), (0, 1.05))]
        if shown:
            marks = (Bars.of("", shown, 2), Rule("all classes", y=found["accuracy"].mean))
            panels.append(Panel("Class by class", first.label, "share found", marks, (0, 1.05)))
        return Figure(
            "probe",
            f"How often a linear classifier finds the {first.label} in {first.quantity} of steps"
            f" that it did not learn from: {found['accuracy']}.",
            tuple(panels),
        )

    def to_json(self) -> dict[str, Any]:
        """The estimates, and what was read."""
        return {**super().to_json(), "steps": [seed.steps for seed in self.seeds]}


@instrument(
    ProbeResult,
    Recordings(also=ask_for_gates),
    not_sum="A probe is fitted to vectors that are all in memory, at most `limit` of them.",
)
def probe(
    recording: Recording,
    quantity: str = "encoder.states",
    label: Label = "word",
    only: str | None = None,
    C: float = 1.0,
    regularisation: Regularisation = "l2",
    splits: int = 5,
    test_share: float = 0.1,
    by: By = "sample",
    control: bool = True,
    history: int = 0,
    head: int = 0,
    limit: int = LIMIT,
    seed: int = 0,
) -> Probed:
    """How well a linear classifier tells a step's label from a recorded vector.

    `quantity` is a state, a gate, or a site's queries or keys, by its name or by parts of it
    (`decoder.gates.update`). `label` is the `word` of the step, its `position`, its `target` or
    `prediction`, the `source` word of the same number, or the `attended` one, at the recorded
    alignment; only labels that fit the pattern `only`, if given. The classifier is multinomial
    logistic regression, fitted on all but a `test_share` of the samples (`by="step"`: of the
    steps, as in baan2019; `by="distinct"`: of the different vectors), `splits` times. `control`
    adds a task with a random label for every type of step (Hewitt and Liang 2019), a type being
    the last `history` words (0: chosen). At most `limit` steps are read.
    """
    reading = Reading(quantity, label, only, head, limit)
    how = Splitting(splits, test_share, by, seed)
    strength = inverse_penalty(C, regularisation)
    steps = Steps.of(recording, reading)
    copies, types = steps.copies, steps.types(history)
    rng = np.random.default_rng([how.seed, 1])
    shares: dict[str, list[float]] = {}
    right, seen = np.zeros(len(steps.classes)), np.zeros(len(steps.classes))
    for train, test in steps.split(how):
        vectors, labels = steps.vectors, steps.labels
        model = fit(vectors[train], labels[train], strength)
        found = model.predict(vectors[test])
        right += np.bincount(found[found == labels[test]], minlength=len(right))
        seen += np.bincount(labels[test], minlength=len(seen))
        common = np.bincount(labels[train]).argmax()
        numbers = {
            "accuracy": np.mean(found == labels[test]),
            "training": model.accuracy(vectors[train], labels[train]),
            "majority": np.mean(labels[test] == common),
            "repeated": np.isin(copies[test], copies[train]).mean(),
        }
        if control:
            drawn = rng.choice(labels, types.max() + 1)[types]
            other = fit(vectors[train], drawn[train], strength)
            numbers["control"] = other.accuracy(vectors[test], drawn[test])
            numbers["control known"] = np.isin(types[test], types[train]).mean()
        for name, value in numbers.items():
            shares.setdefault(name, []).append(float(value))
    return Probed(
        steps.quantity,
        reading.label,
        steps.classes,
        len(steps),
        {name: tuple(values) for name, values in shares.items()},
        np.divide(right, seen, out=np.full(len(seen), np.nan), where=seen > 0),
    )
