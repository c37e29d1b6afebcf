"""How an encoder reads a string: both ways, or backwards."""

from __future__ import annotations

from regard.display import Bars, Figure, Panel, Table
from regard.papers.chapter36._lengths import average_lengths, draw_lengths, measure_by_length
from regard.papers.chapter36._losses import average_final_loss, draw_loss, find_first_below
from regard.papers.chapter36._settings import UPDATES, plan_chapter
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import (
    CHANGE,
    SIZE,
    draw_shares,
    measure_each,
    read_share,
    subtract,
    to_percent,
)


@EXPERIMENTS.register("chapter36/bidirectional")
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
            "uni-read": plan_chapter(scale, padding="read"),
            "bi-read": plan_chapter(scale, padding="read", bidirectional=True),
            "uni-masked": plan_chapter(scale),
            "bi-masked": plan_chapter(scale, bidirectional=True),
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
        curves = {name: measure_by_length(runs[name], lengths) for name in names}
        losses = {name: measure_each(runs[name], average_final_loss, SIZE) for name in names}
        inside = {name: average_lengths(curves[name], range(5, 11)) for name in names}
        speed = {
            name: measure_each(runs[name], lambda r: find_first_below(r, 1), SIZE) for name in names
        }
        measures = {"updates_difference": subtract(speed["bi-read"], speed["uni-read"])}
        for padding, ending in (("read", ""), ("masked", "_masked")):
            both, one = f"bi-{padding}", f"uni-{padding}"
            measures[f"loss_difference{ending}"] = subtract(losses[both], losses[one])
            measures[f"accuracy_difference{ending}"] = subtract(inside[both], inside[one], CHANGE)
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
                        draw_loss(runs[name], label, colour)
                        for colour, (name, label) in enumerate(names.items())
                    ),
                    y_scale="log",
                ),
                draw_lengths(
                    "Exact match, padding masked",
                    10,
                    Bars.of("one way", curves["uni-masked"], 2),
                    Bars.of("both ways", curves["bi-masked"], 3),
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


@EXPERIMENTS.register("chapter36/reversed-input")
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
        return {
            "copying": plan_chapter(scale, reverse_source=True),
            "copying-reversed": plan_chapter(scale),
            "addition": plan_chapter(scale, "addition"),
            "addition-reversed": plan_chapter(scale, "addition", reverse_source=True),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy on the test split, and the gain of reversing."""
        tasks = ("copying", "addition")
        ahead = {task: read_share(runs[task], "accuracy") for task in tasks}
        back = {task: read_share(runs[f"{task}-reversed"], "accuracy") for task in tasks}
        measures = {f"{task}_gain": subtract(back[task], ahead[task], CHANGE) for task in tasks}
        bars = Bars.of("source in order", ahead, 0), Bars.of("source backwards", back, 1)
        figure = Figure(
            "c36-reversed-input",
            f"Exact match after {UPDATES[scale]} updates; whiskers: 95 % interval over seeds.",
            (draw_shares("Order of the source", "", "exact match", *bars),),
        )
        table = Table(
            "Order of the source",
            ("task", "in order", "backwards", "gain"),
            tuple((task, ahead[task], back[task], measures[f"{task}_gain"]) for task in tasks),
        )
        found = tuple(
            f"{task.capitalize()}: {to_percent(ahead[task])} in order, {to_percent(back[task])}"
            " backwards."
            for task in tasks
        )
        return Findings({"c36.reversed-input": measures}, (table,), (figure,), found)
