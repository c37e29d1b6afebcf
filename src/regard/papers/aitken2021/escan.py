"""aitken2021, section 4: eSCAN (Figs. 3 and 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.display import Figure, Line, Panel, Table
from regard.instruments import Decomposition, clusters, inputs, lean, paths
from regard.instruments.instrument import numbers
from regard.instruments.lean import Leaning
from regard.papers.aitken2021.looking import (
    REACH,
    accuracy,
    attention_panel,
    count,
    joined,
    looked,
    measured,
)
from regard.papers.experiment import (
    Experiment,
    Findings,
    Measures,
    Plan,
    Runs,
    Scale,
    experiments,
    seeds,
)
from regard.recordings import Recording
from regard.recordings.storage import Array
from regard.runs import RunConfig
from regard.statistics import Estimate

MODELS = ("aed", "ao")
WINDOW = 5


# The lengths of the authors' program. Its period after every phrase is there for AO, which cannot
# keep count without one (word accuracy .95), and not for AED, whose states would carry whole
# phrases from period to period (μ·μ .66 instead of .76, one seed each).
PHRASES: dict[str, dict[str, object]] = {
    "aed": {"shortest": 10, "longest": 15, "period": False},
    "ao": {"shortest": 10, "longest": 15, "period": True, "updates": 5000},
}


def escan(model: str, scale: Scale, **overrides: object) -> list[RunConfig]:
    """The runs of one architecture; quick ones train for less time."""
    short = {"updates": 1500 if model == "aed" else 2000} if scale == "quick" else {}
    return seeds(count(scale), "escan", model, **{**PHRASES[model], **short, **overrides})


def without_and(scale: Scale) -> list[RunConfig]:
    """AO where no phrase has an `and`, so that source and target are equally long (Fig. 6b)."""
    updates = 1000 if scale == "quick" else 2500
    return escan("ao", scale, conjunction=False, period=False, updates=updates)


@experiments.register("aitken2021/escan")
class EscanExperiment(Experiment):
    """How the two architectures attend in eSCAN."""

    title = "eSCAN: what AED and AO attend to"
    about = "Sample attention, temporal components and input components (Fig. 3)."
    claims = ("ait.escan-attention",)

    def plan(self, scale: Scale) -> Plan:
        """Both architectures with attention."""
        return {model: escan(model, scale) for model in MODELS}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Where the attention goes at phrase ends and at `twice`."""
        seen = {model: looked(runs[model]) for model in MODELS}
        path = {model: paths(seen[model], reach=REACH) for model in MODELS}
        cloud = {model: inputs(seen[model]) for model in MODELS}
        own: Measures = {}
        for model in MODELS:
            own[f"phrase_end_{model}"] = measured(seen[model], lambda d: at_ends(d.recording))
            own[f"before_twice_{model}"] = measured(
                seen[model], lambda d: before_twice(d.recording)
            )
            own[f"direction_{model}"] = path[model].estimates()["direction"]
            own[f"accuracy_{model}"] = accuracy(runs[model])
        figures = tuple(
            Figure(
                f"ait-escan-{model}",
                f"{model.upper()} on eSCAN (Fig. 3 {'a-c' if model == 'aed' else 'd-f'}), first of"
                f" {len(runs[model])} seeds. {cloud[model].figure().caption}",
                (
                    attention_panel(seen[model][0].recording, 0),
                    *path[model].figure().panels,
                    *cloud[model].figure().panels,
                ),
            )
            for model in MODELS
        )
        table = Table("eSCAN", ("what", "measured"), tuple(own.items()))
        return Findings({"ait.escan-attention": own}, (table,), figures)


def at_ends(recording: Recording) -> float:
    """Share of the outputs of `VERB left` and `VERB twice` that attend to the second word.

    Both outputs of such a phrase can be read off its end, if the encoder remembers the verb.
    """
    numbers = recording.vocabulary("encoder").numbers
    second = [numbers[word] for word in ("left", "twice")]
    right = total = 0
    names = ["attention.weights", "encoder.words", "alignment", "decoder.mask"]
    for chunk in recording.chunks(names):
        ends = np.isin(chunk["encoder.words"], second)
        following = np.pad(ends[:, 1:], ((0, 0), (0, 1)))
        places = np.maximum(chunk["alignment"], 0)
        is_end, before_end = (np.take_along_axis(x, places, axis=1) for x in (ends, following))
        there = chunk["decoder.mask"] & (chunk["alignment"] >= 0) & (is_end | before_end)
        wanted = np.where(is_end, places, places + 1)
        best = chunk["attention.weights"].argmax(axis=2)
        right += int((best == wanted)[there].sum())
        total += int(there.sum())
    return right / max(total, 1)


def before_twice(recording: Recording) -> float:
    """Share of the outputs that `twice` causes whose attention is on the word before it."""
    twice = recording.vocabulary("encoder").numbers["twice"]
    right = total = 0
    names = ["attention.weights", "encoder.words", "alignment", "decoder.mask"]
    for chunk in recording.chunks(names):
        places = np.maximum(chunk["alignment"], 0)
        caused = np.take_along_axis(chunk["encoder.words"], places, axis=1) == twice
        caused &= chunk["decoder.mask"] & (chunk["alignment"] >= 0)
        best = chunk["attention.weights"].argmax(axis=2)
        right += int((best == places - 1)[caused].sum())
        total += int(caused.sum())
    return right / max(total, 1)


@experiments.register("aitken2021/twice")
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
            **{model: escan(model, scale) for model in MODELS},
            "ao without and": without_and(scale),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Clusters by the verb before, alignment around `twice`, and leaning."""
        seen = {name: looked(runs[name]) for name in runs}
        groups = {model: clusters(seen[model], "twice") for model in MODELS}
        plain = seen["ao without and"]
        around = [around_twice(source) for source in plain]
        leaning = {model: lean(seen[model], WINDOW) for model in MODELS}
        twice: Measures = {
            f"silhouette_{model}": groups[model].estimates()["silhouette"] for model in MODELS
        }
        twice["accuracy_plain"] = accuracy(runs["ao without and"])
        twice["lowering"] = Estimate.of(found["μ·(χ+Δ)"][WINDOW] for found in around)
        twice["looks_back"] = Estimate.of(
            float(np.nanargmax(found["alignment"]) == WINDOW - 1) for found in around
        )
        own: Measures = {}
        for word in ("and", "twice", "left"):
            rows = [_row(seed, word) for seed in leaning["ao"].seeds]
            own[f"{word}_now"] = Estimate.of(row[WINDOW] for row in rows)
            own[f"{word}_highest"] = Estimate.of(float(np.nanmax(row)) for row in rows)
            own[f"{word}_slope"] = leaning["ao"].estimates()[f"slope of {word}"]
        table = Table("Leaning and lowering", ("what", "measured"), (*twice.items(), *own.items()))
        return Findings(
            {"ait.twice": twice, "ait.lean": own},
            (table, *(leaning[model].table() for model in MODELS)),
            (
                joined(
                    "ait-twice",
                    "States of `twice` by the verb before it (Fig. 6a), and for AO the alignment"
                    " around `twice` (Fig. 6b, eSCAN without `and`).",
                    groups["aed"].figure(),
                    groups["ao"].figure(),
                    Figure("", "", (_around_panel(around),)),
                    titles=("AED", "AO", "AO"),
                ),
                joined(
                    "ait-lean",
                    f"Leaning of words, AO and AED, {len(runs['ao'])} seeds (Figs. 6c, 6d).",
                    leaning["ao"].figure(),
                    leaning["aed"].figure(),
                    titles=("AO", "AED"),
                ),
            ),
        )


def _row(seed: Leaning, word: str) -> Array:
    found: Array = seed.by_offset[seed.words.index(word)]
    return found


def around_twice(source: Decomposition) -> dict[str, Array]:
    """Mean alignment and its parts at t − s, for decoder steps s where `twice` stands at t = s.

    -> name -> (2·WINDOW + 1,)
    """
    recording, parts = source.recording, source.site()
    twice = recording.vocabulary("encoder").numbers["twice"]
    mu_d = parts.queries[0].temporal[: parts.queries[0].steps]
    mu_e = parts.keys[0].temporal
    sums = {name: np.zeros(2 * WINDOW + 1) for name in ("alignment", "μ·μ", "μ·(χ+Δ)", "rest")}
    counts = np.zeros(2 * WINDOW + 1)
    names = ["attention.queries", "attention.keys", "encoder.words", "encoder.mask", "decoder.mask"]
    for chunk in recording.chunks(names):
        keys, words = chunk["attention.keys"].astype(float), chunk["encoder.words"]
        steps = min(words.shape[1], chunk["decoder.mask"].shape[1])
        for sample, s in np.argwhere(
            (words[:, :steps] == twice) & chunk["decoder.mask"][:, :steps]
        ):
            for index, t in enumerate(range(s - WINDOW, s + WINDOW + 1)):
                if 0 <= t < words.shape[1] and chunk["encoder.mask"][sample, t]:
                    whole = float(chunk["attention.queries"][sample, s] @ keys[sample, t])
                    time, both = float(mu_d[s] @ mu_e[t]), float(mu_d[s] @ keys[sample, t])
                    for name, value in zip(
                        sums, (whole, time, both - time, whole - both), strict=True
                    ):
                        sums[name][index] += value
                    counts[index] += 1
    return {
        name: np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
        for name, total in sums.items()
    }


def _around_panel(around: Sequence[dict[str, Array]]) -> Panel:
    offsets = numbers(range(-WINDOW, WINDOW + 1))
    lines = tuple(
        Line(
            name,
            offsets,
            numbers(np.mean([found[name] for found in around], axis=0)),
            colour=colour,
            points=True,
        )
        for colour, name in enumerate(around[0])
    )
    return Panel("Alignment where `twice` is at t = s", "offset t − s (steps)", "a_st", lines)
