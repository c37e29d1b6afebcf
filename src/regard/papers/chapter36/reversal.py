"""String reversal: the loss, the padding accident, and reading both ways."""

from __future__ import annotations

from regard.display import Bars, Figure, Panel, Rule, Span, Table
from regard.papers.chapter36.measuring import (
    by_length,
    difference,
    final_loss,
    first_below,
    loss_line,
    over,
    percent,
    spread,
)
from regard.papers.experiment import Experiment, Findings, Plan, Runs, Scale, experiments, seeds
from regard.runs import RunConfig
from regard.statistics import Estimate

SEEN = Span("trained on these lengths", 4.5, 10.5)
UPDATES = {"quick": 700, "full": 2000}
UNITS = {"quick": 64, "full": 128}
SEEDS = {"quick": 2, "full": 5}
SOURCE = {"updates": 2000, "hidden": 128}  # the source's own, at either scale


def chapter(scale: Scale, **overrides: object) -> list[RunConfig]:
    """The chapter's model on its task, one run per seed: its own settings at full scale."""
    settings = {"updates": UPDATES[scale], "hidden": UNITS[scale], **overrides}
    return seeds(SEEDS[scale], "reversal", "chapter36", **settings)


@experiments.register("chapter36/loss")
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
        return {"read": chapter(scale, padding="read", **SOURCE)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """The smoothed loss, when it passes .1, and where it ends."""
        measures = {
            "below_point_one": Estimate.of(first_below(run, 0.1) for run in runs["read"]),
            "final_loss": Estimate.of(final_loss(run) for run in runs["read"]),
        }
        figure = Figure(
            "c36-loss",
            "Training loss averaged over 20 updates; line: mean, band: range over seeds.",
            (
                Panel(
                    "String reversal, padding read",
                    "update",
                    "cross-entropy (nats per letter)",
                    (loss_line(runs["read"], "", 0), Rule("0.1", y=0.1)),
                    y_range=(0, 3.4),
                ),
            ),
        )
        table = Table(
            "Loss",
            ("quantity", "source", "measured"),
            (
                ("first update below .1", "about 900", measures["below_point_one"]),
                ("mean of the last 100 updates", ".02-.08", measures["final_loss"]),
            ),
        )
        found = (
            f"The smoothed loss first falls below .1 at update"
            f" {measures['below_point_one'].mean:.0f} on average (a seed where it never does counts"
            f" as 4000) and ends at {measures['final_loss'].mean:.3f}.",
        )
        return Findings({"c36.loss": measures}, (table,), (figure,), found)


@experiments.register("chapter36/length")
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
            "read": chapter(scale, padding="read", **SOURCE),
            "masked": chapter(scale, **SOURCE),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Exact match on lengths 3 to 20."""
        lengths = range(3, 21)
        curves = {name: by_length(runs[name], lengths) for name in ("read", "masked")}
        read, masked = curves["read"], curves["masked"]
        measures = {
            "c36.length": {
                "accuracy_5_7": over(read, range(5, 8)),
                "accuracy_9_10": over(read, (9, 10)),
                "accuracy_13_20": over(read, range(13, 21)),
            },
            "c36.length-masked": {
                "accuracy_5_10": over(masked, range(5, 11)),
                "accuracy_11_12": over(masked, (11, 12)),
                "accuracy_13_20": over(masked, range(13, 21)),
            },
        }
        panels = (
            _by_length_panel(
                "Padding read (the source's accident)",
                (
                    Bars(
                        "source",
                        tuple(float(n) for n in lengths),
                        tuple(self.source.get(n, 0.0) for n in lengths),
                        colour=7,
                    ),
                    spread(Bars, "measured", read, 1),
                ),
            ),
            _by_length_panel("Padding masked", (spread(Bars, "measured", masked, 0),)),
        )
        figure = Figure(
            "c36-length",
            "Exact match by string length, 200 strings each; whiskers: 95 % interval over seeds.",
            panels,
        )
        table = Table(
            "Exact match by length",
            ("length", "source", "padding read", "padding masked"),
            tuple((n, self.source.get(n, 0.0), read[n], masked[n]) for n in lengths),
        )
        found = (
            f"With the padding read, lengths 5-7 reach"
            f" {percent(measures['c36.length']['accuracy_5_7'])} and lengths 9-10"
            f" {percent(measures['c36.length']['accuracy_9_10'])}.",
            f"With the padding masked, lengths 5-7 reach {percent(over(masked, range(5, 8)))} and"
            f" the whole training range"
            f" {percent(measures['c36.length-masked']['accuracy_5_10'])}.",
            f"Lengths 13-20, beyond the range: {percent(over(read, range(13, 21)))} with the"
            f" padding read, {percent(over(masked, range(13, 21)))} with it masked.",
        )
        return Findings(measures, (table,), (figure,), found)


@experiments.register("chapter36/bidirectional")
class Bidirectional(Experiment):
    """Is reading both ways faster?"""

    title = "A bidirectional encoder"
    about = (
        "The chapter's text says that a bidirectional encoder converges faster and is more"
        " accurate; the losses printed beside it say the opposite. Several seeds decide. Both"
        " encoders are trained with the padding read, as in the source, and once more with the"
        " padding masked. Convergence is judged by the loss at the end and by the updates that"
        " the smoothed loss needs to fall below 1."
    )
    claims = ("c36.bidirectional",)

    def plan(self, scale: Scale) -> Plan:
        """Two encoders, two ways to treat padding."""
        return {
            "uni-read": chapter(scale, padding="read"),
            "bi-read": chapter(scale, padding="read", bidirectional=True),
            "uni-masked": chapter(scale),
            "bi-masked": chapter(scale, bidirectional=True),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Final loss and accuracy, paired by seed."""
        names = {
            "uni-read": "one way, padding read",
            "bi-read": "both ways, padding read",
            "uni-masked": "one way, padding masked",
            "bi-masked": "both ways, padding masked",
        }
        lengths = range(3, 18)
        curves = {name: by_length(runs[name], lengths) for name in names}
        losses = {name: Estimate.of(final_loss(run) for run in runs[name]) for name in names}
        inside = {name: over(curves[name], range(5, 11)) for name in names}
        speed = {name: Estimate.of(first_below(run, 1.0) for run in runs[name]) for name in names}
        measures = {
            "loss_difference": difference(losses["bi-read"], losses["uni-read"]),
            "accuracy_difference": difference(inside["bi-read"], inside["uni-read"]),
            "updates_difference": difference(speed["bi-read"], speed["uni-read"]),
            "loss_difference_masked": difference(losses["bi-masked"], losses["uni-masked"]),
            "accuracy_difference_masked": difference(inside["bi-masked"], inside["uni-masked"]),
        }
        figure = Figure(
            "c36-bidirectional",
            "Left: smoothed training loss, mean and range over seeds. Right: exact match by"
            " length, 95 % intervals over seeds.",
            (
                Panel(
                    "Training loss",
                    "update",
                    "cross-entropy (nats per letter)",
                    tuple(
                        loss_line(runs[name], label, colour)
                        for colour, (name, label) in enumerate(names.items())
                    ),
                    y_scale="log",
                ),
                _by_length_panel(
                    "Exact match, padding masked",
                    (
                        spread(Bars, "one way", curves["uni-masked"], 2),
                        spread(Bars, "both ways", curves["bi-masked"], 3),
                    ),
                ),
            ),
        )
        table = Table(
            "One way against both ways",
            ("encoder", "final loss", "updates to a loss of 1", "exact match, lengths 5-10"),
            tuple(
                (label, losses[name], speed[name], inside[name]) for name, label in names.items()
            ),
        )
        lower = measures["loss_difference"].mean < 0
        found = (
            f"The bidirectional encoder ends {'below' if lower else 'above'} the unidirectional"
            f" one: difference in final loss {measures['loss_difference']}, with padding masked"
            f" {measures['loss_difference_masked']}.",
            "The source's text says lower, its printed log higher.",
        )
        return Findings({"c36.bidirectional": measures}, (table,), (figure,), found)


@experiments.register("chapter36/reversed-input")
class ReversedInput(Experiment):
    """Does it help to feed the source backwards?"""

    title = "Feeding the source backwards"
    about = (
        "Sutskever et al. (2014) fed their source sentences backwards, so that the first words"
        " of both sides stand close together. Copying a string is the pure case: the same"
        " strings, the same model, the source in order or backwards (copying with the source"
        " backwards is string reversal seen from the other side). Addition is the second case."
    )
    claims = ("c36.reversed-input",)

    def plan(self, scale: Scale) -> Plan:
        """Copying and addition, each in both orders."""
        more = {"updates": UPDATES[scale], "hidden": UNITS[scale]}
        count = SEEDS[scale]
        return {
            "copying": chapter(scale, reverse_source=True),
            "copying-reversed": chapter(scale),
            "addition": seeds(count, "addition", "chapter36", **more),
            "addition-reversed": seeds(count, "addition", "chapter36", reverse_source=True, **more),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy on the test split, and the gain of reversing."""
        accuracies = {
            name: Estimate.share(run.metrics["accuracy"] for run in runs[name]) for name in runs
        }
        measures = {
            "copying_gain": difference(accuracies["copying-reversed"], accuracies["copying"]),
            "addition_gain": difference(accuracies["addition-reversed"], accuracies["addition"]),
        }
        marks = [
            spread(
                Bars,
                label,
                {task: accuracies[f"{task}{suffix}"] for task in ("copying", "addition")},
                colour,
            )
            for colour, (label, suffix) in enumerate(
                (("source in order", ""), ("source backwards", "-reversed"))
            )
        ]
        figure = Figure(
            "c36-reversed-input",
            f"Exact match after {UPDATES[scale]} updates; whiskers: 95 % interval over seeds.",
            (Panel("Order of the source", "", "exact match", tuple(marks), y_range=(0, 1.05)),),
        )
        table = Table(
            "Order of the source",
            ("task", "in order", "backwards", "gain"),
            tuple(
                (t, accuracies[t], accuracies[f"{t}-reversed"], measures[f"{t}_gain"])
                for t in ("copying", "addition")
            ),
        )
        found = (
            f"Copying: {percent(accuracies['copying'])} in order,"
            f" {percent(accuracies['copying-reversed'])} backwards.",
            f"Addition: {percent(accuracies['addition'])} in order,"
            f" {percent(accuracies['addition-reversed'])} backwards.",
        )
        return Findings({"c36.reversed-input": measures}, (table,), (figure,), found)


def _by_length_panel(title: str, marks: tuple[Bars, ...]) -> Panel:
    return Panel(title, "letters in the string", "exact match", (SEEN, *marks), y_range=(0, 1.05))
