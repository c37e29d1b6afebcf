"""Are the functional groups of baan2019 the units on which aitken2021's χ live?"""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.units import groups
from regard.papers.baan2019._lookup import MODELS, Lookup, record_runs
from regard.papers.baan2019.units import TABLES
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.statistics import Estimate


@EXPERIMENTS.register("across/groups-are-directions")
class GroupsAreDirectionsExperiment(Lookup):
    """Groups of units and directions of words in the encoder."""

    title = "Functional groups and input components"
    about = (
        "A functional group is what a probe needs to tell which table the encoder reads; the"
        " strongest units of χ are those in which the tables' input components differ most. Both"
        " are taken equally large, and their overlap is compared with that of random units. Models"
        " are trained by the fast recipe."
    )
    claims = ("x.groups-are-directions",)

    def plan(self, scale: Scale) -> Plan:
        """By the fast recipe: the runs of guided-terms."""
        return self.plan_fast(scale)

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Overlaps, and how many times chance they are."""
        own: Measures = {}
        for name in MODELS:
            pairs = [overlap_group(recording) for recording in record_runs(runs[name])]
            own[f"overlap_{name}"] = Estimate.share(overlap for overlap, _ in pairs)
            own[f"chance_{name}"] = Estimate.share(chance for _, chance in pairs)
            own[f"over_chance_{name}"] = Estimate.of(a / b for a, b in pairs)
        bars = tuple(
            Bars.of(label, {name: own[f"{what}_{name}"] for name in MODELS}, colour)
            for colour, (what, label) in enumerate(
                (("overlap", "measured"), ("chance", "by chance"))
            )
        )
        figure = Figure(
            "x-groups-are-directions",
            "Share of a functional group's units among as many units on which the tables' χ differ"
            " most; means and 95 % intervals over seeds.",
            (Panel("Groups and χ", "model", "overlap", bars, (0, 1.05)),),
        )
        table = Table.of("Functional groups and input components", own)
        return Findings({"x.groups-are-directions": own}, (table,), (figure,))


def overlap_group(recording: Recording) -> tuple[float, float]:
    """Mean overlap of the groups of all splits with the strongest units of χ; that of chance."""
    found = groups(recording, only=TABLES).first
    strongest = np.argsort(-spread_units(recording), kind="stable")
    sizes, shares = [], []
    for group in next(iter(found.groups.values())):
        size = len(group.units)
        shares.append(len(set(group.units) & set(strongest[:size].tolist())) / size)
        sizes.append(size / found.width)
    return float(np.mean(shares)), float(np.mean(sizes))


def spread_units(recording: Recording) -> Array:
    """Variance over the tables of each unit's part of χ, in the encoder. -> (hidden,)"""
    words = recording.words("encoder")
    tables = [number for number, word in enumerate(words) if fnmatchcase(word, TABLES)]
    spread: Array = recording.decomposition.encoder.input[tables].var(axis=0)
    return spread
