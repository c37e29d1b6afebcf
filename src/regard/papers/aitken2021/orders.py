"""aitken2021, section 3: one-to-one translation in another order, and sorting (Fig. 2g, h)."""

from __future__ import annotations

import numpy as np

from regard.display import Figure, Table
from regard.instruments._geometry import rank_correlation
from regard.instruments.components import breakdown, trajectories
from regard.instruments.components._terms import TERMS
from regard.instruments.components.trajectories import Trajectories
from regard.papers.aitken2021._attention import (
    ALL_PAIRS,
    REACH,
    WORDS,
    correlate_order,
    draw_terms,
    record_runs,
    share_right,
)
from regard.papers.aitken2021.one_to_one import plan_one_to_one
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import (
    CHANGE,
    SHARE,
    join_figures,
    measure_each,
    plan_seeds,
    read_share,
)
from regard.runs import RunConfig


@EXPERIMENTS.register("aitken2021/reversed")
class ReversedExperiment(Experiment):
    """The same with the output turned round."""

    title = "One-to-one with the output reversed"
    about = (
        "The only change is expected in one trajectory, which runs backwards (Fig. 2g). AO gets"
        " phrases of one length: nothing tells its decoder how long the source is, so that with"
        " lengths 15 to 19 it cannot know where to begin (word accuracy .6)."
    )
    claims = ("ait.reversed",)

    def plan(self, scale: Scale) -> Plan:
        """AED on phrases of all lengths, AO on phrases of one."""
        short = {} if scale == "full" else {"updates": 1200}
        return {
            "aed": plan_one_to_one("aed", scale, reversed=True, **short),
            "ao": plan_one_to_one("ao", scale, reversed=True, shortest=17, longest=17, **short),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The direction of the temporal alignment."""
        seen = {model: record_runs(runs[model]) for model in runs}
        path = {model: trajectories(seen[model], reach=REACH) for model in runs}
        own: Measures = {}
        for model in runs:
            own[f"accuracy_{model}"] = read_share(runs[model], WORDS)
            own[f"direction_{model}"] = measure_each(path[model].seeds, correlate_path, CHANGE)
            own[f"follows_{model}"] = measure_each(seen[model], correlate_order, CHANGE)
            own[f"exact_{model}"] = measure_each(seen[model], share_right, SHARE)
        figure = join_figures(
            "ait-reversed",
            "Temporal components with a reversed output (Fig. 2g): one trajectory runs backwards.",
            {model.upper(): path[model].figure() for model in runs},
        )
        return Findings.of({"ait.reversed": own}, Table.of("Reversed output", own), figure)


def correlate_path(path: Trajectories) -> float:
    """Rank correlation of decoder step and best source step, without the end token's step."""
    best = path.best[:-1]
    return rank_correlation(np.arange(len(best)), best)


def plan_sorting(scale: Scale) -> list[RunConfig]:
    """AED on sorting; quick ones train for less time."""
    return plan_seeds(scale, "sorting", "aed", **({"updates": 1500} if scale == "quick" else {}))


@EXPERIMENTS.register("aitken2021/sorting")
class SortingExperiment(Experiment):
    """A task whose attention is another for every sample."""

    title = "Sorting letters"
    about = (
        "Where position says nothing about what to attend to, time should say little and the"
        " decoder's delta should find the input (Fig. 2h)."
    )
    claims = ("ait.sorting",)

    def plan(self, scale: Scale) -> Plan:
        """AED; AO does not learn it, see docs/results."""
        return {"aed": plan_sorting(scale)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The nine terms, and which of them alone makes the attention."""
        seen = record_runs(runs["aed"])
        found = breakdown(seen)
        shares = {name.replace("-", "_"): value for name, value in found.estimates().items()}
        own: Measures = {**shares, "accuracy": read_share(runs["aed"], WORDS)}
        own["attention"] = measure_each(seen, share_right, SHARE)
        largest = max(TERMS, key=lambda name: found.shares[name])
        return Findings.of(
            {"ait.sorting": own},
            found.table(),
            Figure.of(
                "ait-sorting",
                "Attention of one sample from all terms and from single ones (Fig. 2h).",
                draw_terms(seen[0], 0, "All terms", *ALL_PAIRS),
                draw_terms(seen[0], 0, "μ·μ alone", ("temporal", "temporal")),
                draw_terms(seen[0], 0, "χ of decoder · Δ of encoder", ("input", "delta")),
                draw_terms(seen[0], 0, "Δ of decoder · χ of encoder", ("delta", "input")),
            ),
            found.figure(),
            f"The largest of the nine terms is {largest}: {found.estimates()[largest]}.",
        )
