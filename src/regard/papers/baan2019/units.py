"""baan2019, section 4: activations, gates, diagnostic classifiers and functional groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regard.display import Bars, Figure, Panel, Table
from regard.instruments import activations, gates, groups, probe, strength
from regard.instruments.gates import GatesResult
from regard.instruments.groups import GroupsResult
from regard.instruments.instrument import Result
from regard.papers.baan2019.common import MODELS, ROWS, Lookup, looked, more
from regard.papers.experiment import Findings, Measures, Runs, Scale, experiments
from regard.recordings import Recording
from regard.statistics import Estimate

TABLES = "t[0-9]*"  # the labels that are tables
# What is probed for the table that is read now (Table 2): quantity and label.
PROBED = {
    "encoder": ("encoder.states", "word"),
    "update": ("decoder.gates.update", "source"),
    "reset": ("decoder.gates.reset", "source"),
}
UPDATE = ("encoder.0.update", "decoder.0.update")
GATES = (*UPDATE, "encoder.0.reset", "decoder.0.reset")


@experiments.register("baan2019/units")
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
        seen = {name: looked(runs[name], gates=True) for name in MODELS}
        ranges = {name: activations(seen[name]) for name in MODELS}
        shut = {name: gates(seen[name]) for name in MODELS}
        narrow: Measures = {}
        for side in ("encoder", "decoder"):
            found = {name: ranges[name].estimates()[f"{side} narrow"] for name in MODELS}
            narrow |= {f"narrow_{side}_{name}": found[name] for name in MODELS}
            narrow[f"more_{side}"] = more(found["guided"], found["baseline"])
        axis = {name: _mean(shut[name], GATES, "on an axis") for name in MODELS}
        saturation: Measures = {
            "axis_more": more(axis["guided"], axis["baseline"]),
            **{f"axis_{name}": axis[name] for name in MODELS},
            **{
                f"{name}_{way}": _mean(shut[name], UPDATE, way)
                for name in MODELS
                for way in ("left", "right")
            },
        }
        pictures: list[tuple[str, Mapping[str, Result[Any]], str]] = [
            ("baan-activations", ranges, "Values of 50 sampled units (Fig. 3)."),
            ("baan-gates", shut, "Left- and right-saturation of each unit's gates (Fig. 4)."),
        ]
        return Findings(
            {"baan.activations": narrow, "baan.gates": saturation},
            tuple(replace(shut[name].table(), title=f"{name}: saturation") for name in MODELS),
            tuple(
                Figure(
                    f"{picture}-{name}",
                    f"{name.capitalize()}. {caption} {len(runs[name])} seeds, the first is shown.",
                    result[name].figure().panels,
                )
                for picture, result, caption in pictures
                for name in MODELS
            ),
        )


def _mean(result: GatesResult, names: Sequence[str], what: str) -> Estimate:
    """One number per seed: the mean over some gates."""
    return Estimate.share(
        float(np.mean([seed.values()[f"{name} {what}"] for name in names])) for seed in result.seeds
    )


@experiments.register("baan2019/groups")
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
        seen = {name: looked(runs[name], gates=True) for name in MODELS}
        table: Measures = {}
        rows = []
        for what, (quantity, label) in PROBED.items():
            for name in MODELS:
                found = self._groups(seen[name], quantity, label, TABLES, splits)
                table |= _named(found, f"{what}_{name}")
                rows.append(_row(f"table from {quantity}", name, found))
        time: Measures = {}
        for name in MODELS:
            found = self._groups(seen[name], "encoder.states", "position", None, splits)
            time |= _named(found, name)
            rows.append(_row("time step from encoder.states", name, found))
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
        columns = ("what", "model", "accuracy of the group", "with all units",
                   "units (first class)", "units (all classes)")  # fmt: skip
        panels = tuple(
            Panel(
                title,
                "quantity",
                axis,
                tuple(
                    Bars.of(name, {what: table[f"{key}_{what}_{name}"] for what in PROBED}, colour)
                    for colour, name in enumerate(MODELS)
                ),
            )
            for title, axis, key in (
                ("Accuracy with all units", "accuracy", "full"),
                ("Units for 95 % of it", "units", "units"),
            )
        )
        return Findings(
            {"baan.probe-table": table, "baan.probe-time": time, "baan.group-strength": share},
            (
                Table("Functional groups (Tables 2 and 3)", columns, tuple(rows)),
                self._controls(seen, splits),
            ),
            (
                Figure(
                    "baan-groups",
                    "How well the table that is read now can be told from the encoder's states and"
                    " the decoder's gates, and how many units that takes; units ranked by the"
                    f" first class. {len(runs['guided'])} seeds, {splits} splits each.",
                    panels,
                ),
            ),
        )

    def _groups(
        self, seen: list[Recording], quantity: str, label: str, only: str | None, splits: int
    ) -> GroupsResult:
        return groups(seen, quantity, label, only, ranking="both", splits=splits, by="step")  # type: ignore[arg-type]

    def _controls(self, seen: dict[str, list[Recording]], splits: int) -> Table:
        """The same probes with a control task, on samples that training them did not see."""
        rows = []
        columns = ("quantity", "model", "accuracy", "control", "selectivity")
        for quantity, label in PROBED.values():
            for name in MODELS:
                found = probe(seen[name], quantity, label, TABLES, splits=splits).estimates()  # type: ignore[arg-type]
                rows.append(
                    (
                        quantity,
                        name,
                        *(found[key] for key in ("accuracy", "control", "selectivity")),
                    )
                )
        return Table("Probes with a control task, split by sample (ours)", columns, tuple(rows))


def _named(found: GroupsResult, name: str) -> Measures:
    values = found.estimates()
    return {
        f"units_{name}": values["first-class: units"],
        f"units_all_{name}": values["aggregate: units"],
        f"full_{name}": values["first-class: full accuracy"],
        f"group_{name}": values["first-class: accuracy"],
    }


def _row(what: str, model: str, found: GroupsResult) -> tuple[object, ...]:
    values = found.estimates()
    return (
        what,
        model,
        values["first-class: accuracy"],
        values["first-class: full accuracy"],
        values["first-class: units"],
        values["aggregate: units"],
    )
