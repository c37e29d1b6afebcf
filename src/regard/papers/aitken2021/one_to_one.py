"""aitken2021, section 3: one-to-one translation (Fig. 2a-f)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regard.display import Table
from regard.instruments.components import (
    dictionary,
    orthogonality,
    simplex,
    trajectories,
    word_clouds,
)
from regard.instruments.components.trajectories import TrajectoriesResult
from regard.instruments.components.word_clouds import WordCloudsResult
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, join_figures, plan_seeds, read_share
from regard.recordings.recording import Recording
from regard.runs import RunConfig
from regard.statistics import Estimate

MODELS = ("ved", "aed", "ao")
PANELS = {"aed": "a, b", "ao": "c, d", "ved": "e, f"}  # of Fig. 2


def plan_one_to_one(model: str, scale: Scale, **overrides: object) -> list[RunConfig]:
    """The runs of one architecture; quick ones train for less time."""
    updates = {"ved": 2000, "aed": 1500, "ao": 1200}
    short = {"updates": updates[model]} if scale == "quick" else {}
    return plan_seeds(count_seeds(scale), "one-to-one", model, **{**short, **overrides})


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
            measures[f"ait.input-{model}"] = self._measure_inputs(seen[model], cloud[model], model)
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
        figures = tuple(
            join_figures(
                f"ait-one-to-one-{model}",
                f"{model.upper()} on one-to-one translation (Fig. 2"
                f"{PANELS[model]}). {path[model].figure().caption} {cloud[model].figure().caption}",
                path[model].figure(),
                cloud[model].figure(),
            )
            for model in MODELS
        )
        tables = (
            Table(
                "One-to-one translation",
                ("what", *MODELS),
                (
                    ("word accuracy", *(read_share(runs[model], WORDS) for model in MODELS)),
                    *self._list_rows(path, cloud),
                ),
            ),
            self._list_untrained(runs),
        )
        share = path["aed"].estimates()["diagonal"]
        found = f"AED: {share} of decoder steps have their largest μ·μ at their own step."
        return Findings(measures, tables, figures, (found,))

    def _list_rows(
        self, path: Mapping[str, TrajectoriesResult], cloud: Mapping[str, WordCloudsResult]
    ) -> tuple[tuple[object, ...], ...]:
        of_paths = ("diagonal", "direction", "turns", "adjacent", "explained 2", "explained 3")
        of_clouds = ("encoder delta share", "decoder input-delta size")
        return (
            *((name, *(path[m].estimates()[name] for m in MODELS)) for name in of_paths),
            *((name, *(cloud[m].estimates()[name] for m in MODELS)) for name in of_clouds),
        )

    def _list_untrained(self, runs: Runs) -> Table:
        """The same of the networks before training: what random weights give by themselves."""
        seen = {model: record_runs(runs[model], checkpoint=0) for model in MODELS}
        path = {model: trajectories(seen[model]) for model in MODELS}
        cloud = {model: word_clouds(seen[model]) for model in MODELS}
        return Table(
            "The same networks, untrained", ("what", *MODELS), self._list_rows(path, cloud)
        )

    def _measure_inputs(
        self, seen: Sequence[Recording], cloud: WordCloudsResult, model: str
    ) -> Measures:
        found: Measures = {"delta_share": cloud.estimates()["encoder delta share"]}
        corners = simplex(seen, "A,B,C").estimates()
        found["cosine"] = corners["cosine"]
        found["cosine_error"] = corners["worst cosine error"]
        if model != "ved":
            found["dictionary"] = dictionary(seen).estimates()["dictionary"]
        return found
