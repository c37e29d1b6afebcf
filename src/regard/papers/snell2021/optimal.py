"""snell2021, appendix A.1: is the best attention where the lexical probe is high?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.optimal_attention import AGREEMENTS, OptimalResult, optimal_attention
from regard.instruments.optimal_weights import optimal_weights
from regard.papers.experiment import Findings, Plan, Runs, Scale, experiments
from regard.papers.snell2021.agreement import WithSets, models_of
from regard.runs import Run, RunConfig
from regard.statistics import Estimate

NAME = "multi30k"
ADDITIVE = {"readout": "sum", "readout_layer": "none"}  # p = softmax(W(c + s)), eq. 32
GAMMA = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # eq. 30; the first word is right
BEST = (0.0, 0.5, 0.5)
SURE = 1e-12  # the gap asked of that example: near its minimum the loss is flat
SENTENCES = {"quick": 30, "full": 300}


def added(config: RunConfig) -> RunConfig:
    """The same run with state and context added up before the output layer."""
    return replace(config, model=config.model.model_copy(update=ADDITIVE))


def counterexample() -> tuple[float, ...]:
    """The best weights over the three positions of eq. 30."""
    gamma = torch.tensor([GAMMA], dtype=torch.float64)  # (row, source, vocab)
    none, first = torch.zeros_like(gamma[:, 0]), torch.zeros(1, dtype=torch.long)
    found = optimal_weights(gamma, none, first, torch.ones(1, 3, dtype=torch.bool), SURE)
    return tuple(found.weights[0].tolist())


def bleu_of(runs: Sequence[Run]) -> Estimate:
    """BLEU on the test sentences, as every run of a translation ends with."""
    return Estimate.of((run.metrics["bleu"] for run in runs), (0.0, 100.0))


@experiments.register("snell2021/optimal")
class OptimalExperiment(WithSets):
    """Where a model had best looked, and what it knows of single words."""

    title = "The best attention and the lexical probe"
    about = (
        "A model whose logits are a sum over source positions, so that convex optimisation finds"
        " the attention α^opt that costs least (A.1); its BLEU beside that of the standard model."
    )
    claims = ("snell.optimal",)
    kinds = ("translation",)

    def lacks(self, scale: Scale) -> str | None:
        """The claim is about Multi30k."""
        if NAME in self.sets(scale):
            return None
        return "Multi30k, which does not come with Regard: --data multi30k=FOLDER"

    def plan(self, scale: Scale) -> Plan:
        """The models of the agreement experiment, and the same with the additive output."""
        standard = models_of(NAME, self.sets(scale)[NAME], scale)[f"{NAME} attention"]
        few = standard[:1] if scale == "quick" else standard
        return {"standard": few, "additive": list(map(added, few))}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """α^opt of held-out sentences with its certificate, the example, and BLEU."""
        found = optimal_attention(runs["additive"], SENTENCES[scale], split="validation")
        weights, estimates = counterexample(), found.estimates()
        scores = {name: bleu_of(group) for name, group in runs.items()}
        pairs = zip(scores["additive"].values, scores["standard"].values, strict=True)
        measures = {
            "agreement": estimates[AGREEMENTS[0]],
            "gap": Estimate.of([max(seed.found["largest gap"] for seed in found.seeds)]),
            "counterexample": Estimate.of(
                [max(abs(a - b) for a, b in zip(weights, BEST, strict=True))]
            ),
            "bleu_difference": Estimate.of(a - b for a, b in pairs),
            "alpha_best": estimates[AGREEMENTS[1]],
            "alpha_beta": estimates[AGREEMENTS[2]],
            "passed_over": estimates["largest β passed over"],
        }
        return Findings(
            {"snell.optimal": measures},
            (_table(found, scores), _example(weights)),
            (found.figure(), _figure(scores)),
            (
                f"α^opt is that of {SENTENCES[scale]} held-out sentences. In"
                f" {100 * measures['passed_over'].mean:.0f} % of the target words it gives no"
                " weight at all to the position with the highest β.",
            ),
        )


def _table(found: OptimalResult, scores: dict[str, Estimate]) -> Table:
    bleus = tuple((f"BLEU, {name}", value) for name, value in scores.items())
    rows = (*found.estimates().items(), *bleus)
    return Table("The best attention of the additive model", ("what", "measured"), rows)


def _example(weights: tuple[float, ...]) -> Table:
    beta = torch.tensor(GAMMA, dtype=torch.float64).softmax(dim=1)[:, 0].tolist()
    rows = tuple(
        (position, *values) for position, values in enumerate(zip(beta, weights, strict=True), 1)
    )
    return Table("Three words (eq. 30)", ("position", "β", "α^opt"), rows)


def _figure(scores: dict[str, Estimate]) -> Figure:
    bars = Bars.of("", scores)
    return Figure(
        "snell-optimal-bleu",
        "BLEU of the standard and of the additive model on the test sentences, beam of 5; whiskers"
        " are 95 % intervals over seeds.",
        (Panel("Translation", "output", "BLEU", (bars,)),),
    )
