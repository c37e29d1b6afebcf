"""An alignment taken apart: what makes attention look where it looks."""

from __future__ import annotations

from regard.display import Figure
from regard.instruments.components import breakdown, trajectories
from regard.papers.aitken2021._attention import ALL_PAIRS, WORDS, draw_terms
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import plan_seeds, to_percent
from regard.statistics import Estimate

TIME = ("temporal", "temporal")
REST = tuple(pair for pair in ALL_PAIRS if pair != TIME)


@EXPERIMENTS.register("demo/taken-apart")
class TakenApart(Experiment):
    """One model that attends, and the nine terms of its scores."""

    title = "An alignment, taken apart"
    about = (
        "A GRU encoder-decoder with attention learns to translate word by word. Every hidden state"
        " is a sum of three parts: what its step does (μ, temporal), what its word does (χ, input),"
        " and the rest (Δ, delta). A score is a product of two states, so it is a sum of nine"
        " terms, and each can be looked at alone (aitken2021)."
    )

    def plan(self, scale: Scale) -> Plan:
        """One seed."""
        return {"aed": plan_seeds(1, "one-to-one", "aed", updates=800)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The shares of the nine terms, and the attention that some of them would make alone."""
        run = runs["aed"][0]
        recording = run.record(n=500)
        shares, paths = breakdown(recording), trajectories(recording)
        time = shares.estimates()["temporal-temporal"]
        right = Estimate.share([run.metrics[WORDS]])
        return Findings.of(
            {},
            shares.table(),
            Figure.of(
                "demo-apart",
                "Attention of one sample: as it is, as μ·μ alone would make it, and as all other"
                " terms would. Rows are words that the decoder writes, columns words that the"
                " encoder read.",
                draw_terms(recording, 0, "All nine terms", *ALL_PAIRS),
                draw_terms(recording, 0, "Time alone: μ·μ", TIME),
                draw_terms(recording, 0, "Everything but time", *REST),
            ),
            shares.figure(),
            paths.figure(),
            f"The model gets {to_percent(right)} of the words right. {to_percent(time)} of its"
            " scores is time meeting time (μ·μ): it looks at a place, whatever the word there.",
        )
