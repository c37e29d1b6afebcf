"""baan2019, Tables 5 and 6: who is compositional; longer compositions; LSTM cells."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from regard.display import Figure, Table
from regard.papers.baan2019._lookup import LONGER, MODELS, SPLITS, Lookup, draw_splits, read_splits
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.runs import Run, RunConfig
from regard.statistics import Estimate
from regard.training import Trainer, one_thread


def list_by_run(title: str, runs: Sequence[Run]) -> Table:
    """A row per run, as the paper's tables have it."""
    columns = (*SPLITS, *(f"longer_{name}" for name in LONGER))
    rows = tuple(
        (run.config.seed, *(float(run.metrics[split]) for split in columns)) for run in runs
    )
    return Table(title, ("seed", *columns), rows)


@EXPERIMENTS.register("baan2019/accuracy")
class AccuracyExperiment(Lookup):
    """Guided against baseline on every split."""

    title = "Lookup tables: guided models and baselines"
    about = (
        "Sequence accuracy of models with and without attentive guidance on inputs, compositions"
        " and tables that training held out (Tables 5 and 6), and on three tables in a row."
    )
    claims = ("baan.accuracy", "baan.fast", "baan.longer")

    def plan(self, scale: Scale) -> Plan:
        """Both models by the scale's recipe, and guided ones by the fast recipe."""
        return {**super().plan(scale), "fast": self.plan_models(scale, 1, recipe="fast")}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by split."""
        names = (*MODELS, "fast")
        found = {name: read_splits(runs[name]) for name in names}
        longer = {name: read_splits(runs[name], LONGER, "longer_") for name in names}
        table = {f"{name}_{split}": found[name][split] for name in MODELS for split in SPLITS}
        worst = {
            f"worst_{split}": Estimate.share([min(found["fast"][split].values)]) for split in SPLITS
        }
        fast: Measures = {f"fast_{split}": found["fast"][split] for split in SPLITS}
        paper = self.plan_models("full", 1)[0]
        reference = {"time_share": Estimate.of([compare_times(runs["fast"][0].config, paper)])}
        return Findings.of(
            {
                "baan.accuracy": table,
                "baan.fast": {**worst, **fast, **reference},
                "baan.longer": {
                    f"{name}_{part}": longer[name][part] for name in MODELS for part in LONGER
                },
            },
            list_by_run("Baseline, by seed (Table 5)", runs["baseline"]),
            list_by_run("Guided, by seed (Table 6)", runs["guided"]),
            list_by_run("Guided by the fast recipe, by seed", runs["fast"]),
            Figure.of(
                "baan-accuracy",
                "Sequence accuracy on held-out inputs (HI), held-out compositions (HC), tables"
                " that were only seen alone (HT), compositions of two of these (NC), and three"
                f" tables in a row; {len(runs['guided'])} seeds.",
                draw_splits("Two tables", found),
                draw_splits("Three tables", longer),
            ),
        )


def compare_times(fast: RunConfig, paper: RunConfig, rounds: int = 5, updates: int = 20) -> float:
    """How long the fast recipe takes, as a share of the paper's.

    Updates of both are timed here and now in turns, so that the machine treats both alike; the
    median over rounds of their ratio, times the ratio of their numbers.
    """
    trainers = []
    for config in (fast, paper):
        task = config.make_task()
        trainers.append(Trainer(config.make_model(task), task, config.training, config.seed))
    ratios = []
    with one_thread():
        for _ in range(rounds + 1):
            seconds = []
            for trainer in trainers:
                start = perf_counter()
                for _ in range(updates):
                    trainer.step()
                seconds.append(perf_counter() - start)
            ratios.append(seconds[0] / seconds[1])
    each = float(np.median(ratios[1:]))  # the first round warms up
    return each * fast.training.updates / paper.training.updates


@EXPERIMENTS.register("baan2019/lstm")
class LSTMExperiment(Lookup):
    """The same with LSTM cells."""

    title = "Lookup tables with LSTM cells"
    about = "Guided models and baselines with LSTM cells, beside those with GRUs (footnote 1)."
    claims = ("baan.lstm",)

    def plan(self, scale: Scale) -> Plan:
        """Both cells, guided and not."""
        return {
            **super().plan(scale),
            "lstm": self.plan_models(scale, 1, cell="lstm"),
            "lstm baseline": self.plan_models(scale, 0, cell="lstm"),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by split."""
        names = {"guided": "gru", "lstm": "lstm", "baseline": "gru baseline",
                 "lstm baseline": "lstm baseline"}  # fmt: skip
        found = {name: read_splits(runs[condition]) for condition, name in names.items()}
        measures = {
            f"{cell}_{split}": found[cell][split] for cell in ("gru", "lstm") for split in SPLITS
        }
        return Findings.of(
            {"baan.lstm": measures},
            list_by_run("Guided LSTM, by seed", runs["lstm"]),
            Figure.of(
                "baan-lstm",
                f"Sequence accuracy with GRU and LSTM cells, {len(runs['lstm'])} seeds.",
                draw_splits("By cell", found),
            ),
        )
