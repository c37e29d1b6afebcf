"""`polarity`: are units that one gate favours shunned by the other (baan2019, section 3.2)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.display import Figure, Panel, Points, Rule
from regard.errors import RegardError
from regard.instruments._geometry import correlation, rank_correlation
from regard.instruments._settings import Share
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SHARE, Measured, Result, to_floats
from regard.instruments.weights._blocks import Blocks, Matrices
from regard.recordings.storage import Array

PAIRS = (("update", "reset"), ("input", "forget"))  # GRU, LSTM
LEAST = 3  # units that a correlation needs
Side = Literal["next", "previous"]
AXIS: dict[str, int] = {"next": 1, "previous": 0}


@dataclass(frozen=True)
class Means:
    """The mean weight of each unit in two gates of one matrix."""

    gates: tuple[str, str]
    first: Array  # (unit,)
    second: Array  # (unit,)
    share: float

    @property
    def strong(self) -> Array:
        """The strongly polar units: the share with the largest |mean| in either gate.

        A mean is counted in root mean squares of its gate, so that neither gate decides alone.
        """
        sizes = [
            np.abs(m) / max(_scale(m), np.finfo(float).tiny) for m in (self.first, self.second)
        ]
        count = max(min(LEAST, len(self.first)), int(np.ceil(self.share * len(self.first))))
        return np.argsort(-np.maximum(*sizes), kind="stable")[:count]

    def values(self) -> dict[str, float]:
        """Correlations over all units and over the strong ones, and how many strong oppose."""
        strong = self.strong
        a, b = self.first[strong], self.second[strong]
        return {
            "pearson": correlation(self.first, self.second),
            "spearman": rank_correlation(self.first, self.second),
            "strong pearson": correlation(a, b),
            "strong spearman": rank_correlation(a, b),
            "opposite": float((a * b < 0).mean()),
        }


@dataclass(frozen=True)
class Polar(Measured):
    """Two gates of every matrix of one model."""

    matrices: dict[str, Means]

    def values(self) -> dict[tuple[str, str], float]:
        """By matrix, `encoder.0.W_hh`, and what is compared."""
        return {
            (name, what): value
            for name, means in self.matrices.items()
            for what, value in means.values().items()
        }


class PolarityResult(Result[Polar]):
    """Correlations over seeds; the figure shows the first."""

    title = "Mean weight per {settings[side]} unit in two gates"
    columns = ("matrix",)
    headers = {
        "pearson": "Pearson",
        "spearman": "Spearman",
        "strong pearson": "strong: Pearson",
        "strong spearman": "strong: Spearman",
        "opposite": "strong: opposite",
    }
    within = CORRELATION
    ranges = {"opposite": SHARE}

    def figure(self) -> Figure:
        """A panel per matrix: one gate's means against the other's."""
        found = self.by_key()
        panels = []
        for name, means in self.first.matrices.items():
            strong = np.isin(np.arange(len(means.first)), means.strong)
            marks = [
                Points(label, to_floats(means.first[kept]), to_floats(means.second[kept]), colour)
                for colour, (label, kept) in enumerate((("units", ~strong), ("strong", strong)))
                if kept.any()
            ]
            r = found.get((name, "pearson"))
            title = f"{name}, r = {r.mean:.2f}" if r else name
            x, y = (f"mean weight, {gate} gate" for gate in means.gates)
            panels.append(Panel(title, x, y, (*marks, Rule("", x=0.0), Rule("", y=0.0))))
        share = next(iter(self.first.matrices.values())).share
        ends = (
            "into each unit"
            if self.settings["side"] == "next"
            else "out of each unit of the layer before"
        )
        return Figure(
            "polarity",
            f"Mean weight {ends} in two gates. Strong: the {share:.0%} of units with the largest"
            " |mean| in either gate, in root mean squares of that gate. r is Pearson's, the mean"
            f" over {self.over_seeds}; the first's units are shown.",
            tuple(panels),
        )


@instrument(PolarityResult, Matrices())
def polarity(
    blocks: Blocks, block: str | None = None, side: Side = "next", share: Share = 0.1
) -> Polar:
    """Mean weight per unit in the update gate against the reset gate, with correlations.

    Of an LSTM, the input gate against the forget gate. `block` is one matrix, such as
    `encoder.0.W_hh`; by default all that have both gates. `side="next"`: means over what comes
    into a unit; `"previous"`: over what goes out of a unit of the layer before. The strong units
    are the `share` with the largest |mean| in either gate, in root mean squares of that gate.
    """
    names = blocks.under(block) if block else list(blocks.arrays)
    matrices = {}
    for gates in PAIRS:
        for name in names:
            matrix, _, gate = name.rpartition(".")
            if gate == gates[0] and f"{matrix}.{gates[1]}" in names:
                one, other = (
                    blocks[f"{matrix}.{which}"].mean(axis=AXIS[side], dtype=np.float64)
                    for which in gates
                )
                matrices[matrix] = Means(gates, one, other, share)
    if not matrices:
        pairs = " or ".join(" and ".join(pair) for pair in PAIRS)
        raise RegardError(
            f"Nothing here has two gates to compare ({pairs}). There is: {', '.join(names)}."
        )
    return Polar(matrices)


def _scale(values: Array) -> float:
    return float(np.sqrt((values**2).mean()))
