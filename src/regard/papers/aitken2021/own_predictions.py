"""aitken2021, section 3 again: AED that comes to be fed its own predictions (Fig. 2a)."""

from __future__ import annotations

from collections.abc import Sequence

from regard.display import Figure, Table
from regard.instruments.components import breakdown, trajectories, word_clouds
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.aitken2021.one_to_one import OF_PATHS, plan_one_to_one
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import join_figures, read_share
from regard.runs import Run

# What the decoder is fed in training. The teacher's words at first, then the model's own: the best
# of three on another seed (docs/recipes.md). Its own throughout is the authors' way.
FED: dict[str, dict[str, object]] = {
    "aed": {"forcing": "scheduled", "schedule": "exponential"},
    "aed throughout": {"forcing": "never"},
}
ROWS = {
    "aed": ("ait.temporal-aed-own", "ait.pcs-own"),
    "aed throughout": ("ait.temporal-aed-throughout", "ait.pcs-throughout"),
}


@EXPERIMENTS.register("aitken2021/own-predictions")
class OwnPredictionsExperiment(Experiment):
    """The circles of Fig. 2a."""

    title = "AED on its own predictions"
    about = (
        "The authors feed the decoder its own predictions throughout training; the rows on"
        " one-to-one translation feed the teacher's words. What own predictions make of the"
        " temporal components of AED, from the first update on, and when they take the teacher's"
        " place little by little."
    )
    claims = tuple(claim for claims in ROWS.values() for claim in claims)

    def plan(self, scale: Scale) -> Plan:
        """AED, everything but its inputs as in the experiment above."""
        return {name: plan_one_to_one("aed", scale, **recipe) for name, recipe in FED.items()}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Paths of μ, and how many axes they need."""
        found = {name: _measure_paths(runs[name]) for name in FED}
        measures = {
            claim: own
            for name, claims in ROWS.items()
            for claim, own in zip(claims, found[name][0], strict=True)
        }
        names = dict(zip(FED, ("own at the end", "own throughout"), strict=True))
        table = Table.of_columns(
            "AED on one-to-one, by what the decoder is fed in training",
            "what",
            {names[name]: shown for name, (_, shown, _) in found.items()},
        )
        figures = {names[name]: figure for name, (_, _, figure) in found.items()}
        return Findings.of(
            measures,
            table,
            join_figures(
                "ait-own-predictions",
                "AED that is fed its own predictions in training."
                f" {next(iter(figures.values())).caption}",
                figures,
            ),
        )


def _measure_paths(runs: Sequence[Run]) -> tuple[tuple[Measures, Measures], Measures, Figure]:
    """For the row on turns and that on axes; for the table; and the paths drawn."""
    seen = record_runs(runs)
    path, cloud = trajectories(seen), word_clouds(seen)
    ways, accuracy = path.estimates(), read_share(runs, WORDS)
    turning = {name: ways[name] for name in ("diagonal", "direction", "turns", "adjacent")}
    axes = {
        "temporal_3_aed": ways["explained 3"],
        "input_2_aed": cloud.estimates()["explained 2"],
    }
    time = breakdown(seen).estimates()["temporal-temporal"]
    shown = {"word accuracy": accuracy, "μ·μ": time} | {name: ways[name] for name in OF_PATHS}
    judged = turning | {"accuracy": accuracy}, axes | {"accuracy": accuracy}
    return judged, shown, path.figure()
