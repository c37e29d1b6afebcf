"""baan2019, section 4: activations, gates, diagnostic classifiers and functional groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.result import Result
from regard.instruments.units import activations, gates, groups, probe
from regard.instruments.units.gates import GatesResult
from regard.instruments.weights import strength
from regard.papers.baan2019._lookup import MODELS, ROWS, Lookup, record_runs
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Runs, Scale
from regard.papers.framework.measures import CHANGE, subtract
from regard.recordings.recording import Recording
from regard.statistics import Estimate

TABLES = "t[0-9]*"  # the labels that are tables
# What is probed for the table that is read now (Table 2): quantity and label.
PROBED = {
    "encoder": ("encoder.states", "word"),
    "update": ("decoder.gates.update", "source"),
    "reset": ("decoder.gates.reset", "source"),
}
# What is measured of a group, and its column: by the weights of the first class, but for the last.
NUMBERS = {
    "group": ("first-class: accuracy", "accuracy of the group"),
    "full": ("first-class: full accuracy", "with all units"),
    "units": ("first-class: units", "units (first class)"),
    "units_all": ("aggregate: units", "units (all classes)"),
}
UPDATE = ("encoder.0.update", "decoder.0.update")
GATES = (*UPDATE, "encoder.0.reset", "decoder.0.reset")


@EXPERIMENTS.register("baan2019/units")
class UnitsExperiment(Lookup):
    """Ranges of units and saturation of gates."""

    title = "Activations and gates"
    about = (
        "Which values units take over all rows (Fig. 3), and how often their gates are shut or"
        " open (Fig. 4). The update gate is the program's: it keeps the old state, which is the"
        " opposite of the paper's text."
    )
    claims = ("baan.activations", "baan.gates")

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Narrow units; units on an axis; left against right."""
        seen = {name: record_runs(runs[name], gates=True) for name in MODELS}
        ranges = {name: activations(seen[name]) for name in MODELS}
        shut = {name: gates(seen[name]) for name in MODELS}
        narrow: Measures = {}
        for side in ("encoder", "decoder"):
            found = {name: ranges[name].estimates()[f"{side} narrow"] for name in MODELS}
            narrow |= {f"narrow_{side}_{name}": found[name] for name in MODELS}
            narrow[f"more_{side}"] = subtract(found["guided"], found["baseline"], CHANGE)
        axis = {name: _average(shut[name], GATES, "on an axis") for name in MODELS}
        saturation: Measures = {
            "axis_more": subtract(axis["guided"], axis["baseline"], CHANGE),
            **{f"axis_{name}": axis[name] for name in MODELS},
            **{
                f"{name}_{way}": _average(shut[name], UPDATE, way)
                for name in MODELS
                for way in ("left", "right")
            },
        }
        values = "Values of 50 sampled units (Fig. 3)."
        sides = "Left- and right-saturation of each unit's gates (Fig. 4)."
        return Findings.of(
            {"baan.activations": narrow, "baan.gates": saturation},
            *(replace(shut[name].table(), title=f"{name}: saturation") for name in MODELS),
            *(
                _draw_first(f"baan-activations-{name}", values, name, ranges[name])
                for name in MODELS
            ),
            *(_draw_first(f"baan-gates-{name}", sides, name, shut[name]) for name in MODELS),
        )


def _draw_first(name: str, caption: str, model: str, result: Result[Any]) -> Figure:
    told = f"{model.capitalize()}. {caption} {result.n} seeds, the first is shown."
    return replace(result.figure(), name=name, caption=told)


def _average(result: GatesResult, names: Sequence[str], what: str) -> Estimate:
    """One number per seed: the mean over some gates."""
    return Estimate.share(
        float(np.mean([seed.values()[name, what] for name in names])) for seed in result.seeds
    )


@EXPERIMENTS.register("baan2019/groups")
class GroupsExperiment(Lookup):
    """Diagnostic classifiers, functional groups, and how strong their units are."""

    title = "Functional groups"
    about = (
        "What classifiers can tell from states and gates, and how few units are enough for 95 %"
        " of that (Tables 2 and 3). Units are ranked by the weights of the first class, as the"
        " paper's program does it, and by all classes; the latter stands beside it."
    )
    claims = ("baan.probe-table", "baan.probe-time", "baan.group-strength")

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Group sizes and accuracies by model and quantity, controls, strengths."""
        splits = 5 if scale == "full" else 2
        seen = {name: record_runs(runs[name], gates=True) for name in MODELS}
        table: Measures = {}
        rows = []
        for what, (quantity, label) in PROBED.items():
            for name in MODELS:
                found = _measure_groups(seen[name], quantity, label, TABLES, splits)
                table |= {f"{key}_{what}_{name}": value for key, value in found.items()}
                rows.append((f"table from {quantity}", name, *found.values()))
        time: Measures = {}
        for name in MODELS:
            found = _measure_groups(seen[name], "encoder.states", "position", None, splits)
            time |= {f"{key}_{name}": value for key, value in found.items()}
            rows.append(("time step from encoder.states", name, *found.values()))
        strong = {
            name: strength(
                runs[name], label="word", only=TABLES, ranking="first-class", by="step",
                splits=splits, n=ROWS, split="all",
            ).estimates()
            for name in MODELS
        }  # fmt: skip
        share: Measures = {
            "share": strong["guided"]["share"],
            "share_baseline": strong["baseline"]["share"],
            "chance": strong["guided"]["chance"],
        }
        columns = ("what", "model", *(column for _, column in NUMBERS.values()))
        full, units = (
            Bars.of_each({n: {w: table[f"{key}_{w}_{n}"] for w in PROBED} for n in MODELS})
            for key in ("full", "units")
        )
        return Findings.of(
            {"baan.probe-table": table, "baan.probe-time": time, "baan.group-strength": share},
            Table("Functional groups (Tables 2 and 3)", columns, tuple(rows)),
            _list_controls(seen, splits),
            Figure.of(
                "baan-groups",
                "How well the table that is read now can be told from the encoder's states and"
                " the decoder's gates, and how many units that takes; units ranked by the"
                f" first class. {len(runs['guided'])} seeds, {splits} splits each.",
                Panel("Accuracy with all units", "quantity", "accuracy", full),
                Panel("Units for 95 % of it", "quantity", "units", units),
            ),
        )


def _measure_groups(
    seen: list[Recording], quantity: str, label: str, only: str | None, splits: int
) -> Measures:
    """By the keys of `NUMBERS`."""
    found = groups(seen, quantity, label, only, ranking="both", splits=splits, by="step")
    return {key: found.estimates()[name] for key, (name, _) in NUMBERS.items()}


def _list_controls(seen: dict[str, list[Recording]], splits: int) -> Table:
    """The same probes with a control task, on samples that training them did not see."""
    rows = []
    columns = ("quantity", "model", "accuracy", "control", "selectivity")
    for quantity, label in PROBED.values():
        for name in MODELS:
            found = probe(seen[name], quantity, label, TABLES, splits=splits).estimates()
            rows.append((quantity, name, *(found[key] for key in columns[2:])))
    return Table("Probes with a control task, split by sample (ours)", columns, tuple(rows))
