"""`ablate_heads`: what a model loses without one head, for every layer and head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.display import Figure, Panel, Table
from regard.instruments._head_grid import HeadGrid, draw_heads, rank_heads
from regard.instruments.interventions._silencing import Part, Silencer, Where
from regard.instruments.interventions.ablate import Performance, Tried, measure
from regard.instruments.registry import instrument
from regard.instruments.result import Measured, Result, to_floats
from regard.instruments.sources import Models
from regard.runs import Run
from regard.subjects.subject import Subject
from regard.training.evaluation import evaluating


@dataclass(frozen=True)
class WithoutHeads(Measured):
    """What one model does as it is, and what each head is worth to it."""

    baseline: Performance
    lost: HeadGrid  # word accuracy
    cost: HeadGrid  # nats per word
    part: str
    where: str
    described = ("part", "where")

    def values(self) -> dict[tuple[str, ...], float]:
        """By site, head and measure, after the baseline."""
        found: dict[tuple[str, ...], float] = {
            ("as it is", "", "accuracy"): self.baseline.accuracy,
            ("as it is", "", "loss"): self.baseline.loss,
        }
        for name, grid in (("accuracy lost", self.lost), ("loss added", self.cost)):
            found |= {(*key, name): value for key, value in grid.values().items()}
        return found


@dataclass(frozen=True)
class AblateHeadsResult(Result[WithoutHeads]):
    """The losses over seeds."""

    columns = ("site", "head")

    def heading(self) -> str:
        """What is taken out."""
        return f"Without one head{self._said()}, {self.over_seeds}"

    def _said(self) -> str:
        part, where = self.first.part, self.first.where
        return "" if part == "whole" else f"'s {part} component of the {where}"

    def ranked(self, largest: bool = True) -> Table:
        """All heads by the loss that taking them out adds."""
        found: Any = {
            key[:2]: value for key, value in self.by_key().items() if key[2] == "loss added"
        }
        return rank_heads(self.heading(), "loss added", found, largest)

    def figure(self) -> Figure:
        """Layers × heads: accuracy lost, and loss added."""
        panels = [
            Panel(title, "head", "attention", (draw_heads(grids, title),))
            for title, grids in (
                ("accuracy lost", [seed.lost for seed in self.seeds]),
                ("loss added (nats per word)", [seed.cost for seed in self.seeds]),
            )
        ]
        return Figure(
            "ablate_heads",
            f"What is lost without one head{self._said()}, the teacher's words fed."
            f" {self.over_seeds}.",
            tuple(panels),
        )


@instrument(AblateHeadsResult, Models())
def ablate_heads(
    run: Run | Subject,
    part: Part = "whole",
    where: Where = "alignment",
    layer: int | None = None,
    n: int = 1000,
    seed: int = 0,
    checkpoint: str | int = "reported",
    pairs: Any = None,
) -> WithoutHeads:
    """Word accuracy lost and loss added by taking out each head that looks at the source.

    `part="whole"` takes out all that a head mixes; `temporal`, `input` and `delta` subtract μ, χ
    or Δ of its queries, keys, both (`alignment`) or values (`context`), by `where`. `layer` looks
    at one layer. Takes runs, and subjects with `pairs`, because the model runs anew.
    """
    tried = Tried.of(run, pairs, n, seed, checkpoint)
    silencer = Silencer(tried, part, where, layer)
    with evaluating(tried.model) as device:
        batches = [batch.to(device) for batch in tried.batches]
        base = measure(tried.model, batches, {})
        found = {
            site: [
                measure(tried.model, batches, silencer.edits([(site, head)]))
                for head in range(count)
            ]
            for site, count in silencer.heads.items()
        }
    lost = {site: to_floats(base.accuracy - p.accuracy for p in row) for site, row in found.items()}
    cost = {site: to_floats(p.loss - base.loss for p in row) for site, row in found.items()}
    return WithoutHeads(base, HeadGrid.of(lost), HeadGrid.of(cost), part, where)
