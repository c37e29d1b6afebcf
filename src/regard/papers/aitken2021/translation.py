"""aitken2021, section 4: English to French (Fig. 4)."""

from __future__ import annotations

import numpy as np

from regard.display import Figure, Table
from regard.instruments.components import dictionary, trajectories
from regard.papers.aitken2021._attention import (
    FORCED,
    REACH,
    WORDS,
    correlate_order,
    draw_attention,
    record_runs,
)
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, measure_each, plan_seeds, read_share
from regard.recordings.recording import Recording
from regard.runs import RunConfig

MODELS = ("aed", "ao")
CORPUS = "english-french"
# The paper keeps 30,000 words of a corpus of millions of sentences; of one of a hundred thousand,
# the 4,000 most frequent words are over 90 % of the text, and training takes a sixth of the time.
# In so many updates every sentence of Tatoeba's English and French is seen more than once.
LIMITS = {"vocabulary": 4000, "held_out": 1000, "updates": 3600}


def plan_translation(
    model: str, scale: Scale, corpus: str | None, **overrides: object
) -> list[RunConfig]:
    """The runs of one architecture, on the shipped corpus or on one that the user names."""
    own: dict[str, object] = {"source": corpus, "bad_lines": "skip", **LIMITS} if corpus else {}
    if scale == "quick":
        own = {**own, "updates": 1000}
    return plan_seeds(scale, "parallel", model, **{**own, **overrides})


class WithCorpus(Experiment):
    """An experiment that translates."""

    wants = (CORPUS,)

    def plan_translations(self, scale: Scale) -> Plan:
        """Both architectures with attention."""
        corpus = self.data.get(CORPUS)
        return {f"translation {model}": plan_translation(model, scale, corpus) for model in MODELS}

    def name_corpus(self, scale: Scale) -> str:
        """Which corpus it was, in words."""
        if CORPUS in self.data:
            return "Translation on the corpus that was named (its hash is in each run)."
        return f"Translation on the small shipped corpus; name another with --data {CORPUS}=FILE."


@EXPERIMENTS.register("aitken2021/translation")
class TranslationExperiment(WithCorpus):
    """Natural language: nearly diagonal, but not in every sentence."""

    title = "English to French"
    about = "Sample attention, temporal components, and the dictionary of the readouts (Fig. 4)."
    claims = ("ait.translation",)

    def plan(self, scale: Scale) -> Plan:
        """Both architectures."""
        return self.plan_translations(scale)

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """How diagonal attention is, and temporal alignment early against late."""
        own: Measures = {}
        figures = []
        for name, group in runs.items():
            model, sources = name.split(" ")[1], record_runs(group)
            own[f"follows_{model}"] = measure_each(sources, correlate_order, CHANGE)
            own[f"early_minus_late_{model}"] = measure_each(sources, compare_halves, CHANGE)
            own[f"accuracy_{model}"] = read_share(group, WORDS)
            own[f"forced_{model}"] = read_share(group, FORCED)
            figures.append(
                Figure.of(
                    f"ait-translation-{model}",
                    f"{model.upper()}, English to French (Fig. 4), first of {len(sources)} seeds."
                    f" {self.name_corpus(scale)}",
                    draw_attention(sources[0], 3),
                    *trajectories(sources, reach=REACH).figure().panels,
                    *dictionary(sources).figure().panels,
                )
            )
        table = Table.of("Translation", own)
        return Findings.of({"ait.translation": own}, table, *figures, self.name_corpus(scale))


def compare_halves(source: Recording) -> float:
    """Weight of softmax(μ·μ) on the diagonal and its neighbours, first half less second half."""
    attention = trajectories(source, reach=REACH).first.attention
    steps = min(attention.shape)
    near = [attention[s, max(0, s - 1) : s + 2].sum() for s in range(steps)]
    half = steps // 2
    return float(np.mean(near[:half]) - np.mean(near[half:]))
