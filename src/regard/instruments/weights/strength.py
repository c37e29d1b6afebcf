"""`strength`: are the units of a functional group the strongly connected ones (baan2019, 4.1)?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import comb
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from torch import Tensor

from regard.display import Bars, Figure, Line, Panel, Points, Span
from regard.errors import RegardError
from regard.instruments._settings import Positive, Share
from regard.instruments.registry import instrument
from regard.instruments.result import SHARE, Key, Measured, Range, Result, to_floats
from regard.instruments.sources import Models, record_of_subject
from regard.instruments.units._steps import (
    By,
    Label,
    Reading,
    Splitting,
    ask_for_gates,
    find_quantity,
)
from regard.instruments.units.groups import Group, Grouped, Ranking, find_groups
from regard.instruments.weights._unit_strengths import Norm, Way, strongest, unit_strengths
from regard.models.seq2seq import Seq2Seq
from regard.recordings.record import record
from regard.recordings.recording import as_array
from regard.recordings.storage import Array
from regard.runs import Run
from regard.subjects.subject import Subject


@dataclass(frozen=True)
class Strength(Measured):
    """How strong each unit of one model is, and which are in its groups."""

    strengths: Array  # (unit,)
    top: float
    found: Grouped

    def about(self) -> dict[str, Any]:
        """What the groups are of."""
        return {"quantity": self.found.quantity, "label": self.found.label}

    @property
    def groups(self) -> tuple[Group, ...]:
        """One per split."""
        return next(iter(self.found.groups.values()))

    @property
    def strong(self) -> frozenset[int]:
        """The `top` share of the units."""
        return frozenset(int(unit) for unit in strongest(self.strengths, self.top))

    def values(self) -> dict[str, float]:
        """Means over splits; of the p-values the median."""
        every, strong = len(self.strengths), len(self.strong)
        found = [(len(self.strong & set(g.units)), len(g.units)) for g in self.groups]
        tails = [hypergeometric_tail(hits, size, strong, every) for hits, size in found]
        place = np.argsort(np.argsort(self.strengths)) / max(every - 1, 1)
        return {
            "share": float(np.mean([hits / size for hits, size in found])),
            "chance": strong / every,
            "p": float(np.median(tails)),
            "mean rank": float(np.mean([place[list(g.units)].mean() for g in self.groups])),
            "units": float(np.mean([size for _, size in found])),
        }


class StrengthResult(Result[Strength]):
    """Shares over seeds."""

    within = SHARE

    def bounds(self, key: Key) -> Range:
        """All but the number of units lie between 0 and 1."""
        return (1.0, float(len(self.first.strengths))) if key == "units" else SHARE

    def figure(self) -> Figure:
        """All units of the first seed by strength; those in a group stand out."""
        seed, found = self.first, self.estimates()
        order = np.argsort(-seed.strengths, kind="stable")
        sizes, place = seed.strengths[order], np.argsort(order, kind="stable")
        often = Counter(unit for group in seed.groups for unit in group.units)
        every, some = (
            [u for u, n in often.items() if (n == len(seed.groups)) == always]
            for always in (True, False)
        )
        marks: list[Line | Points | Span] = [
            Line("", to_floats(range(1, len(sizes) + 1)), to_floats(sizes), colour=7)
        ]
        for label, units, colour in (
            ("in the groups of all splits", every, 1),
            ("in some splits' groups", some, 0),
        ):
            if units:
                at = place[units]
                marks.append(
                    Points(label, to_floats(at + 1), to_floats(sizes[at]), colour, size=1.6)
                )
        marks.append(Span(f"strongest {seed.top:.0%}", 0.5, len(seed.strong) + 0.5))
        bars = Bars.of("", {"groups": found["share"], "chance": found["chance"]})
        amount = "root mean square weight" if self.settings["norm"] == "l2" else "mean |weight|"
        return Figure(
            "strength",
            f"Units of {seed.found.quantity} by the size of their weights, strongest first,"
            f" and those of the groups for {seed.found.label}. Share of a group among the strongest"
            f" {seed.top:.0%}: {found['share']}; {self.over_seeds}, the first is shown.",
            (
                Panel("Units by strength", "rank of the unit", amount, tuple(marks)),
                Panel(f"Among the strongest {seed.top:.0%}", "units", "share", (bars,), (0, 1.05)),
            ),
        )


@instrument(StrengthResult, Models())
def strength(
    run: Run | Subject,
    quantity: str = "encoder.states",
    label: Label = "word",
    only: str | None = None,
    top: Annotated[Share, Field(lt=1)] = 0.05,
    weights: Way = "both",
    norm: Norm = "mean",
    ranking: Ranking = "aggregate",
    share: Share = 0.95,
    C: Positive = 1.0,
    splits: int = 5,
    test_share: float = 0.1,
    by: By = "sample",
    n: int = 1000,
    split: str | None = None,
    seed: int = 0,
    checkpoint: str | int = "reported",
    pairs: Any = None,
) -> Strength:
    """The share of a functional group's units among the `top` most strongly connected ones.

    `n` samples (or those of a `split`) are recorded, and `groups` finds the units. A unit's
    strength is the mean size of its `weights`: incoming (`in`), outgoing (`out`), or the mean of
    `both`. `chance` is what any units would reach, and `p` how likely as many are by chance
    (hypergeometric, the median over splits). Takes runs, and subjects with `pairs`, because
    recordings hold no weights.
    """
    if ranking == "both":
        raise RegardError("strength takes one ranking: aggregate or first-class.")
    reading, how = Reading(quantity, label, only), Splitting(splits, test_share, by, seed)
    also = ask_for_gates({"quantity": quantity})
    if isinstance(run, Subject):
        given = {} if pairs is None else {"pairs": pairs}
        recording, model = record_of_subject(run, also, given).compact, run.model
        find_weights(model, find_quantity(recording, quantity))  # before the long way
    else:
        recording = record(run, n=n, also=also, split=split, checkpoint=checkpoint)
        model = run.model(checkpoint)
    found = find_groups(recording, reading, how, C, ranking, share)
    sizes = [
        unit_strengths(as_array(ih), as_array(hh), weights, norm)
        for ih, hh in find_weights(model, found.quantity)
    ]
    if sum(map(len, sizes)) != found.width:
        raise RegardError(
            f"'{found.quantity}' has {found.width} units, the cells that make it"
            f" {sum(map(len, sizes))}: its units are not those of a cell."
        )
    return Strength(np.concatenate(sizes), top, found)


def find_weights(model: Seq2Seq, quantity: str) -> list[tuple[Tensor, Tensor]]:
    """W_ih and W_hh of the cells whose units a state or gate has; two where both ways are read."""
    found = model.unit_weights(quantity)
    if not found:
        raise RegardError(
            f"'{quantity}' is not a state or gate of a recurrent cell, so its units have no"
            " weights to compare."
        )
    return found


def hypergeometric_tail(hits: int, drawn: int, strong: int, every: int) -> float:
    """P(at least `hits` of `drawn` units are among the `strong` of `every` one), by chance."""
    ways = sum(
        comb(strong, k) * comb(every - strong, drawn - k)
        for k in range(hits, min(drawn, strong) + 1)
    )
    return ways / comb(every, drawn)
