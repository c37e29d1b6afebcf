"""Addition: the edge of the training distribution, and two ways to move it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import cast

import numpy as np

from regard.display import Bars, Figure, Heat, Panel, Rule, Table
from regard.models import Seq2Seq
from regard.papers.chapter36.measuring import (
    TRIALS,
    accuracy,
    difference,
    percent,
    spread,
    variant,
)
from regard.papers.chapter36.reversal import SEEDS
from regard.papers.experiment import Experiment, Findings, Plan, Runs, Scale, experiments, seeds
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks.addition import Addition
from regard.training import predict

PLACES = ("units", "tens", "hundreds")
SCRATCHPAD_UPDATES = {"quick": 700, "full": 4000}
MASKED_UPDATES = {"quick": SCRATCHPAD_UPDATES["quick"], "full": 2000}


def on_digits(runs: Sequence[Run], models: Sequence[Seq2Seq], first: int, second: int) -> Estimate:
    """Exact match on operands of exactly these sizes, over seeds."""
    digits = f"{first}+{second}"
    return Estimate.share(
        accuracy(model, variant(run, digits=digits, sampling="digits", held_out=TRIALS))
        for run, model in zip(runs, models, strict=True)
    )


@experiments.register("chapter36/addition")
class Sums(Experiment):
    """Two-digit addition, and everything around it."""

    title = "Addition and the limits of memorisation"
    about = (
        "The model is trained on sums of two numbers drawn from 0 to 99 and tested on operands"
        " of exactly one to four digits each. An algorithm would carry over; a table does not."
        " The claims are judged with the source's settings, where the encoder reads the padding"
        " of shorter sums in training and finds none at test time; beside them stands the same"
        " model with the padding masked. On 3+3 digits the answer is also scored digit by digit"
        " from the right, as the source does, with shorter answers filled up with zeros."
    )
    claims = ("c36.addition", "c36.addition-grid", "c36.addition-digits")
    source = {(2, 2): 0.98, (3, 3): 0.0, (3, 2): 0.0, (4, 4): 0.0, (1, 1): 0.0}

    def plan(self, scale: Scale) -> Plan:
        """The source's settings at either scale; at quick the masked runs are the scratchpad's."""
        count = SEEDS[scale]
        return {
            "read": seeds(count, "addition", "chapter36", padding="read"),
            "masked": seeds(count, "addition", "chapter36", updates=MASKED_UPDATES[scale]),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The grid of sizes, and the digits of 3+3."""
        models = {name: [run.model() for run in runs[name]] for name in runs}
        sizes = range(1, 5)
        grids = {
            name: {
                (a, b): on_digits(runs[name], models[name], a, b) for a, b in product(sizes, sizes)
            }
            for name in runs
        }
        digits = {name: digit_accuracy(runs[name], models[name]) for name in runs}
        grid = grids["read"]
        beyond = [grid[cell].values for cell in grid if max(cell) > 2]
        measures = {
            "c36.addition": {f"accuracy_{a}_{b}": grid[a, b] for a, b in self.source},
            "c36.addition-grid": {
                "accuracy_2_2": grid[2, 2],
                "accuracy_beyond": Estimate.share(np.mean(beyond, axis=0)),
            },
            "c36.addition-digits": {name: digits["read"][name] for name in PLACES},
        }
        panels = (
            *(_grid_panel(f"Padding {name}", grids[name], sizes) for name in grids),
            Panel(
                "3+3 digits, never seen in training",
                "",
                "share right",
                (
                    *(spread(Bars, f"padding {n}", digits[n], c) for c, n in enumerate(digits)),
                    Rule("chance", y=0.1),
                ),
                y_range=(0, 1.05),
            ),
        )
        figure = Figure(
            "c36-addition",
            "Exact match by size of both operands, mean over seeds; trained on 2+2 digits."
            " Right: answers to 3+3 digits, digit by digit from the right, 95 % intervals.",
            panels,
        )
        tables = (
            Table(
                "Exact match by size of the operands",
                ("digits", "source", "padding read", "padding masked"),
                tuple(
                    (f"{a}+{b}", self.source.get((a, b)), grid[a, b], grids["masked"][a, b])
                    for a, b in grid
                ),
            ),
            Table(
                "3+3 digits, by place",
                ("place", "padding read", "padding masked"),
                tuple((p, digits["read"][p], digits["masked"][p]) for p in digits["read"]),
            ),
        )
        found = (
            f"Inside the training distribution {percent(grid[2, 2])} of the sums are right"
            f" ({percent(grids['masked'][2, 2])} with the padding masked); with three or more"
            f" digits {percent(measures['c36.addition-grid']['accuracy_beyond'])}.",
            f"1+1 digits: {percent(grid[1, 1])} with the padding read,"
            f" {percent(grids['masked'][1, 1])} with it masked.",
            "On 3+3 digits "
            + ", ".join(f"{name} are right in {percent(digits['read'][name])}" for name in PLACES)
            + " of the answers; a guess is right in 10 %.",
        )
        return Findings(measures, tables, (figure,), found)


def _grid_panel(title: str, grid: dict[tuple[int, int], Estimate], sizes: range) -> Panel:
    names = tuple(map(str, sizes))
    values = tuple(tuple(grid[a, b].mean for b in sizes) for a in sizes)
    return Panel(
        title,
        "digits of the second operand",
        "digits of the first operand",
        (Heat(names, names, values, "exact match"),),
    )


def digit_accuracy(runs: Sequence[Run], models: Sequence[Seq2Seq]) -> dict[str, Estimate]:
    """Share of answers to 3+3 digits that are right at each place, and in whole."""
    rows = []
    for run, model in zip(runs, models, strict=True):
        task = cast(Addition, variant(run, digits="3+3", sampling="digits", held_out=TRIALS))
        batch = task.split("test")
        given, wanted = task.answers(predict(model, batch)), task.answers(batch.target)
        rows.append(np.mean([_places(g, w) for g, w in zip(given, wanted, strict=True)], axis=0))
    names = (*PLACES, "exact match")
    return {name: Estimate.share(row[i] for row in rows) for i, name in enumerate(names)}


def _places(given: str, wanted: str) -> list[bool]:
    """Whether each place from the right is right, then the whole; text that is no number fails."""
    if not given.isdigit():
        return [False] * (len(PLACES) + 1)
    width = max(len(given), len(wanted))
    a, b = given.zfill(width), wanted.zfill(width)
    return [*(a[-place] == b[-place] for place in range(1, len(PLACES) + 1)), given == wanted]


@experiments.register("chapter36/mixture")
class Mixture(Experiment):
    """Exercise 36.5b: train on 2, 3 and 4 digits, ask for 5."""

    title = "A mixture of sizes"
    about = (
        "If two digits do not teach three, do two, three and four teach five? A model of the same"
        " size is trained on an even mixture of 2+2, 3+3 and 4+4 digits and tested on each size up"
        " to 5. Four digits are hard for it, so it is trained longer, always forced and with a"
        " rate that falls to zero."
    )
    claims = ("c36.mixture",)
    updates = {"quick": 800, "full": 8000}

    def plan(self, scale: Scale) -> Plan:
        """One condition: the mixture. Four digits are harder, so it trains longer."""
        runs = seeds(
            SEEDS[scale],
            "addition",
            "quickstart",
            digits="2+2,3+3,4+4",
            updates=self.updates[scale],
            learning_rate=5e-3,
        )
        return {"mixture": runs}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Exact match by size."""
        models = [run.model() for run in runs["mixture"]]
        curve = {f"{n}+{n}": on_digits(runs["mixture"], models, n, n) for n in range(1, 6)}
        measures = {f"accuracy_{n}_{n}": curve[f"{n}+{n}"] for n in range(1, 6)}
        figure = Figure(
            "c36-mixture",
            "Exact match by size of both operands, trained on 2+2, 3+3 and 4+4 digits;"
            " whiskers: 95 % interval over seeds.",
            (
                Panel(
                    f"Mixture of sizes, {self.updates[scale]} updates",
                    "digits",
                    "exact match",
                    (spread(Bars, "", curve, 0),),
                    y_range=(0, 1.05),
                ),
            ),
        )
        table = Table("Exact match by size", ("digits", "measured"), tuple(curve.items()))
        found = (
            f"Sizes seen in training: {percent(curve['2+2'])} of 2+2, {percent(curve['3+3'])} of"
            f" 3+3, {percent(curve['4+4'])} of 4+4. Five digits: {percent(curve['5+5'])}.",
        )
        return Findings({"c36.mixture": measures}, (table,), (figure,), found)


@experiments.register("chapter36/scratchpad")
class Scratchpad(Experiment):
    """Exercise 36.5d: let the target spell out the carries."""

    title = "A scratchpad"
    about = (
        "The target first works the sum out column by column, as 7+9+0=16;4+8+1=13; and then"
        " gives the answer 136. Only the answer is scored. Does it help inside the training"
        " distribution, and does the procedure carry over to one more column?"
    )
    claims = ("c36.scratchpad",)
    updates = SCRATCHPAD_UPDATES

    def plan(self, scale: Scale) -> Plan:
        """With and without the working, same model, same updates."""
        return {
            name: seeds(
                SEEDS[scale],
                "addition",
                "chapter36",
                scratchpad=scratchpad,
                updates=self.updates[scale],
            )
            for name, scratchpad in (("plain", False), ("scratchpad", True))
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Exact match of the answer by size, with and without."""
        curves = {}
        for name in ("plain", "scratchpad"):
            models = [run.model() for run in runs[name]]
            curves[name] = {f"{n}+{n}": on_digits(runs[name], models, n, n) for n in range(1, 5)}
        measures = {
            f"gain_{n}_{n}": difference(
                curves["scratchpad"][f"{n}+{n}"], curves["plain"][f"{n}+{n}"]
            )
            for n in range(1, 5)
        }
        measures["scratchpad_2_2"] = curves["scratchpad"]["2+2"]
        figure = Figure(
            "c36-scratchpad",
            "Share of right answers by size of both operands, trained on 2+2 digits;"
            " whiskers: 95 % interval over seeds.",
            (
                Panel(
                    "With and without the working",
                    "digits",
                    "answers right",
                    tuple(spread(Bars, n, curves[n], c) for c, n in enumerate(curves)),
                    y_range=(0, 1.05),
                ),
            ),
        )
        table = Table(
            "Answers right by size",
            ("digits", "plain", "scratchpad", "gain"),
            tuple(
                (
                    f"{n}+{n}",
                    curves["plain"][f"{n}+{n}"],
                    curves["scratchpad"][f"{n}+{n}"],
                    measures[f"gain_{n}_{n}"],
                )
                for n in range(1, 5)
            ),
        )
        found = (
            f"On 2+2 digits: {percent(curves['plain']['2+2'])} plain,"
            f" {percent(curves['scratchpad']['2+2'])} with the scratchpad. On 3+3 digits:"
            f" {percent(curves['plain']['3+3'])} against {percent(curves['scratchpad']['3+3'])}.",
        )
        return Findings({"c36.scratchpad": measures}, (table,), (figure,), found)
