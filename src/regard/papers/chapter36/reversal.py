"""String reversal: how the loss falls, and the padding accident."""

from __future__ import annotations

from regard.display import Bars, Figure, Rule, Table
from regard.papers.chapter36._lengths import average_lengths, draw_lengths, measure_by_length
from regard.papers.chapter36._runs import (
    SOURCE,
    average_final_loss,
    draw_losses,
    find_first_below,
    plan_chapter,
)
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import SIZE, measure_each, to_percent


@EXPERIMENTS.register("chapter36/loss")
class Loss(Experiment):
    """Does the loss fall as the chapter prints it?"""

    title = "The loss of string reversal"
    about = (
        "An LSTM encoder-decoder with 128 units learns to reverse strings of 5 to 10 letters."
        " Each decoder step is fed the right letter or the model's own, by the flip of a coin."
        " As in the source, the encoder reads the padding of shorter strings."
    )
    claims = ("c36.loss",)

    def plan(self, scale: Scale) -> Plan:
        """The source's own 2,000 updates at either scale: the claim is about them."""
        return {"read": plan_chapter(scale, padding="read", **SOURCE)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The smoothed loss, when it passes .1, and where it ends."""
        below = measure_each(runs["read"], lambda run: find_first_below(run, 0.1), SIZE)
        final = measure_each(runs["read"], average_final_loss, SIZE)
        title, rule = "String reversal, padding read", Rule("0.1", y=0.1)
        said = {"first update below .1": "about 900", "mean of the last 100 updates": ".02-.08"}
        measured = dict(zip(said, (below, final), strict=True))
        return Findings.of(
            {"c36.loss": {"below_point_one": below, "final_loss": final}},
            Table.of_columns("Loss", "quantity", {"source": said, "measured": measured}),
            Figure.of(
                "c36-loss",
                "Training loss averaged over 20 updates; line: mean, band: range over seeds.",
                draw_losses(title, {"": runs["read"]}, rule, y_range=(0, 3.4)),
            ),
            f"The smoothed loss first falls below .1 at update {below.mean:.0f} on average (a seed"
            f" where it never does counts as 4000) and ends at {final.mean:.3f}.",
        )


@EXPERIMENTS.register("chapter36/length")
class Length(Experiment):
    """What the encoder's reading of the padding does to short strings."""

    title = "Accuracy by length, and the padding that the encoder reads"
    about = (
        "The chapter blames the fixed vector for failing on strings of 5 to 7 letters, which are"
        " inside its training range. But its encoder reads the padding of short strings in"
        " training, and finds none at test time. The same model is trained with the padding read"
        " and with the padding masked; only the second shows what the fixed vector can hold."
    )
    claims = ("c36.length", "c36.length-masked")
    source = {8: 0.12, 9: 0.86, 10: 0.88, 11: 0.54, 12: 0.04}

    def plan(self, scale: Scale) -> Plan:
        """Both ways to treat padding, with the source's settings."""
        return {
            "read": plan_chapter(scale, padding="read", **SOURCE),
            "masked": plan_chapter(scale, **SOURCE),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Exact match on lengths 3 to 20."""
        lengths = range(3, 21)
        curves = {name: measure_by_length(runs[name], lengths) for name in ("read", "masked")}
        read, masked = curves["read"], curves["masked"]
        own, other = (
            {f"accuracy_{a}_{b}": average_lengths(curve, range(a, b + 1)) for a, b in ranges}
            for curve, ranges in (
                (read, ((5, 7), (9, 10), (13, 20))),
                (masked, ((5, 10), (11, 12), (13, 20))),
            )
        )
        said = {n: self.source.get(n, 0.0) for n in lengths}
        source = Bars("source", tuple(map(float, said)), tuple(said.values()), colour=7)
        accident, without = Bars.of("measured", read, 1), Bars.of("measured", masked, 0)
        short = average_lengths(masked, range(5, 8))
        return Findings.of(
            {"c36.length": own, "c36.length-masked": other},
            Table.of_columns(
                "Exact match by length",
                "length",
                {"source": said, "padding read": read, "padding masked": masked},
            ),
            Figure.of(
                "c36-length",
                "Exact match by string length, 200 strings each; whiskers: 95 % interval over"
                " seeds.",
                draw_lengths("Padding read (the source's accident)", 10, source, accident),
                draw_lengths("Padding masked", 10, without),
            ),
            f"With the padding read, lengths 5-7 reach {to_percent(own['accuracy_5_7'])} and"
            f" lengths 9-10 {to_percent(own['accuracy_9_10'])}.",
            f"With the padding masked, lengths 5-7 reach {to_percent(short)} and the whole training"
            f" range {to_percent(other['accuracy_5_10'])}.",
            f"Lengths 13-20, beyond the range: {to_percent(own['accuracy_13_20'])} with the padding"
            f" read, {to_percent(other['accuracy_13_20'])} with it masked.",
        )
