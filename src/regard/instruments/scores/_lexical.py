"""What the two lexical probes share: β, its numbers, and its picture (snell2021, 2.2 to 2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regard.display import Figure
from regard.instruments.result import CORRELATION, SHARE, Measured, Result
from regard.instruments.scores._picture import draw_scores
from regard.instruments.scores._scores import Scores


@dataclass(frozen=True)
class Probed(Measured):
    """β of one model beside something to compare it with."""

    scores: Scores  # log β
    beside: Scores | None  # α, or what was asked to be compared
    words: tuple[list[str], list[str]]
    found: dict[str, float]

    def values(self) -> dict[str, float]:
        """Mean β, and agreements."""
        return self.found

    @property
    def beta(self) -> Scores:
        """β itself."""
        return Scores(np.exp(self.scores.values) * self.scores.mask, self.scores.mask)


@dataclass(frozen=True)
class ProbeOfWords(Result[Probed]):
    """A lexical probe over seeds; the figure shows the first's first sentence."""

    shown: ClassVar[str]
    compared: ClassVar[str]
    within = SHARE
    ranges = {"Kendall τ of α and β": CORRELATION, "Kendall τ of β and β^px": CORRELATION}

    def figure(self) -> Figure:
        """β for one sentence, and what it is compared with."""
        panels = {self.shown: self.first.beta}
        if self.first.beside is not None:
            panels[self.compared] = self.first.beside
        return draw_scores(
            self.name,
            "Probability of each target word if all attention were at one source word, for one"
            f" sentence. {self.over_seeds}; the first is shown.",
            panels,
            self.first.words,
        )


def describe_beta(scores: Scores) -> dict[str, float]:
    """Mean β, and mean β at each target word's best position."""
    rows, mask = scores.rows()
    beta = np.where(mask, np.exp(rows), 0.0)
    return {
        "mean β": float(beta.sum() / max(int(mask.sum()), 1)),
        "mean of the highest β": float(beta.max(axis=1).mean()),
    }
