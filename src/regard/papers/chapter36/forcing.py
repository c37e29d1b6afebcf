"""Teacher forcing and its alternatives, and the exposure bias that they differ in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.display import Bars, Figure, Line, Panel, Table
from regard.instruments.result import to_floats
from regard.papers.chapter36._runs import UPDATES, plan_chapter
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import (
    CHANGE,
    SIZE,
    draw_shares,
    measure_each,
    read_share,
    subtract,
)
from regard.runs import Run

STRATEGIES = ("always", "never", "ratio", "scheduled", "professor")


@EXPERIMENTS.register("chapter36/forcing")
class Forcing(Experiment):
    """Five ways to feed a decoder while it learns."""

    title = "What the decoder is fed"
    about = (
        "The chapter's table compares five strategies: always the right letter, never, a coin"
        " flip, a chance that falls over training, and professor forcing, where a discriminator"
        " makes free running look like being taught. Exposure bias is measured as the share of"
        " letters right when forced, minus the share right when running freely. (Whole strings"
        " cannot show it: greedy decoding gets a string right exactly when every forced step is"
        " right.)"
    )
    claims = ("c36.forcing",)

    def plan(self, scale: Scale) -> Plan:
        """The chapter's model with each strategy."""
        return {strategy: plan_chapter(scale, forcing=strategy) for strategy in STRATEGIES}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Convergence, final accuracy, and the gap."""
        half = {name: measure_each(runs[name], count_to_half, SIZE) for name in STRATEGIES}
        exact, free, forced = (
            {name: read_share(runs[name], metric) for name in STRATEGIES}
            for metric in ("accuracy", "token_accuracy", "forced_token_accuracy")
        )
        gap = {name: subtract(forced[name], free[name], CHANGE) for name in STRATEGIES}
        measures = {
            f"{name}_{what}": values[name]
            for what, values in (("gap", gap), ("half", half), ("accuracy", exact))
            for name in STRATEGIES
        }
        for name in STRATEGIES[1:]:
            measures[f"gap_over_{name}"] = subtract(gap["always"], gap[name], (-2.0, 2.0))
        columns = {"updates to 50 %": half, "exact match": exact, "letters, forced": forced,
                   "letters, free": free, "gap": gap}  # fmt: skip
        fastest = min(STRATEGIES, key=lambda name: half[name].mean)
        widest = max(STRATEGIES, key=lambda name: gap[name].mean)
        first = f"'{fastest}' is the first to reverse half of the strings"
        if half[fastest].mean >= UPDATES[scale]:
            first = "No strategy reverses half of the strings"
        lines = (draw_learning(runs[name], name, c) for c, name in enumerate(STRATEGIES))
        bias = f"Exposure bias after {UPDATES[scale]} updates"
        return Findings.of(
            {"c36.forcing": measures},
            Table.of_columns("Strategies", "strategy", columns),
            Figure.of(
                "c36-forcing",
                "Left: free-running exact match on held-out strings during training, mean over"
                " seeds. Right: letters right when forced minus letters right when free, 95 %"
                " intervals.",
                draw_shares("Learning", "update", "exact match, free running", *lines),
                Panel.of(bias, "", "forced − free letter accuracy", Bars.of("", gap)),
            ),
            f"{first} ({half[fastest].mean:.0f} updates on average); '{widest}' has the widest gap"
            f" between forced and free running ({gap[widest].mean:.3f} of the letters).",
        )


def count_to_half(run: Run) -> float:
    """The first evaluation with half of the strings right; twice the updates if there is none."""
    updates, accuracies = run.curve("accuracy", "validation")
    return float(
        next((u for u, a in zip(updates, accuracies, strict=True) if a >= 0.5), 2 * updates[-1])
    )


def draw_learning(runs: Sequence[Run], label: str, colour: int) -> Line:
    """Validation accuracy over updates, mean over seeds."""
    curves = [run.curve("accuracy", "validation") for run in runs]
    values = np.array([accuracy for _, accuracy in curves])
    return Line(label, to_floats(curves[0][0]), to_floats(values.mean(axis=0)), colour=colour)
