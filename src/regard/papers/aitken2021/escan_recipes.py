"""aitken2021, section 4 again: eSCAN by recipes that were looked for on other seeds (Fig. 5a)."""

from __future__ import annotations

from regard.display import Table
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.aitken2021.escan import plan_escan, share_at_ends, share_before_twice
from regard.papers.aitken2021.features import COLUMNS, Features, draw_alignments
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import SHARE, measure_each, read_share

# By the rule in docs/recipes.md, on seeds 100 and 101.
RECIPES: dict[str, dict[str, object]] = {"aed": {}, "ao": {}}


@EXPERIMENTS.register("aitken2021/escan-recipes")
class EscanRecipesExperiment(Experiment):
    """Is it the training that keeps AO below 98 % and time below 77 %?"""

    title = "eSCAN by other recipes"
    about = (
        "The rows on eSCAN above rest on recipes that were found on the seeds that count. These"
        " were looked for on two others, by a rule that was written before: the largest share of"
        " μ·μ among the recipes that reach a word accuracy of .98, and where none does, the most"
        " accurate one."
    )
    claims = ("ait.solve-escan", "ait.breakdown-escan")

    def plan(self, scale: Scale) -> Plan:
        """Both architectures with attention."""
        return {
            model: plan_escan(model, scale, **_shorten(recipe, scale))
            for model, recipe in RECIPES.items()
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """How accurate they are, what their alignments consist of, and where they attend."""
        accuracy = {model: read_share(runs[model], WORDS) for model in runs}
        seen = {model: record_runs(group) for model, group in runs.items()}
        found = {model: Features.of(recordings) for model, recordings in seen.items()}
        solved: Measures = {f"accuracy_{model}": value for model, value in accuracy.items()}
        shares: Measures = {
            f"{what}_{model}": value
            for model, one in found.items()
            for what, value in one.measure_alignment().items()
        }
        shares |= {
            f"{what}_{model}": measure_each(seen[model], share, SHARE)
            for model in seen
            for what, share in (("phrase_end", share_at_ends), ("before_twice", share_before_twice))
        }
        return Findings.of(
            {"ait.solve-escan": solved, "ait.breakdown-escan": shares | solved},
            Table(
                "eSCAN by other recipes",
                ("model", "word accuracy", *COLUMNS),
                tuple((model, accuracy[model], *one.row) for model, one in found.items()),
            ),
            draw_alignments("ait-escan-recipes", found),
        )


def _shorten(recipe: dict[str, object], scale: Scale) -> dict[str, object]:
    """At quick scale the number of updates is that of the other experiments on eSCAN."""
    return {k: v for k, v in recipe.items() if scale == "full" or k != "updates"}
