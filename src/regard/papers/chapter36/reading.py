"""How an encoder reads a string: both ways, or backwards."""

from __future__ import annotations

from regard.display import Bars, Figure, Table
from regard.papers.chapter36._lengths import average_lengths, draw_lengths, measure_by_length
from regard.papers.chapter36._runs import (
    UPDATES,
    average_final_loss,
    draw_losses,
    find_first_below,
    plan_chapter,
)
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
        ways = {"uni": "one way", "bi": "both ways"}
        named = {
            f"{label}, padding {padding}": runs[f"{way}-{padding}"]
            for padding in ("read", "masked")
            for way, label in ways.items()
        }
        curves = {name: measure_by_length(group, range(3, 18)) for name, group in named.items()}
        inside = {name: average_lengths(curve, range(5, 11)) for name, curve in curves.items()}
        losses, speed = (
            {name: measure_each(group, measure, SIZE) for name, group in named.items()}
            for measure in (average_final_loss, lambda run: find_first_below(run, 1))
        )
        one, both, one_masked, both_masked = named
        measures = {
            "updates_difference": subtract(speed[both], speed[one]),
            "loss_difference": subtract(losses[both], losses[one]),
            "accuracy_difference": subtract(inside[both], inside[one], CHANGE),
            "loss_difference_masked": subtract(losses[both_masked], losses[one_masked]),
            "accuracy_difference_masked": subtract(inside[both_masked], inside[one_masked], CHANGE),
        }
        columns = {"final loss": losses, "updates to a loss of 1": speed,
                   "exact match, lengths 5-10": inside}  # fmt: skip
        bars = (
            Bars.of(label, curves[f"{label}, padding masked"], colour)
            for colour, label in enumerate(ways.values(), 2)
        )
        lower = measures["loss_difference"].mean < 0
        return Findings.of(
            {"c36.bidirectional": measures},
            Table.of_columns("One way against both ways", "encoder", columns),
            Figure.of(
                "c36-bidirectional",
                "Left: smoothed training loss, mean and range over seeds. Right: exact match by"
                " length, 95 % intervals over seeds.",
                draw_losses("Training loss", named, y_scale="log"),
                draw_lengths("Exact match, padding masked", 10, *bars),
            ),
            f"The bidirectional encoder ends {'below' if lower else 'above'} the unidirectional"
            f" one: difference in final loss {measures['loss_difference']}, with padding masked"
            f" {measures['loss_difference_masked']}.",
            "The source's text says lower, its printed log higher.",
        )


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
        gain = {task: subtract(back[task], ahead[task], CHANGE) for task in tasks}
        bars = Bars.of_each({"source in order": ahead, "source backwards": back})
        columns = {"in order": ahead, "backwards": back, "gain": gain}
        return Findings.of(
            {"c36.reversed-input": {f"{task}_gain": gain[task] for task in tasks}},
            Table.of_columns("Order of the source", "task", columns),
            Figure.of(
                "c36-reversed-input",
                f"Exact match after {UPDATES[scale]} updates; whiskers: 95 % interval over seeds.",
                draw_shares("Order of the source", "", "exact match", *bars),
            ),
            *(
                f"{task.capitalize()}: {to_percent(ahead[task])} in order,"
                f" {to_percent(back[task])} backwards."
                for task in tasks
            ),
        )
