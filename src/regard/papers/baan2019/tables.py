"""baan2019 on other tables than those that its recipe was looked for on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from regard.display import Figure, Panel, Points, Rule, Table
from regard.papers.baan2019._lookup import SPLITS, draw_splits, read_splits
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import SHARE
from regard.runs import Run, RunConfig, assemble
from regard.statistics import Estimate

SETS = {"quick": 2, "full": 10}  # sets of tables, those of seeds 1, 2, …
PAPERS = {"quick": 1, "full": 3}  # of them, by the paper's recipe, too
REPEATS = {"quick": 2, "full": 5}  # models on the first set
WANTED = 0.69  # of NC, in the mean


def plan_guided(tables: int, seed: int, scale: Scale, recipe: str) -> RunConfig:
    """A guided model on the tables that the generator makes of a seed."""
    short = {"updates": 2000 if recipe == "fast" else 4000} if scale == "quick" else {}
    settings = {"guidance": 1, "recipe": recipe, "tables_seed": tables, **short}
    return assemble("lookup", "baan", seed, settings)


@EXPERIMENTS.register("baan2019/tables")
class TablesExperiment(Experiment):
    """The fast recipe where it was not looked for."""

    title = "Guided models on other tables"
    about = (
        "The fast recipe was looked for on one set of tables. Here the generator makes others: one"
        " guided model on each of ten sets, the paper's recipe beside it on three of them, and"
        " several models on the first set, so that what differs between sets can be told from what"
        " differs between models on the same set."
    )
    claims = ("baan.fast-tables",)

    def plan(self, scale: Scale) -> Plan:
        """A model per set; the paper's recipe; several models on one set."""
        sets = range(1, SETS[scale] + 1)
        return {
            "fast": [plan_guided(number, number, scale, "fast") for number in sets],
            "paper": [
                plan_guided(number, number, scale, "paper") for number in sets[: PAPERS[scale]]
            ],
            "one set": [
                plan_guided(1, seed, scale, "fast") for seed in range(1, REPEATS[scale] + 1)
            ],
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by split over sets, and where its spread comes from."""
        found = {name: read_splits(runs[name]) for name in runs}
        own: Measures = {
            f"{name.replace(' ', '_')}_{split}": found[name][split]
            for name in runs
            for split in SPLITS
        }
        shares = {
            split: share_of_tables(found["fast"][split], found["one set"][split])
            for split in SPLITS
        }
        own |= {f"tables_share_{split}": share for split, share in shares.items()}
        sets = [f"tables of seed {run.config.task.tables_seed}" for run in runs["fast"]]  # type: ignore[attr-defined]
        return Findings.of(
            {"baan.fast-tables": own},
            list_sets(sets, runs["fast"], runs["paper"]),
            Table.of_columns("Means over sets, and over models on one set", "split", found),
            Figure.of(
                "baan-tables",
                f"Guided models by the fast recipe on {len(sets)} sets of tables, by the paper's"
                f" recipe on {len(runs['paper'])} of them, and {len(runs['one set'])} models on one"
                " set. Left: means and 95 % intervals. Right: the compositions of two unseen tables"
                " (NC), set by set.",
                draw_splits("By split", found),
                draw_sets(runs["fast"], runs["paper"]),
            ),
            "Of the variance of NC between models on different sets,"
            f" {shares['NC'].mean:.0%} is more than models on one set have: that is what the tables"
            " contribute.",
        )


def share_of_tables(over_sets: Estimate, on_one_set: Estimate) -> Estimate:
    """The share of the variance over sets that models on one set do not have; one number.

    Negative differences count as none; without any variance nothing is shared.
    """
    if min(over_sets.n, on_one_set.n) < 2:
        return Estimate.of([math.nan])
    whole, within = (float(np.var(e.values, ddof=1)) for e in (over_sets, on_one_set))
    return Estimate.of([max(0.0, 1 - within / whole) if whole else 0.0], SHARE)


def list_sets(names: Sequence[str], fast: Sequence[Run], paper: Sequence[Run]) -> Table:
    """A row per set: the fast recipe's accuracies, and the paper's where there are some."""
    theirs = {run.config.seed: run for run in paper}
    rows = tuple(
        (
            name,
            *(float(run.metrics[split]) for split in SPLITS),
            *(
                float(theirs[run.config.seed].metrics[split]) if run.config.seed in theirs else "–"
                for split in SPLITS
            ),
        )
        for name, run in zip(names, fast, strict=True)
    )
    columns = ("set", *(f"{s}, fast" for s in SPLITS), *(f"{s}, paper's" for s in SPLITS))
    return Table("Guided models, set by set", columns, rows)


def draw_sets(fast: Sequence[Run], paper: Sequence[Run]) -> Panel:
    """NC of every set, by recipe."""
    points = (
        Points(
            label,
            tuple(float(run.config.seed) for run in runs),
            tuple(float(run.metrics["NC"]) for run in runs),
            colour,
        )
        for colour, (label, runs) in enumerate((("fast", fast), ("paper's", paper)))
    )
    rule = Rule("wanted in the mean", y=WANTED)
    axes = "seed of the tables", "sequence accuracy"
    return Panel("NC, set by set", *axes, (*points, rule), (0, 1.05))
