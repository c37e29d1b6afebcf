"""Two ways to move the edge of addition: a mixture of sizes, and a scratchpad (exercise 36.5)."""

from __future__ import annotations

from regard.display import Bars, Figure, Table
from regard.papers.chapter36.addition import SCRATCHPAD_UPDATES, measure_digits
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, draw_shares, plan_seeds, subtract, to_percent


@EXPERIMENTS.register("chapter36/mixture")
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
        settings = {"digits": "2+2,3+3,4+4", "updates": self.updates[scale], "learning_rate": 5e-3}
        return {"mixture": plan_seeds(scale, "addition", "quickstart", **settings)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Exact match by size."""
        curve = measure_digits(runs["mixture"], ((n, n) for n in range(1, 6)))
        measures = {f"accuracy_{n.replace('+', '_')}": value for n, value in curve.items()}
        title = f"Mixture of sizes, {self.updates[scale]} updates"
        shares = {size: to_percent(value) for size, value in curve.items()}
        return Findings.of(
            {"c36.mixture": measures},
            Table.of("Exact match by size", curve, "digits"),
            Figure.of(
                "c36-mixture",
                "Exact match by size of both operands, trained on 2+2, 3+3 and 4+4 digits;"
                " whiskers: 95 % interval over seeds.",
                draw_shares(title, "digits", "exact match", Bars.of("", curve)),
            ),
            f"Sizes seen in training: {shares['2+2']} of 2+2, {shares['3+3']} of 3+3,"
            f" {shares['4+4']} of 4+4. Five digits: {shares['5+5']}.",
        )


@EXPERIMENTS.register("chapter36/scratchpad")
class Scratchpad(Experiment):
    """Exercise 36.5d: let the target spell out the carries."""

    title = "A scratchpad"
    about = (
        "The target first works the sum out column by column, as 7+9+0=16;4+8+1=13; and then"
        " gives the answer 136. Only the answer is scored. Does it help inside the training"
        " distribution, and does the procedure carry over to one more column?"
    )
    claims = ("c36.scratchpad",)

    def plan(self, scale: Scale) -> Plan:
        """With and without the working, same model, same updates."""
        updates = SCRATCHPAD_UPDATES[scale]
        return {
            name: plan_seeds(scale, "addition", "chapter36", scratchpad=working, updates=updates)
            for name, working in (("plain", False), ("scratchpad", True))
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Exact match of the answer by size, with and without."""
        curves = {
            name: measure_digits(runs[name], ((n, n) for n in range(1, 5)))
            for name in ("plain", "scratchpad")
        }
        plain, working = curves.values()
        gains = {size: subtract(working[size], plain[size], CHANGE) for size in plain}
        measures = {f"gain_{size.replace('+', '_')}": gain for size, gain in gains.items()}
        measures["scratchpad_2_2"] = working["2+2"]
        title, bars = "With and without the working", Bars.of_each(curves)
        return Findings.of(
            {"c36.scratchpad": measures},
            Table.of_columns("Answers right by size", "digits", {**curves, "gain": gains}),
            Figure.of(
                "c36-scratchpad",
                "Share of right answers by size of both operands, trained on 2+2 digits;"
                " whiskers: 95 % interval over seeds.",
                draw_shares(title, "digits", "answers right", *bars),
            ),
            f"On 2+2 digits: {to_percent(plain['2+2'])} plain, {to_percent(working['2+2'])} with"
            f" the scratchpad. On 3+3 digits: {to_percent(plain['3+3'])} against"
            f" {to_percent(working['3+3'])}.",
        )
