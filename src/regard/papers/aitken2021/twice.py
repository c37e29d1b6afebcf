"""aitken2021, section 4: how words of eSCAN bend the attention (Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.display import Line, Panel, Table
from regard.instruments.components import clusters, pull
from regard.instruments.components.pull import Pull
from regard.instruments.result import to_floats
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.aitken2021.escan import MODELS, plan_escan, plan_without_and
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import join_figures, read_share
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.statistics import Estimate

WINDOW = 5
ALIGNMENTS = ("alignment", "μ·μ", "μ·(χ+Δ)", "rest")


@EXPERIMENTS.register("aitken2021/twice")
class TwiceExperiment(Experiment):
    """How a word that repeats another is handled with and without recurrence."""

    title = "How `twice`, `and` and `left` bend the attention"
    about = (
        "AED can remember the verb before `twice`; AO has to look back at it. Words also lean"
        " towards or away from the decoder's temporal component (Fig. 6)."
    )
    claims = ("ait.twice", "ait.lean")

    def plan(self, scale: Scale) -> Plan:
        """eSCAN for both, and AO on eSCAN without `and`, where source and target are as long."""
        return {
            **{model: plan_escan(model, scale) for model in MODELS},
            "ao without and": plan_without_and(scale),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Clusters by the verb before, alignment around `twice`, and leaning."""
        seen = {name: record_runs(runs[name]) for name in runs}
        groups = {model: clusters(seen[model], "twice") for model in MODELS}
        plain = seen["ao without and"]
        around = [align_around_twice(source) for source in plain]
        leaning = {model: pull(seen[model], WINDOW) for model in MODELS}
        twice: Measures = {
            f"silhouette_{model}": groups[model].estimates()["silhouette"] for model in MODELS
        }
        twice["accuracy_plain"] = read_share(runs["ao without and"], WORDS)
        twice["lowering"] = Estimate.of(found["μ·(χ+Δ)"][WINDOW] for found in around)
        twice["looks_back"] = Estimate.of(
            float(np.nanargmax(found["alignment"]) == WINDOW - 1) for found in around
        )
        own: Measures = {}
        for word in ("and", "twice", "left"):
            rows = [_read_row(seed, word) for seed in leaning["ao"].seeds]
            own[f"{word}_now"] = Estimate.of(row[WINDOW] for row in rows)
            own[f"{word}_highest"] = Estimate.of(float(np.nanmax(row)) for row in rows)
            own[f"{word}_slope"] = leaning["ao"].estimates()[f"slope of {word}"]
        groups_ao = groups["ao"].figure()
        with_around = replace(groups_ao, panels=(*groups_ao.panels, _draw_around(around)))
        return Findings.of(
            {"ait.twice": twice, "ait.lean": own},
            Table.of("Pull and lowering", twice | own),
            *(leaning[model].table() for model in MODELS),
            join_figures(
                "ait-twice",
                "States of `twice` by the verb before it (Fig. 6a), and for AO the alignment"
                " around `twice` (Fig. 6b, eSCAN without `and`).",
                {"AED": groups["aed"].figure(), "AO": with_around},
            ),
            join_figures(
                "ait-lean",
                f"Pull of words, AO and AED, {len(runs['ao'])} seeds (Figs. 6c, 6d).",
                {model.upper(): leaning[model].figure() for model in ("ao", "aed")},
            ),
        )


def _read_row(seed: Pull, word: str) -> Array:
    found: Array = seed.by_offset[seed.words.index(word)]
    return found


def align_around_twice(recording: Recording) -> dict[str, Array]:
    """Mean alignment and its parts at t − s, for decoder steps s where `twice` stands at t = s.

    -> name -> (2·WINDOW + 1,)
    """
    parts = recording.decomposition.site()
    twice = recording.vocabulary("encoder").numbers["twice"]
    mu_d = parts.queries[0].temporal[: parts.queries[0].steps]
    mu_e = parts.keys[0].temporal
    sums, counts = np.zeros((len(ALIGNMENTS), 2 * WINDOW + 1)), np.zeros(2 * WINDOW + 1)
    names = ["attention.queries", "attention.keys", "encoder.words", "encoder.mask", "decoder.mask"]
    for chunk in recording.chunks(names):
        keys, words = chunk["attention.keys"][:, 0].astype(float), chunk["encoder.words"]
        steps = min(words.shape[1], chunk["decoder.mask"].shape[1])
        mask = (words[:, :steps] == twice) & chunk["decoder.mask"][:, :steps]
        for sample, s in np.argwhere(mask):
            for index, t in enumerate(range(s - WINDOW, s + WINDOW + 1)):
                if 0 <= t < words.shape[1] and chunk["encoder.mask"][sample, t]:
                    whole = float(chunk["attention.queries"][sample, 0, s] @ keys[sample, t])
                    time, both = float(mu_d[s] @ mu_e[t]), float(mu_d[s] @ keys[sample, t])
                    sums[:, index] += (whole, time, both - time, whole - both)
                    counts[index] += 1
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return dict(zip(ALIGNMENTS, means, strict=True))


def _draw_around(around: Sequence[dict[str, Array]]) -> Panel:
    offsets = to_floats(range(-WINDOW, WINDOW + 1))
    means = {name: np.mean([found[name] for found in around], axis=0) for name in ALIGNMENTS}
    lines = (
        Line(name, offsets, to_floats(mean), colour=colour, points=True)
        for colour, (name, mean) in enumerate(means.items())
    )
    return Panel.of("Alignment where `twice` is at t = s", "offset t − s (steps)", "a_st", *lines)
