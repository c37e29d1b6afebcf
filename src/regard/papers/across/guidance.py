"""What attentive guidance (baan2019) does to the nine terms (aitken2021) and to β (snell2021)."""

from __future__ import annotations

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.components import breakdown
from regard.instruments.components._terms import TERMS
from regard.papers.across._positions import share_lexical
from regard.papers.baan2019._lookup import MODELS, ROWS, Lookup, record_runs
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import (
    CHANGE,
    count_seeds,
    measure_each,
    plan_seeds,
    read_share,
    subtract,
)
from regard.recordings.record import record

UPDATES = {"quick": 600, "full": 3000}


@EXPERIMENTS.register("across/guided-terms")
class GuidedTermsExperiment(Lookup):
    """The nine terms of guided models and baselines."""

    title = "What guidance does to the nine terms"
    about = (
        "Lookup tables, guided and not: baan2019's model, whose scores are not bilinear and are"
        " taken apart by substitution, and AED, whose nine terms add up and whose output network"
        " can be asked for β. baan2019's model is trained by the fast recipe."
    )
    claims = ("x.guided-terms",)

    def plan(self, scale: Scale) -> Plan:
        """Both models with and without guidance."""
        named = {"data": self.data["lookup"]} if "lookup" in self.data else {}
        settings = {"updates": UPDATES[scale], **named}
        ours = {f"baan {name}": runs for name, runs in self.plan_fast(scale).items()}
        return ours | {
            f"aed {name}": plan_seeds(
                count_seeds(scale), "lookup", "aed", guidance=weight, **settings
            )
            for name, weight in MODELS.items()
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Shares of all terms, and where β is right."""
        found = {name: breakdown(record_runs(runs[name])) for name in runs}
        own: Measures = {}
        for model in ("baan", "aed"):
            time = {name: found[f"{model} {name}"].estimates()[TERMS[0]] for name in MODELS}
            own |= {f"time_{model}_{name}": value for name, value in time.items()}
            own[f"more_time_{model}"] = subtract(time["guided"], time["baseline"], CHANGE)
            for name in MODELS:
                own[f"NC_{model}_{name}"] = read_share(runs[f"{model} {name}"], "NC")
        lexical = {
            name: measure_each(
                (
                    record(run, n=ROWS, split="all", also=("lexical",))
                    for run in runs[f"aed {name}"]
                ),
                share_lexical,
            )
            for name in MODELS
        }
        own |= {f"lexical_aed_{name}": value for name, value in lexical.items()}
        own["more_lexical_aed"] = subtract(lexical["guided"], lexical["baseline"], CHANGE)
        panels = tuple(
            Panel(
                f"{model} on lookup tables", "", "share", tuple(
                    Bars.of(name, found[f"{model} {name}"].estimates(), colour)
                    for colour, name in enumerate(MODELS)
                ), (0, 1), wide=True,
            )
            for model in ("baan", "aed")
        )  # fmt: skip
        figure = Figure(
            "x-guided-terms",
            "Shares of the nine terms of the alignment, guided models against baselines; means and"
            " 95 % intervals over seeds. The first name is the query's part.",
            panels,
        )
        return Findings({"x.guided-terms": own}, (Table.of("Guided terms", own),), (figure,))
