"""What the two lexical probes share: β and its numbers (snell2021, 2.2 to 2.4)."""

from __future__ import annotations

import numpy as np

from regard.instruments.result import CORRELATION, SHARE
from regard.instruments.scores._picture import Pictured, PicturedResult
from regard.instruments.scores._scores import Scores


class Probed(Pictured):
    """log β of one model beside something to compare it with."""

    @property
    def beta(self) -> Scores:
        """β itself."""
        return Scores(np.exp(self.scores.values) * self.scores.mask, self.scores.mask)

    drawn = beta


class ProbeOfWords(PicturedResult[Probed]):
    """A lexical probe over seeds."""

    caption = (
        "Probability of each target word if all attention were at one source word, for one"
        " sentence."
    )
    within = SHARE
    ranges = {"Kendall τ of α and β": CORRELATION, "Kendall τ of β and β^px": CORRELATION}


def describe_beta(scores: Scores) -> dict[str, float]:
    """Mean β, and mean β at each target word's best position."""
    rows, mask = scores.rows()
    beta = np.where(mask, np.exp(rows), 0.0)
    return {
        "mean β": float(beta.sum() / max(int(mask.sum()), 1)),
        "mean of the highest β": float(beta.max(axis=1).mean()),
    }
