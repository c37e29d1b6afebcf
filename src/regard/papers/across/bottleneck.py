"""From which length on does attention carry the word (chapter36), by ablation (aitken2021)?"""

from __future__ import annotations

from collections.abc import Sequence

from regard.display import Figure, Line, Table
from regard.instruments.interventions.ablate import ablate_model
from regard.papers.chapter36._lengths import average_lengths, draw_lengths, vary_task
from regard.papers.chapter36.attention import LONG_UPDATES, plan_long
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, count_seeds, subtract
from regard.recordings.samples import draw_samples
from regard.runs import Run
from regard.statistics import Estimate
from regard.training import evaluate

LENGTHS = range(5, 26)  # those of training
SHORT, LONG = range(5, 9), range(21, 26)
HOLDS = 0.9  # of the words right: what counts as held
TRIALS = 200  # strings of each length
MODELS = {"attention": "quickstart-attention", "fixed": "quickstart"}


@EXPERIMENTS.register("across/bottleneck-terms")
class BottleneckTermsExperiment(Experiment):
    """Word accuracy by length without attention, with it, and with χ taken out of the context."""

    title = "From which length on attention carries the word"
    about = (
        "Reversal of 5 to 25 letters through 64 units. The words fed are the teacher's, so that"
        " one error does not cause the next. The model with attention is asked again with χ"
        " removed from its context, which leaves it everything but the word that is attended."
    )
    claims = ("x.bottleneck-terms",)

    def plan(self, scale: Scale) -> Plan:
        """The long strings of chapter36/attention."""
        count = count_seeds(scale)
        return {
            name: plan_long(count, model, updates=LONG_UPDATES[scale])
            for name, model in MODELS.items()
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Losses by length, and the length that the fixed vector holds."""
        fixed = {n: measure_words(runs["fixed"], n) for n in LENGTHS}
        whole, without = ablate_lengths(runs["attention"])
        lost = {n: subtract(whole[n], without[n], CHANGE) for n in LENGTHS}
        short, long = (average_lengths(lost, lengths) for lengths in (SHORT, LONG))
        own: Measures = {
            "lost_short": short,
            "lost_long": long,
            "more_lost_long": subtract(long, short, CHANGE),
            "held_by_fixed": Estimate.of(
                max((n for n in LENGTHS if fixed[n].values[seed] >= HOLDS), default=0)
                for seed in range(len(runs["fixed"]))
            ),
            "carried_from": Estimate.of(
                min((n for n in LENGTHS if lost[n].values[seed] > 1 - HOLDS), default=LONG[-1] + 1)
                for seed in range(len(runs["attention"]))
            ),
        }
        curves = {"fixed vector": fixed, "attention": whole, "attention, χ removed": without}
        lines = (
            Line.of(name, curve, curve.values(), colour)
            for colour, (name, curve) in enumerate(curves.items())
        )
        panel = draw_lengths("What carries the word", LENGTHS[-1], *lines)
        caption = (
            "Word accuracy (teacher's words fed) by length of the string; means and 95 % intervals"
            " over seeds."
        )
        figure = Figure("x-bottleneck-terms", caption, (panel,))
        table = Table.of("Attention and the fixed vector", own)
        return Findings({"x.bottleneck-terms": own}, (table,), (figure,))


def measure_words(runs: Sequence[Run], length: int) -> Estimate:
    """Word accuracy with the teacher's words fed on strings of one length, over seeds."""
    tasks = (
        (run, vary_task(run, held_out=TRIALS, shortest=length, longest=length)) for run in runs
    )
    return Estimate.share(
        evaluate(run.model(), task, task.split("test"))["forced_token_accuracy"]
        for run, task in tasks
    )


def ablate_lengths(runs: Sequence[Run]) -> tuple[dict[int, Estimate], dict[int, Estimate]]:
    """Word accuracy by length as it is, and with χ removed from the context."""
    whole: dict[int, list[float]] = {n: [] for n in LENGTHS}
    without: dict[int, list[float]] = {n: [] for n in LENGTHS}
    for run in runs:
        model = run.model()
        for n in LENGTHS:
            task = vary_task(run, shortest=n, longest=n)
            vocabularies = task.source_vocabulary, task.target_vocabulary
            found = ablate_model(model, list(draw_samples(task, TRIALS, 0)), vocabularies)
            whole[n].append(found.baseline)
            without[n].append(found.accuracy["remove", "input", "context"])
    return (
        {n: Estimate.share(values) for n, values in whole.items()},
        {n: Estimate.share(values) for n, values in without.items()},
    )
