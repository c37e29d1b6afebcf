"""aitken2021, supplement: other cells and attentions; and the causal test of this project."""

from __future__ import annotations

from regard.display import Figure, Table
from regard.instruments import ablate, breakdown, paths
from regard.papers.aitken2021.escan import escan
from regard.papers.aitken2021.looking import accuracy, count, joined, looked
from regard.papers.aitken2021.one_to_one import one_to_one
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

# condition -> preset, and what is changed in it
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "aed_lstm": ("aed", {"cell": "lstm-renn"}),
    "aed_ugrnn": ("aed", {"cell": "ugrnn"}),
    "aed_learned": ("aed", {"attention": "scaled", "attention_size": 32}),
    "ao_learned": ("ao", {"attention": "scaled", "attention_size": 32}),
    "ao_plain": ("ao", {"cell": "tanh"}),
}


def longest(scale: Scale) -> dict[str, object]:
    """Variants are trained for less time: there are many of them."""
    return {"updates": 1500 if scale == "full" else 900}


@experiments.register("aitken2021/variants")
class VariantsExperiment(Experiment):
    """Do the findings hang on the cell or the attention?"""

    title = "Other cells, learned attention, a plain feed-forward AO"
    about = "One-to-one translation with LSTM, UGRNN, learned queries and keys, and tanh layers."
    claims = ("ait.variants",)

    def plan(self, scale: Scale) -> Plan:
        """One condition per variant."""
        return {
            name: one_to_one(preset, scale, **{**longest(scale), **changes})
            for name, (preset, changes) in VARIANTS.items()
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """μ·μ and the diagonal, for each variant."""
        own: Measures = {}
        figures = []
        for name in VARIANTS:
            seen = looked(runs[name])
            path = paths(seen)
            own[f"temporal_{name}"] = breakdown(seen).estimates()["temporal-temporal"]
            own[f"diagonal_{name}"] = path.estimates()["diagonal"]
            own[f"accuracy_{name}"] = accuracy(runs[name])
            figures.append(path.figure())
        rows = tuple(
            (name, *(own[f"{what}_{name}"] for what in ("accuracy", "temporal", "diagonal")))
            for name in VARIANTS
        )
        table = Table("Variants", ("variant", "word accuracy", "μ·μ", "diagonal"), rows)
        figure = joined(
            "ait-variants",
            "Temporal components of each variant, first seed.",
            *figures[:3],
            titles=tuple(VARIANTS)[:3],
        )
        other = joined(
            "ait-variants-ao",
            "Temporal components of each variant without recurrence or with learned attention.",
            *figures[3:],
            titles=tuple(VARIANTS)[3:],
        )
        return Findings({"ait.variants": own}, (table,), (figure, other))


@experiments.register("aitken2021/causal")
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
        short = {"updates": 1500} if scale == "quick" else {}
        return {
            "one_to_one_aed": one_to_one("aed", scale),
            "one_to_one_ao": one_to_one("ao", scale),
            "escan_aed": escan("aed", scale),
            "sorting_aed": seeds(count(scale), "sorting", "aed", **short),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """What is lost by each change of the alignment."""
        own: Measures = {}
        tables: list[Table] = []
        figures: list[Figure] = []
        for name, group in runs.items():
            result = ablate(list(group), n=400)
            found = result.estimates()
            own[f"{name}_baseline"] = found["baseline"]
            for part in ("temporal", "input", "delta"):
                own[f"{name}_without_{part}"] = found[f"remove {part} from alignment"]
                own[f"{name}_wrong_{part}"] = found[f"swap {part} in alignment"]
            table = result.table()
            tables.append(Table(f"{name}: {table.title}", table.columns, table.rows))
            figures.append(result.figure())
        figure = joined(
            "ait-causal",
            figures[0].caption,
            *figures,
            titles=tuple(name.replace("_", " ") for name in runs),
        )
        return Findings({"ait.causal": own}, tuple(tables), (figure,))
