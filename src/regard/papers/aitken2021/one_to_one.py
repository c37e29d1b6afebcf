"""aitken2021, section 3 and Fig. 2: one-to-one translation, its reversal, and sorting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from regard.display import Figure, Table
from regard.instruments import (
    Decomposition,
    breakdown,
    inputs,
    orthogonality,
    paths,
    readouts,
    simplex,
)
from regard.instruments.geometry import rank_correlation
from regard.instruments.inputs import InputsResult
from regard.instruments.paths import Paths, PathsResult
from regard.instruments.terms import TERMS
from regard.papers.aitken2021.looking import (
    ALL_PAIRS,
    REACH,
    accuracy,
    attention_right,
    count,
    follows,
    joined,
    looked,
    measured,
    partial_panel,
    taken,
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
from regard.runs import RunConfig
from regard.statistics import Estimate

MODELS = ("ved", "aed", "ao")
PANELS = {"aed": "a, b", "ao": "c, d", "ved": "e, f"}  # of Fig. 2


def one_to_one(model: str, scale: Scale, **overrides: object) -> list[RunConfig]:
    """The runs of one architecture; quick ones train for less time."""
    updates = {"ved": 2000, "aed": 1500, "ao": 1200}
    short = {"updates": updates[model]} if scale == "quick" else {}
    return seeds(count(scale), "one-to-one", model, **{**short, **overrides})


@experiments.register("aitken2021/one-to-one")
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
        return {model: one_to_one(model, scale) for model in MODELS}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Paths, clouds, explained variance, angles."""
        seen = {model: looked(runs[model]) for model in MODELS}
        path = {model: paths(seen[model]) for model in MODELS}
        cloud = {model: inputs(seen[model]) for model in MODELS}
        measures: dict[str, Measures] = {}
        for model in MODELS:
            own = taken(path[model], diagonal="diagonal", direction="direction", turns="turns",
                        adjacent="adjacent", joint="joint step")  # fmt: skip
            measures[f"ait.temporal-{model}"] = own
            measures[f"ait.input-{model}"] = self._input(seen[model], cloud[model], model)
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
            joined(
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
                    ("word accuracy", *(accuracy(runs[model]) for model in MODELS)),
                    *self._rows(path, cloud),
                ),
            ),
            self._untrained(runs),
        )
        found = (
            f"AED: {path['aed'].estimates()['diagonal']} of decoder steps have their largest μ·μ"
        )
        return Findings(measures, tables, figures, (f"{found} at their own step.",))

    def _rows(
        self, path: Mapping[str, PathsResult], cloud: Mapping[str, InputsResult]
    ) -> tuple[tuple[object, ...], ...]:
        of_paths = ("diagonal", "direction", "turns", "adjacent", "explained 2", "explained 3")
        of_clouds = ("encoder delta share", "decoder input-delta size")
        return (
            *((name, *(path[m].estimates()[name] for m in MODELS)) for name in of_paths),
            *((name, *(cloud[m].estimates()[name] for m in MODELS)) for name in of_clouds),
        )

    def _untrained(self, runs: Runs) -> Table:
        """The same of the networks before training: what random weights give by themselves."""
        seen = {model: looked(runs[model], checkpoint=0) for model in MODELS}
        path = {model: paths(seen[model]) for model in MODELS}
        cloud = {model: inputs(seen[model]) for model in MODELS}
        return Table("The same networks, untrained", ("what", *MODELS), self._rows(path, cloud))

    def _input(self, seen: Sequence[Decomposition], cloud: InputsResult, model: str) -> Measures:
        found: Measures = {"delta_share": cloud.estimates()["encoder delta share"]}
        corners = simplex(seen, "A,B,C").estimates()
        found["cosine"] = corners["cosine"]
        found["cosine_error"] = corners["worst cosine error"]
        if model != "ved":
            found["dictionary"] = readouts(seen).estimates()["dictionary"]
        return found


@experiments.register("aitken2021/reversed")
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
            "aed": one_to_one("aed", scale, reversed=True, **short),
            "ao": one_to_one("ao", scale, reversed=True, shortest=17, longest=17, **short),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The direction of the temporal alignment."""
        seen = {model: looked(runs[model]) for model in runs}
        path = {model: paths(seen[model], reach=REACH) for model in runs}
        own: Measures = {}
        for model in runs:
            own[f"accuracy_{model}"] = accuracy(runs[model])
            own[f"direction_{model}"] = Estimate.of(map(turned, path[model].seeds))
            own[f"follows_{model}"] = measured(seen[model], lambda d: follows(d.recording))
            own[f"exact_{model}"] = measured(seen[model], lambda d: attention_right(d.recording))
        rows = tuple((name, value) for name, value in own.items())
        figure = joined(
            "ait-reversed",
            "Temporal components with a reversed output (Fig. 2g): one trajectory runs backwards.",
            *(path[model].figure() for model in runs),
            titles=tuple(model.upper() for model in runs),
        )
        return Findings(
            {"ait.reversed": own},
            (Table("Reversed output", ("what", "measured"), rows),),
            (figure,),
        )


def turned(path: Paths) -> float:
    """Rank correlation of decoder step and best source step, without the end token's step."""
    best = path.best[:-1]
    return rank_correlation(np.arange(len(best)), best)


@experiments.register("aitken2021/sorting")
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
        short = {"updates": 1500} if scale == "quick" else {}
        return {"aed": seeds(count(scale), "sorting", "aed", **short)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The nine terms, and which of them alone makes the attention."""
        seen = looked(runs["aed"])
        found = breakdown(seen)
        shares = {name.replace("-", "_"): value for name, value in found.estimates().items()}
        own: Measures = {**shares, "accuracy": accuracy(runs["aed"])}
        own["attention"] = measured(seen, lambda d: attention_right(d.recording))
        panels = (
            partial_panel(seen[0], 0, "All terms", ALL_PAIRS),
            partial_panel(seen[0], 0, "μ·μ alone", (("temporal", "temporal"),)),
            partial_panel(seen[0], 0, "χ of decoder · Δ of encoder", (("input", "delta"),)),
            partial_panel(seen[0], 0, "Δ of decoder · χ of encoder", (("delta", "input"),)),
        )
        figure = Figure(
            "ait-sorting",
            "Attention of one sample from all terms and from single ones (Fig. 2h).",
            panels,
        )
        largest = max(TERMS, key=lambda name: found.shares[name])
        return Findings(
            {"ait.sorting": own},
            (found.table(),),
            (figure, found.figure()),
            (f"The largest of the nine terms is {largest}: {found.estimates()[largest]}.",),
        )
