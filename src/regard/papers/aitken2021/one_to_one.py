"""aitken2021, section 3: one-to-one translation (Fig. 2a-f)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.display import Figure, Table
from regard.instruments.components import (
    dictionary,
    orthogonality,
    simplex,
    trajectories,
    word_clouds,
)
from regard.instruments.result import Result
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import plan_seeds, read_share
from regard.recordings.recording import Recording
from regard.runs import RunConfig
from regard.statistics import Estimate

MODELS = {"ved": "e, f", "aed": "a, b", "ao": "c, d"}  # and their panels of Fig. 2
# What tables show: of temporal components, and of input components.
OF_PATHS = ("diagonal", "direction", "turns", "adjacent", "explained 2", "explained 3")
OF_CLOUDS = ("encoder delta share", "decoder input-delta size")


def plan_one_to_one(model: str, scale: Scale, **overrides: object) -> list[RunConfig]:
    """The runs of one architecture; quick ones train for less time."""
    updates = {"ved": 2000, "aed": 1500, "ao": 1200}
    short = {"updates": updates[model]} if scale == "quick" else {}
    return plan_seeds(scale, "one-to-one", model, **{**short, **overrides})


@EXPERIMENTS.register("aitken2021/one-to-one")
class OneToOneExperiment(Experiment):
    """Three architectures on the simplest translation."""

    title = "One-to-one translation: VED, AED and AO"
    about = (
        "Hidden states of three architectures as temporal, input and delta components, on a task"
        " whose attention is the same for every sample (Fig. 2a-f)."
    )
    claims = (
        "ait.temporal-aed", "ait.temporal-ao", "ait.temporal-ved",
        "ait.input-aed", "ait.input-ao", "ait.input-ved",
        "ait.pcs", "ait.orthogonal",
    )  # fmt: skip

    def plan(self, scale: Scale) -> Plan:
        """One condition per architecture."""
        return {model: plan_one_to_one(model, scale) for model in MODELS}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Paths, clouds, explained variance, angles."""
        seen = {model: record_runs(runs[model]) for model in MODELS}
        path = {model: trajectories(seen[model]) for model in MODELS}
        cloud = {model: word_clouds(seen[model]) for model in MODELS}
        measures: dict[str, Measures] = {}
        for model in MODELS:
            measures[f"ait.temporal-{model}"] = {
                name.split()[0]: path[model].estimates()[name]
                for name in ("diagonal", "direction", "turns", "adjacent", "joint step")
            }
            deltas = {"delta_share": cloud[model].estimates()["encoder delta share"]}
            measures[f"ait.input-{model}"] = deltas | _measure_inputs(seen[model], model)
        # Of four input components (three words and the end) three axes hold all in any network,
        # so there the question is put to the first two.
        measures["ait.pcs"] = {
            f"{what}_{axes}_{model}": result[model].estimates()[f"explained {axes}"]
            for what, axes, result in (("temporal", 3, path), ("input", 2, cloud))
            for model in MODELS
        }
        angles = {model: orthogonality(seen[model]) for model in MODELS}
        key = "μ of decoder, χ+Δ of encoder"
        measures["ait.orthogonal"] = {
            model: angles[model].estimates()[key] for model in ("aed", "ao")
        } | {
            f"largest_{model}": Estimate.share(
                float(seed.by_step[key].max()) for seed in angles[model].seeds
            )
            for model in ("aed", "ao")
        }
        figures = []
        for model, panels in MODELS.items():
            drawn = path[model].figure(), cloud[model].figure()
            captions = " ".join(figure.caption for figure in drawn)
            title = f"{model.upper()} on one-to-one translation (Fig. 2{panels})."
            both = (panel for figure in drawn for panel in figure.panels)
            figures.append(Figure.of(f"ait-one-to-one-{model}", f"{title} {captions}", *both))
        untrained = {model: record_runs(runs[model], checkpoint=0) for model in MODELS}
        columns = {
            model: {"word accuracy": read_share(runs[model], WORDS)}
            | _select(path[model], cloud[model])
            for model in MODELS
        }
        share = path["aed"].estimates()["diagonal"]
        return Findings.of(
            measures,
            Table.of_columns("One-to-one translation", "what", columns),
            Table.of_columns(  # what random weights give by themselves
                "The same networks, untrained",
                "what",
                {m: _select(trajectories(s), word_clouds(s)) for m, s in untrained.items()},
            ),
            *figures,
            f"AED: {share} of decoder steps have their largest μ·μ at their own step.",
        )


def _select(path: Result[Any], cloud: Result[Any]) -> Measures:
    """What tables show of one architecture."""
    return {
        name: result.estimates()[name]
        for result, names in ((path, OF_PATHS), (cloud, OF_CLOUDS))
        for name in names
    }


def _measure_inputs(seen: Sequence[Recording], model: str) -> Measures:
    corners = simplex(seen, "A,B,C").estimates()
    found = {"cosine": corners["cosine"], "cosine_error": corners["worst cosine error"]}
    if model != "ved":
        found["dictionary"] = dictionary(seen).estimates()["dictionary"]
    return found
