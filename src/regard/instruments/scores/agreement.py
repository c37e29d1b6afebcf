"""`agreement`: the attention of some models against that of a first one (snell2021, eq. 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.display import Bars, Figure, Panel
from regard.errors import RegardError
from regard.instruments.registry import instrument
from regard.instruments.result import CORRELATION, SHARE, Measured, Result
from regard.instruments.scores._agreement import TOP, Agreement, agreement
from regard.instruments.scores._scores import Scores
from regard.instruments.sources import Recordings
from regard.recordings.recording import Recording


@dataclass(frozen=True)
class Compared(Measured):
    """One model's attention against the first one's."""

    agreement: Agreement

    def values(self) -> dict[str, float]:
        """A, Â, Kendall's τ where there is one, and how many rows were compared."""
        found = self.agreement
        named = {
            "agreement": float(found),
            "shuffled": found.shuffled,
            "kendall": found.kendall,
            "rows": float(found.rows),
        }
        return {name: value for name, value in named.items() if np.isfinite(value)}

    def about(self) -> dict[str, Any]:
        """The share of positions that counts as the best."""
        return {"top": self.agreement.top}


class AgreementResult(Result[Compared]):
    """A, Â and τ over the models that were compared with the first."""

    within = SHARE
    ranges = {"kendall": CORRELATION, "rows": None}

    def figure(self) -> Figure:
        """Bars: the mean over comparisons, then each comparison beside its chance level."""
        found = self.estimates()
        means = Bars.of("", {name: found[name] for name in found if name != "rows"})
        names = tuple(f"model {number}" for number in range(2, self.n + 2))
        ours = tuple(float(seed.agreement) for seed in self.seeds)
        chance = tuple(seed.agreement.shuffled for seed in self.seeds)
        top = self.first.agreement.top
        return Figure(
            "agreement",
            f"How often the best attended position of the first model is among the best {top:.0%}"
            f" of another's; shuffled is chance. {self.n} other models.",
            (
                Panel("Agreement with the first model", "measure", "share of rows, or τ", (means,)),
                Panel(
                    "One by one",
                    "compared with the first",
                    "share of rows",
                    (Bars("agreement", names, ours), Bars("shuffled", names, chance, colour=7)),
                    (0, 1.05),
                ),
            ),
        )


@instrument(
    AgreementResult,
    Recordings(compares=True),
    at_once=True,
    not_sum="Its level of chance shuffles the rows of all samples by one stream of numbers.",
)
def agreements(
    recordings: Sequence[Recording],
    top: float = TOP,
    site: str | None = None,
    head: int | None = None,
    seed: int = 0,
    layer: int | None = None,
) -> tuple[Compared, ...]:
    """How well the attention of further recordings agrees with that of the first.

    u is the first recording's α, v that of each other one, of the same phrases; `head` takes one
    head instead of their mean. Steps that only one of two models took are left out: record with
    `inputs="teacher"` to have the same steps in all.
    """
    if len(recordings) < 2:
        raise RegardError(
            "Agreement is between two models and more: give another run or recording, on the"
            " command line with --with."
        )
    for number, other in enumerate(recordings[1:], start=2):
        check_same_phrases(recordings[0], other, number)
    first, *others = (Scores.of_attention(recording, site, head, layer) for recording in recordings)
    return tuple(_compare(first, other, top, seed) for other in others)


def _compare(first: Scores, other: Scores, top: float, seed: int) -> Compared:
    steps = min(first.values.shape[1], other.values.shape[1])
    u, v = (Scores(s.values[:, :steps], s.mask[:, :steps]) for s in (first, other))
    return Compared(agreement(u.matching(v.mask), v.matching(u.mask), top, seed=seed))


def check_same_phrases(first: Recording, other: Recording, number: int = 2) -> None:
    """Positions of other phrases have nothing to do with each other."""
    same = first.shape("encoder.words") == other.shape("encoder.words") and all(
        np.array_equal(first[name], other[name]) for name in ("encoder.words", "encoder.mask")
    )
    if not same:
        raise RegardError(
            f"Recording {number} is of other phrases than the first, so their positions do not"
            " correspond. Record both with the same task, split, n and seed."
        )
