"""aitken2021, supplement: other cells and attentions; and the causal test of this project."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from regard.display import Figure, Table
from regard.instruments.components import breakdown, trajectories
from regard.instruments.interventions import ablate
from regard.papers.aitken2021._attention import WORDS, record_runs
from regard.papers.aitken2021.escan import plan_escan
from regard.papers.aitken2021.one_to_one import plan_one_to_one
from regard.papers.aitken2021.orders import plan_sorting
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import join_figures, read_share

UPDATES = {"quick": 900, "full": 1500}  # less time than others have: there are many of them
# condition -> preset, and what is changed in it
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "aed_lstm": ("aed", {"cell": "lstm-renn"}),
    "aed_ugrnn": ("aed", {"cell": "ugrnn"}),
    "aed_learned": ("aed", {"attention": "scaled", "attention_size": 32}),
    "ao_learned": ("ao", {"attention": "scaled", "attention_size": 32}),
    "ao_plain": ("ao", {"cell": "tanh"}),
}


@EXPERIMENTS.register("aitken2021/variants")
class VariantsExperiment(Experiment):
    """Do the findings hang on the cell or the attention?"""

    title = "Other cells, learned attention, a plain feed-forward AO"
    about = "One-to-one translation with LSTM, UGRNN, learned queries and keys, and tanh layers."
    claims = ("ait.variants",)

    def plan(self, scale: Scale) -> Plan:
        """One condition per variant."""
        return {
            name: plan_one_to_one(preset, scale, updates=UPDATES[scale], **changes)
            for name, (preset, changes) in VARIANTS.items()
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """μ·μ and the diagonal, for each variant."""
        seen = {name: record_runs(runs[name]) for name in VARIANTS}
        path = {name: trajectories(seen[name]) for name in VARIANTS}
        found = {
            "accuracy": {name: read_share(runs[name], WORDS) for name in VARIANTS},
            "temporal": {n: breakdown(seen[n]).estimates()["temporal-temporal"] for n in VARIANTS},
            "diagonal": {name: path[name].estimates()["diagonal"] for name in VARIANTS},
        }
        columns = dict(zip(("word accuracy", "μ·μ", "diagonal"), found.values(), strict=True))
        figures = {name: path[name].figure() for name in VARIANTS}
        return Findings.of(
            {"ait.variants": {f"{w}_{n}": v for w, by in found.items() for n, v in by.items()}},
            Table.of_columns("Variants", "variant", columns),
            join_figures(
                "ait-variants",
                "Temporal components of each variant, first seed.",
                dict(islice(figures.items(), 3)),
            ),
            join_figures(
                "ait-variants-ao",
                "Temporal components of each variant without recurrence or with learned attention.",
                dict(islice(figures.items(), 3, None)),
            ),
        )


@EXPERIMENTS.register("aitken2021/causal")
class CausalExperiment(Experiment):
    """Shares describe; do they also predict?"""

    title = "Does accuracy follow what the shares predict?"
    about = (
        "Each component is removed from the alignment, or replaced by a wrong one, and the model"
        " runs on. A claim of this project: the term with the largest share decides."
    )
    claims = ("ait.causal",)

    def plan(self, scale: Scale) -> Plan:
        """One-to-one, where time should decide, and sorting, where it should not."""
        return {
            "one_to_one_aed": plan_one_to_one("aed", scale),
            "one_to_one_ao": plan_one_to_one("ao", scale),
            "escan_aed": plan_escan("aed", scale),
            "sorting_aed": plan_sorting(scale),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """What is lost by each change of the alignment."""
        own: Measures = {}
        tables: list[Table] = []
        figures: dict[str, Figure] = {}
        for name, group in runs.items():
            result = ablate(list(group), n=400)
            found = result.estimates()
            own[f"{name}_baseline"] = found["baseline"]
            for part in ("temporal", "input", "delta"):
                own[f"{name}_without_{part}"] = found[f"remove {part} from alignment"]
                own[f"{name}_wrong_{part}"] = found[f"swap {part} in alignment"]
            table = result.table()
            tables.append(replace(table, title=f"{name}: {table.title}"))
            figures[name.replace("_", " ")] = figure = result.figure()
        joined = join_figures("ait-causal", figure.caption, figures)
        return Findings.of({"ait.causal": own}, *tables, joined)
