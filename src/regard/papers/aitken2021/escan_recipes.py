"""aitken2021, section 4 again: eSCAN by recipes that were looked for on other seeds (Fig. 5a)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.display import Table
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.aitken2021.escan import plan_escan, share_at_ends, share_before_twice
from regard.papers.aitken2021.features import COLUMNS, Features, draw_alignments
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import SHARE, measure_each, read_share
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.statistics import Estimate

# By the rule in docs/recipes.md, on seeds 100 and 101.
RECIPES: dict[str, dict[str, object]] = {
    "aed": {"l2": 3e-3},
    "ao": {"learning_rate": 3e-3, "updates": 10_000},
}


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
        places = measure_twice(seen["ao"])
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
            {"ait.solve-escan": solved | places, "ait.breakdown-escan": shares | solved},
            Table(
                "eSCAN by other recipes",
                ("model", "word accuracy", *COLUMNS),
                tuple((model, accuracy[model], *one.row) for model, one in found.items()),
            ),
            Table.of("Words that `twice` decides, AO", places),
            draw_alignments("ait-escan-recipes", found),
        )


def measure_twice(recordings: Sequence[Recording]) -> Measures:
    """How often `twice` decides a word: in all, and where phrases go wrong first.

    It decides the second of two equal words, and the next one. AO's decoder knows its position and
    the word before, and both are the same after the first and after the second of two equal words,
    but for a position that every `and` so far has moved.
    """
    found: Measures = {}
    for name, first in (("steps_at_twice", False), ("first_wrong_at_twice", True)):
        steps = [mark_twice(recording, first) for recording in recordings]
        found[f"{name}_ao"] = Estimate.share(each.mean() for each in steps if len(each))
    return {name: value for name, value in found.items() if value.n}


def mark_twice(recording: Recording, first_wrong: bool) -> Array:
    """Whether `twice` decides the word, for all steps or those at which a phrase goes wrong first.

    -> (step,) bool
    """
    twice = recording.vocabulary("encoder").numbers["twice"]
    found: list[Array] = []
    names = ("alignment", "encoder.words", "predictions", "targets", "decoder.mask")
    for chunk in recording.chunks(names):
        places = np.maximum(chunk["alignment"], 0)
        second = np.take_along_axis(chunk["encoder.words"], places, axis=1) == twice
        second &= chunk["alignment"] >= 0
        decided = second | np.pad(second[:, :-1], ((0, 0), (1, 0)))
        steps = chunk["decoder.mask"]
        if first_wrong:
            wrong = (chunk["predictions"] != chunk["targets"]) & steps
            steps = wrong & (wrong.cumsum(axis=1) == 1)
        found.append(decided[steps])
    return np.concatenate(found)


def _shorten(recipe: dict[str, object], scale: Scale) -> dict[str, object]:
    """At quick scale the number of updates is that of the other experiments on eSCAN."""
    return {k: v for k, v in recipe.items() if scale == "full" or k != "updates"}
