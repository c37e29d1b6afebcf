"""Does a component's share of the alignment (aitken2021) predict what its removal costs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from regard.display import Figure, Panel, Points, Table
from regard.instruments._geometry import rank_correlation
from regard.instruments.components import breakdown
from regard.instruments.components._terms import PARTS
from regard.instruments.components.breakdown import Shares
from regard.instruments.interventions import ablate
from regard.instruments.interventions.ablate import Ablated
from regard.papers.aitken2021._attention import record_runs
from regard.papers.aitken2021.escan import plan_escan
from regard.papers.aitken2021.one_to_one import plan_one_to_one
from regard.papers.aitken2021.translation import MODELS, WithCorpus
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, plan_seeds
from regard.runs import Run
from regard.statistics import Estimate

SIDES = ("queries", "keys")
SAMPLES = {"quick": 300, "full": 1000}
Point = tuple[float, float]  # share of the alignment, accuracy lost


@EXPERIMENTS.register("across/shares-predict")
class SharesPredictExperiment(WithCorpus):
    """Shares against losses, over every condition of aitken2021 that attends."""

    title = "Do shares predict what a removal costs?"
    about = (
        "In each model, μ, χ and Δ of the queries and of the keys: six components with the share"
        " of the alignment that they have a part in, and the word accuracy that is lost when they"
        " are removed. One rank correlation per seed, over all tasks and architectures."
    )
    claims = ("x.shares-predict",)

    def plan(self, scale: Scale) -> Plan:
        """The runs of other experiments, for nothing."""
        short = {"updates": 1500} if scale == "quick" else {}
        return {
            **{f"one-to-one {model}": plan_one_to_one(model, scale) for model in MODELS},
            **{f"escan {model}": plan_escan(model, scale) for model in MODELS},
            "sorting aed": plan_seeds(count_seeds(scale), "sorting", "aed", **short),
            **self.plan_translations(scale),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """One correlation per seed, over all conditions and within each."""
        points = {name: measure_points(runs[name], SAMPLES[scale]) for name in runs}
        seeds = range(count_seeds(scale))
        own: Measures = {
            "correlation": correlate([[p for name in runs for p in points[name][s]] for s in seeds])
        }
        for name in runs:
            own[f"within_{name.replace('-', '_').replace(' ', '_')}"] = correlate(points[name])
        figure = draw_points(points)
        table = Table.of("Rank correlation of share and loss", own)
        return Findings({"x.shares-predict": own}, (table,), (figure,), (self.name_corpus(scale),))


def measure_points(runs: Sequence[Run], n: int) -> list[list[Point]]:
    """Six points for each run."""
    found = breakdown(record_runs(runs, n)).seeds
    return [
        list_points(shares, ablated)
        for shares, ablated in zip(found, ablate(runs, n=n, checkpoint="last").seeds, strict=True)
    ]


def list_points(shares: Shares, ablated: Ablated) -> list[Point]:
    """For each part of queries and keys: the sum of its three terms, and the accuracy lost."""
    table = shares.absolute.reshape(len(PARTS), len(PARTS))  # (part of query, part of key)
    sums = {"queries": table.sum(axis=1), "keys": table.sum(axis=0)}
    return [
        (float(sums[side][k]), ablated.baseline - ablated.accuracy["remove", part, side])
        for side in SIDES
        for k, part in enumerate(PARTS)
    ]


def correlate(seeds: Sequence[Sequence[Point]]) -> Estimate:
    """Rank correlation of share and loss, seed by seed."""
    tables = (np.array(points) for points in seeds)  # (component, 2)
    found = (rank_correlation(table[:, 0], table[:, 1]) for table in tables)
    return Estimate.of(found, (-1.0, 1.0))


def draw_points(points: Mapping[str, Sequence[Sequence[Point]]]) -> Figure:
    """A point per component and run, a colour per condition."""
    marks = []
    for colour, (name, seeds) in enumerate(points.items()):
        flat = [point for seed in seeds for point in seed]
        x, y = (tuple(values) for values in zip(*flat, strict=True))
        marks.append(Points(name, x, y, colour))
    axes = "share of the alignment", "word accuracy lost"
    return Figure(
        "x-shares-predict",
        "What the removal of a component costs, against its share: μ, χ and Δ of queries and keys"
        " of every run.",
        (Panel("Shares and losses", *axes, tuple(marks)),),
    )
