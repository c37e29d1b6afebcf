"""What a probe reads off single steps: the classifier of `probe`, learnt once and asked again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from regard.instruments.units._classifier import Linear, fit
from regard.instruments.units._steps import Label, Reading, Splitting, Steps
from regard.recordings.recording import Recording
from regard.recordings.storage import Array


@dataclass(frozen=True)
class StepReader:
    """A linear classifier of recorded vectors, and how good it is on samples it did not see."""

    classifier: Linear
    classes: tuple[str, ...]
    accuracy: float
    steps: int

    def read(self, vectors: Array) -> list[str]:
        """The label of each vector. (step, unit)"""
        return [self.classes[int(number)] for number in self.classifier.predict(vectors)]


def learn_to_read(recording: Recording, quantity: str, label: str, seed: int = 0) -> StepReader:
    """Learn on nine tenths of the samples, as `probe` does at its first split; test on the rest."""
    steps = Steps.of(recording, Reading(quantity, cast(Label, label)))
    train, test = next(steps.split(Splitting(seed=seed)))
    classifier = fit(steps.vectors[train], steps.labels[train], 1.0)
    accuracy = classifier.accuracy(steps.vectors[test], steps.labels[test])
    return StepReader(classifier, steps.classes, accuracy, len(steps))
