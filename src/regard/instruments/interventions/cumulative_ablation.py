"""`cumulative_ablation`: heads taken out one after the other, in the order of a measured share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from regard.display import Figure, Line, Panel, Table
from regard.errors import RegardError, unknown
from regard.instruments._settings import Count
from regard.instruments.components._terms import TERMS
from regard.instruments.components.breakdown import breakdown
from regard.instruments.interventions._silencing import Part, Silencer, Where
from regard.instruments.interventions.ablate import Performance, Tried, measure
from regard.instruments.registry import instrument
from regard.instruments.result import Measured, Result, to_floats
from regard.instruments.sources import Models
from regard.runs import Run
from regard.subjects.subject import Subject
from regard.training.evaluation import evaluating

Head = tuple[str, int]
First = Literal["largest", "smallest"]
ALONE = "loss"  # heads in the order of what each costs alone
ORDERS = ("in order", "reversed", "at random")


@dataclass(frozen=True)
class Curves(Measured):
    """What is left after 0, 1, 2, … heads, in the order of a share, reversed, and at random."""

    by: str
    order: tuple[Head, ...]
    shares: dict[Head, float]
    accuracy: dict[str, tuple[float, ...]]  # order -> after so many heads
    loss: dict[str, tuple[float, ...]]
    described = ("by",)

    def values(self) -> dict[tuple[str, str], float]:
        """By number of heads and order: word accuracy and loss."""
        found: dict[tuple[str, str], float] = {}
        for name, curves in (("accuracy", self.accuracy), ("loss", self.loss)):
            for order, curve in curves.items():
                for count, value in enumerate(curve):
                    found[f"without {count}", f"{name}, {order}"] = value
        return found


@dataclass(frozen=True)
class CumulativeResult(Result[Curves]):
    """Curves over seeds."""

    columns = ("heads",)
    title = "Heads taken out one after the other, by {first.by}"

    def order(self) -> Table:
        """The heads of the first seed in the order in which they were taken out."""
        first = self.first
        rows = tuple(
            (place, site, head, first.shares[site, head])
            for place, (site, head) in enumerate(first.order, start=1)
        )
        return Table(f"Heads by {first.by}", ("place", "site", "head", first.by), rows)

    def figure(self) -> Figure:
        """Accuracy and loss over the number of heads taken out, a line per order."""
        panels = []
        for name, unit in (("accuracy", "word accuracy"), ("loss", "nats per word")):
            lines = []
            for colour, order in enumerate(ORDERS):
                found = self.by_key()
                curve = [
                    found[f"without {k}", f"{name}, {order}"]
                    for k in range(len(self.first.order) + 1)
                ]
                x = to_floats(range(len(curve)))
                lines.append(Line.of(order, x, curve, colour))
            panels.append(Panel(name, "heads taken out", unit, tuple(lines)))
        return Figure(
            "cumulative_ablation",
            f"What is left when heads are taken out one after the other, in the order of their"
            f" {self.first.by}, in the reverse order, and at random. {self.over_seeds}.",
            tuple(panels),
        )


@instrument(CumulativeResult, Models())
def cumulative_ablation(
    run: Run | Subject,
    by: str = "temporal-temporal",
    first: First = "largest",
    part: Part = "whole",
    where: Where = "alignment",
    draws: Count = 3,
    layer: int | None = None,
    n: int = 1000,
    seed: int = 0,
    checkpoint: str | int = "reported",
    pairs: Any = None,
) -> Curves:
    """Accuracy and loss as heads are taken out one after the other, in the order of a share.

    `by` is a term of `breakdown`, whose share orders the heads, or `loss`, what each head costs
    alone; `first` says which end comes first. The reverse order and the mean over `draws` random
    ones say what the order is worth. `part` and `where` as in `ablate_heads`. Takes runs, and
    subjects with `pairs`.
    """
    if by not in (*TERMS, ALONE):
        raise RegardError(unknown("order of heads", by, (*TERMS, ALONE)))
    tried = Tried.of(run, pairs, n, seed, checkpoint)
    silencer = Silencer(tried, part, where, layer)
    with evaluating(tried.model) as device:
        batches = [batch.to(device) for batch in tried.batches]

        def remove(heads: Sequence[Head]) -> Performance:
            return measure(tried.model, batches, silencer.edits(heads))

        shares = {h: remove([h]).loss for h in silencer.every} if by == ALONE else (
            measure_shares(silencer, by)
        )  # fmt: skip
        order = sorted(shares, key=lambda h: shares[h], reverse=first == "largest")
        rng = np.random.default_rng(seed)
        orders = {"in order": [order], "reversed": [order[::-1]], "at random": [
            [order[k] for k in rng.permutation(len(order))] for _ in range(draws)
        ]}  # fmt: skip
        none, every = remove([]), remove(order)
        curves = {
            name: [[none, *(remove(one[:k]) for k in range(1, len(one))), every] for one in several]
            for name, several in orders.items()
        }
    accuracy, loss = (
        {
            name: to_floats(np.mean([[p[field] for p in one] for one in several], axis=0))
            for name, several in curves.items()
        }
        for field in (0, 1)
    )
    return Curves(by, tuple(order), shares, accuracy, loss)


def measure_shares(silencer: Silencer, term: str) -> dict[Head, float]:
    """The share of a term of the alignment in each head; one attention is in memory at a time."""
    found: dict[Head, float] = {}
    for site, count in silencer.heads.items():
        seen = silencer.seen.get(site) or silencer.record(site)
        for head in range(count):
            shares = breakdown.measure(seen, site=site, head=head)
            found[site, head] = shares.values()[term]
    return found
