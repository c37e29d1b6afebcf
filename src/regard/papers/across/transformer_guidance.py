"""Does attentive guidance (baan2019) help a Transformer on lookup tables?"""

from __future__ import annotations

from regard.display import Figure, Table
from regard.papers.across._transformers import plan_transformer_lookup
from regard.papers.baan2019._lookup import MODELS, SPLITS, draw_splits, read_splits
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, subtract


@EXPERIMENTS.register("across/transformer-guidance")
class TransformerGuidanceExperiment(Experiment):
    """Guided and unguided Transformers on every split."""

    title = "Attentive guidance of a Transformer"
    about = (
        "Lookup tables of the generator, a Transformer of two layers and four heads; guidance"
        " pulls all heads of both layers to the diagonal."
    )
    claims = ("x.transformer-guidance",)

    def plan(self, scale: Scale) -> Plan:
        """Both, with the same seeds."""
        return {name: plan_transformer_lookup(scale, weight) for name, weight in MODELS.items()}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by split, and what guidance adds."""
        found = {name: read_splits(runs[name]) for name in MODELS}
        guided, plain = found["guided"], found["baseline"]
        own: Measures = {f"more_{s}": subtract(guided[s], plain[s], CHANGE) for s in SPLITS}
        own |= {f"{name}_{split}": found[name][split] for name in MODELS for split in SPLITS}
        count = len(runs["guided"])
        return Findings.of(
            {"x.transformer-guidance": own},
            Table.of_columns("Sequence accuracy", "split", found),
            Figure.of(
                "x-transformer-guidance",
                f"Sequence accuracy of Transformers with and without guidance, {count} seeds.",
                draw_splits("Transformers on lookup tables", found),
            ),
        )
