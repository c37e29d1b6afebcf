"""Addition: the edge of the training distribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import cast

import numpy as np

from regard.display import Bars, Figure, Heat, Panel, Points, Rule, Table
from regard.papers.chapter36._lengths import TRIALS, measure_accuracy, vary_task
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, draw_shares, plan_seeds, to_percent
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks.synthetic.addition import Addition
from regard.training import predict

PLACES = ("units", "tens", "hundreds")
SIZES = range(1, 5)  # digits of an operand
SEEDS = 20  # of the source's settings: its single run is one draw of these
NEAR = 0.9  # of the sums right: near what the source prints
SCRATCHPAD_UPDATES = {"quick": 700, "full": 4000}
MASKED_UPDATES = {"quick": SCRATCHPAD_UPDATES["quick"], "full": 2000}


def measure_digits(runs: Sequence[Run], sizes: Iterable[tuple[int, int]]) -> dict[str, Estimate]:
    """Exact match on operands of exactly so many digits, over seeds: `2+2` and so on."""
    models = [run.model() for run in runs]
    return {
        (digits := f"{a}+{b}"): measure_accuracy(runs, models, digits=digits, sampling="digits")
        for a, b in sizes
    }


@EXPERIMENTS.register("chapter36/addition")
class Sums(Experiment):
    """Two-digit addition, and everything around it."""

    title = "Addition and the limits of memorisation"
    about = (
        "The model is trained on sums of two numbers drawn from 0 to 99 and tested on operands"
        " of exactly one to four digits each. An algorithm would carry over; a table does not."
        " The claims are judged with the source's settings, where the encoder reads the padding"
        " of shorter sums in training and finds none at test time; beside them stands the same"
        " model with the padding masked. On 3+3 digits the answer is also scored digit by digit"
        " from the right, as the source does, with shorter answers filled up with zeros. The"
        " source has one run; here twenty show what one run may be."
    )
    claims = ("c36.addition", "c36.addition-grid", "c36.addition-digits")
    source = {"2+2": 0.98, "3+3": 0.0, "3+2": 0.0, "4+4": 0.0, "1+1": 0.0}

    def plan(self, scale: Scale) -> Plan:
        """The source's settings at either scale; at quick the masked runs are the scratchpad's."""
        return {
            "read": plan_seeds(
                count_seeds(scale, full=SEEDS), "addition", "chapter36", padding="read"
            ),
            "masked": plan_seeds(scale, "addition", "chapter36", updates=MASKED_UPDATES[scale]),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The grid of sizes, and the digits of 3+3."""
        grids = {name: measure_digits(runs[name], product(SIZES, SIZES)) for name in runs}
        digits = {f"padding {name}": measure_places(runs[name]) for name in runs}
        grid, masked, places = grids["read"], grids["masked"], digits["padding read"]
        beyond = [grid[cell].values for cell in grid if {"3", "4"} & set(cell)]
        measures = {
            "c36.addition": {f"accuracy_{n.replace('+', '_')}": grid[n] for n in self.source}
            | {"seeds_near": share_near(grid["2+2"])},
            "c36.addition-grid": {
                "accuracy_2_2": grid["2+2"],
                "accuracy_beyond": Estimate.share(np.mean(beyond, axis=0)),
            },
            "c36.addition-digits": {name: places[name] for name in PLACES},
        }
        title, chance = "3+3 digits, never seen in training", Rule("chance", y=0.1)
        said = {size: self.source.get(size) for size in grid}
        return Findings.of(
            measures,
            Table.of_columns(
                "Exact match by size of the operands",
                "digits",
                {"source": said, "padding read": grid, "padding masked": masked},
            ),
            Table.of_columns("3+3 digits, by place", "place", digits),
            Figure.of(
                "c36-addition",
                "Exact match by size of both operands, mean over seeds; trained on 2+2 digits."
                " Right: answers to 3+3 digits, digit by digit from the right, 95 % intervals.",
                *(_draw_grid(f"Padding {name}", grids[name]) for name in grids),
                draw_shares(title, "", "share right", *Bars.of_each(digits), chance),
            ),
            draw_distribution(
                {f"padding {name}": grids[name]["2+2"] for name in grids}, self.source["2+2"]
            ),
            f"Inside the training distribution {to_percent(grid['2+2'])} of the sums are right"
            f" ({to_percent(masked['2+2'])} with the padding masked); with three or more digits"
            f" {to_percent(measures['c36.addition-grid']['accuracy_beyond'])}.",
            f"{to_percent(measures['c36.addition']['seeds_near'])} of the {grid['2+2'].n} seeds get"
            f" {NEAR:.0%} of the sums of 2+2 digits right or more; the best"
            f" {max(grid['2+2'].values):.0%}, the worst {min(grid['2+2'].values):.0%}.",
            f"1+1 digits: {to_percent(grid['1+1'])} with the padding read,"
            f" {to_percent(masked['1+1'])} with it masked.",
            "On 3+3 digits "
            + ", ".join(f"{n} are right in {to_percent(places[n])}" for n in PLACES)
            + " of the answers; a guess is right in 10 %.",
        )


def share_near(accuracy: Estimate) -> Estimate:
    """The share of seeds that come near what the source prints."""
    return Estimate.share(float(value >= NEAR) for value in accuracy.values)


def draw_distribution(accuracies: Mapping[str, Estimate], said: float) -> Figure:
    """The accuracy of every seed, in order; the source's single run as a line."""
    points = (
        Points(name, tuple(map(float, range(1, found.n + 1))), tuple(sorted(found.values)), colour)
        for colour, (name, found) in enumerate(accuracies.items())
    )
    rule = Rule("the source's run", y=said)
    return Figure.of(
        "c36-addition-seeds",
        "Exact match on 2+2 digits of every seed, from the worst to the best: what one run may be.",
        draw_shares("One run is one draw", "seed, in order", "exact match", *points, rule),
    )


def _draw_grid(title: str, grid: dict[str, Estimate]) -> Panel:
    names = tuple(map(str, SIZES))
    values = tuple(tuple(grid[f"{a}+{b}"].mean for b in SIZES) for a in SIZES)
    heat = Heat(names, names, values, "exact match")
    return Panel(title, "digits of the second operand", "digits of the first operand", (heat,))


def measure_places(runs: Sequence[Run]) -> dict[str, Estimate]:
    """Share of answers to 3+3 digits that are right at each place, and in whole."""
    rows = []
    for run in runs:
        task = cast(Addition, vary_task(run, digits="3+3", sampling="digits", held_out=TRIALS))
        batch = task.split("test")
        given, wanted = task.answers(predict(run.model(), batch)), task.answers(batch.target)
        pairs = zip(given, wanted, strict=True)
        rows.append(np.mean([compare_places(*pair) for pair in pairs], axis=0))
    names = (*PLACES, "exact match")
    return {name: Estimate.share(row[i] for row in rows) for i, name in enumerate(names)}


def compare_places(given: str, wanted: str) -> list[bool]:
    """Whether each place from the right is right, then the whole; text that is no number fails."""
    if not given.isdigit():
        return [False] * (len(PLACES) + 1)
    width = max(len(given), len(wanted))
    a, b = given.zfill(width), wanted.zfill(width)
    return [*(a[-place] == b[-place] for place in range(1, len(PLACES) + 1)), given == wanted]
