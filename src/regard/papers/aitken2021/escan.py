"""aitken2021, section 4: eSCAN (Fig. 3)."""

from __future__ import annotations

import numpy as np

from regard.display import Figure, Table
from regard.instruments.components import trajectories, word_clouds
from regard.papers.aitken2021._attention import (
    REACH,
    WORDS,
    draw_attention,
    record_runs,
    share_attended,
)
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import SHARE, measure_each, plan_seeds, read_share
from regard.recordings.recording import Chunk, Recording
from regard.recordings.storage import Array
from regard.runs import RunConfig

MODELS = {"aed": "a-c", "ao": "d-f"}  # and their panels of Fig. 3
# The lengths of the authors' program. Its period after every phrase is there for AO, which cannot
# keep count without one (word accuracy .95), and not for AED, whose states would carry whole
# phrases from period to period (μ·μ .66 instead of .76, one seed each).
PHRASES: dict[str, dict[str, object]] = {
    "aed": {"shortest": 10, "longest": 15, "period": False},
    "ao": {"shortest": 10, "longest": 15, "period": True, "updates": 5000},
}


def plan_escan(model: str, scale: Scale, **overrides: object) -> list[RunConfig]:
    """The runs of one architecture; quick ones train for less time."""
    short = {"updates": 1500 if model == "aed" else 2000} if scale == "quick" else {}
    return plan_seeds(scale, "escan", model, **{**PHRASES[model], **short, **overrides})


def plan_without_and(scale: Scale) -> list[RunConfig]:
    """AO where no phrase has an `and`, so that source and target are equally long (Fig. 6b)."""
    updates = 1000 if scale == "quick" else 2500
    return plan_escan("ao", scale, conjunction=False, period=False, updates=updates)


@EXPERIMENTS.register("aitken2021/escan")
class EscanExperiment(Experiment):
    """How the two architectures attend in eSCAN."""

    title = "eSCAN: what AED and AO attend to"
    about = "Sample attention, temporal components and input components (Fig. 3)."
    claims = ("ait.escan-attention",)

    def plan(self, scale: Scale) -> Plan:
        """Both architectures with attention."""
        return {model: plan_escan(model, scale) for model in MODELS}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Where the attention goes at phrase ends and at `twice`."""
        seen = {model: record_runs(runs[model]) for model in MODELS}
        own: Measures = {}
        figures = []
        for model, panels in MODELS.items():
            path = trajectories(seen[model], reach=REACH)
            cloud = word_clouds(seen[model]).figure()
            own[f"phrase_end_{model}"] = measure_each(seen[model], share_at_ends, SHARE)
            own[f"before_twice_{model}"] = measure_each(seen[model], share_before_twice, SHARE)
            own[f"direction_{model}"] = path.estimates()["direction"]
            own[f"accuracy_{model}"] = read_share(runs[model], WORDS)
            caption = (
                f"{model.upper()} on eSCAN (Fig. 3 {panels}), first of {len(runs[model])} seeds."
            )
            sample = draw_attention(seen[model][0], 0)
            figures.append(
                Figure.of(f"ait-escan-{model}", f"{caption} {cloud.caption}", sample,
                          *path.figure().panels, *cloud.panels)
            )  # fmt: skip
        return Findings.of({"ait.escan-attention": own}, Table.of("eSCAN", own), *figures)


def share_at_ends(recording: Recording) -> float:
    """Share of the outputs of `VERB left` and `VERB twice` that attend to the second word.

    Both outputs of such a phrase can be read off its end, if the encoder remembers the verb.
    """
    numbers = recording.vocabulary("encoder").numbers
    second = [numbers[word] for word in ("left", "twice")]

    def choose(chunk: Chunk) -> tuple[Array, Array]:
        ends = np.isin(chunk["encoder.words"], second)
        following = np.pad(ends[:, 1:], ((0, 0), (0, 1)))
        places = np.maximum(chunk["alignment"], 0)
        is_end, before_end = (np.take_along_axis(x, places, axis=1) for x in (ends, following))
        return np.where(is_end, places, places + 1), is_end | before_end

    return share_attended(recording, choose)


def share_before_twice(recording: Recording) -> float:
    """Share of the outputs that `twice` causes whose attention is on the word before it."""
    twice = recording.vocabulary("encoder").numbers["twice"]

    def choose(chunk: Chunk) -> tuple[Array, Array]:
        places = np.maximum(chunk["alignment"], 0)
        return places - 1, np.take_along_axis(chunk["encoder.words"], places, axis=1) == twice

    return share_attended(recording, choose)
