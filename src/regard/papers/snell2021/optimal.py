"""snell2021, appendix A.1: is the best attention where the lexical probe is high?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.scores._optimal_weights import optimal_weights
from regard.instruments.scores.optimal_attention import AGREEMENTS, optimal_attention
from regard.papers.framework import EXPERIMENTS, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import subtract, to_percent
from regard.papers.snell2021._data_sets import name_differences
from regard.papers.snell2021._with_sets import WithSets, plan_models
from regard.runs import Run, RunConfig
from regard.statistics import Estimate

NAME = "multi30k"
ADDITIVE = {"readout": "sum", "readout_layer": "none"}  # p = softmax(W(c + s)), eq. 32
GAMMA = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # eq. 30; the first word is right
BEST = (0.0, 0.5, 0.5)
SURE = 1e-12  # the gap asked of that example: near its minimum the loss is flat
SENTENCES = {"quick": 30, "full": 300}


def add_up(config: RunConfig) -> RunConfig:
    """The same run with state and context added up before the output layer."""
    return replace(config, model=config.model.model_copy(update=ADDITIVE))


def solve_counterexample() -> tuple[float, ...]:
    """The best weights over the three positions of eq. 30."""
    gamma = torch.tensor([GAMMA], dtype=torch.float64)  # (row, source, vocab)
    none, first = torch.zeros_like(gamma[:, 0]), torch.zeros(1, dtype=torch.long)
    found = optimal_weights(gamma, none, first, torch.ones(1, 3, dtype=torch.bool), SURE)
    return tuple(found.weights[0].tolist())


def read_bleu(runs: Sequence[Run]) -> Estimate:
    """BLEU on the test sentences, as every run of a translation ends with."""
    return Estimate.of((run.metrics["bleu"] for run in runs), (0.0, 100.0))


@EXPERIMENTS.register("snell2021/optimal")
class OptimalExperiment(WithSets):
    """Where a model had best looked, and what it knows of single words."""

    title = "The best attention and the lexical probe"
    about = (
        "A model whose logits are a sum over source positions, so that convex optimisation finds"
        " the attention α^opt that costs least (A.1); its BLEU beside that of the standard model."
    )
    claims = ("snell.optimal",)
    kinds = ("translation",)
    about_set = NAME

    def plan(self, scale: Scale) -> Plan:
        """The models of the agreement experiment, and the same with the additive output."""
        standard = plan_models(NAME, self.find_sets(scale)[NAME], scale)[f"{NAME} attention"]
        few = standard[:1] if scale == "quick" else standard
        return {"standard": few, "additive": list(map(add_up, few))}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """α^opt of held-out sentences with its certificate, the example, and BLEU."""
        found = optimal_attention(runs["additive"], n=SENTENCES[scale], split="validation")
        weights, estimates = solve_counterexample(), found.estimates()
        scores = {name: read_bleu(group) for name, group in runs.items()}
        measures = {
            "agreement": estimates[AGREEMENTS[0]],
            "gap": Estimate.of([max(seed.found["largest gap"] for seed in found.seeds)]),
            "counterexample": Estimate.of(
                [max(abs(a - b) for a, b in zip(weights, BEST, strict=True))]
            ),
            "bleu_difference": subtract(scores["additive"], scores["standard"]),
            "alpha_best": estimates[AGREEMENTS[1]],
            "alpha_beta": estimates[AGREEMENTS[2]],
            "passed_over": estimates["largest β passed over"],
        }
        bleus = {f"BLEU, {name}": value for name, value in scores.items()}
        beta = torch.tensor(GAMMA, dtype=torch.float64).softmax(dim=1)[:, 0].tolist()
        return Findings.of(
            {"snell.optimal": measures},
            Table.of("The best attention of the additive model", estimates | bleus),
            Table(
                "Three words (eq. 30)",
                ("position", "β", "α^opt"),
                tuple(zip((1, 2, 3), beta, weights, strict=True)),
            ),
            found.figure(),
            Figure.of(
                "snell-optimal-bleu",
                "BLEU of the standard and of the additive model on the test sentences, beam of 5;"
                " whiskers are 95 % intervals over seeds.",
                Panel.of("Translation", "output", "BLEU", Bars.of("", scores)),
            ),
            f"α^opt is that of {SENTENCES[scale]} held-out sentences. In"
            f" {to_percent(measures['passed_over'])} of the target words it gives no"
            " weight at all to the position with the highest β.",
            *name_differences([NAME]),
        )
