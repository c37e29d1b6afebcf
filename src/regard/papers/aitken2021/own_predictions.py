"""aitken2021, section 3 again: AED that comes to be fed its own predictions (Fig. 2a)."""

from __future__ import annotations

from regard.display import Figure, Table
from regard.instruments.components import breakdown, trajectories, word_clouds
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.aitken2021.one_to_one import OF_PATHS, plan_one_to_one
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import read_share

# The teacher's words at first, then the model's own, while the rate is still high: the best of
# three that were looked for on another seed (docs/recipes.md).
RECIPE: dict[str, object] = {"forcing": "scheduled", "schedule": "exponential"}


@EXPERIMENTS.register("aitken2021/own-predictions")
class OwnPredictionsExperiment(Experiment):
    """The circles of Fig. 2a."""

    title = "AED on its own predictions"
    about = (
        "The authors feed the decoder its own predictions throughout training, which is not stable"
        " with their l2 term here. Teacher's words at first and own predictions later are: what"
        " that makes of the temporal components of AED on one-to-one translation."
    )
    claims = ("ait.temporal-aed-own", "ait.pcs-own")

    def plan(self, scale: Scale) -> Plan:
        """AED, everything but its inputs as in the experiment above."""
        return {"aed": plan_one_to_one("aed", scale, **RECIPE)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Paths of μ, and how many axes they need."""
        seen = record_runs(runs["aed"])
        path, cloud = trajectories(seen), word_clouds(seen)
        ways, accuracy = path.estimates(), read_share(runs["aed"], WORDS)
        turning: Measures = {
            name: ways[name] for name in ("diagonal", "direction", "turns", "adjacent")
        }
        axes: Measures = {
            "temporal_3_aed": ways["explained 3"],
            "input_2_aed": cloud.estimates()["explained 2"],
        }
        time = breakdown(seen).estimates()["temporal-temporal"]
        shown = {"word accuracy": accuracy, "μ·μ": time} | {name: ways[name] for name in OF_PATHS}
        return Findings.of(
            {
                "ait.temporal-aed-own": turning | {"accuracy": accuracy},
                "ait.pcs-own": axes | {"accuracy": accuracy},
            },
            Table.of("AED on one-to-one, fed its own predictions at the end", shown),
            Figure.of(
                "ait-own-predictions",
                f"AED that came to be fed its own predictions. {path.figure().caption}",
                *path.figure().panels,
            ),
        )
