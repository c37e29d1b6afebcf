"""The demo: where a fixed vector fails and attention does not, in a minute and a half."""

from __future__ import annotations

import torch

from regard.display import Figure, Heat, Line, Panel, Span, Table
from regard.models import Seq2Seq
from regard.papers.chapter36.bottleneck import long_strings
from regard.papers.chapter36.measuring import by_length, over, percent, spread
from regard.papers.experiment import Experiment, Findings, Plan, Runs, Scale, experiments
from regard.tasks import EOS, Batch, Task, collate
from regard.training import predict

NAMES = {"fixed": "fixed vector", "attention": "attention"}
SAMPLES = ("attention", "encoderdecoder")


@experiments.register("demo/first-look")
class FirstLook(Experiment):
    """Two models, one task, one difference."""

    title = "A fixed vector against attention"
    about = (
        "Two LSTM encoder-decoders with 64 units learn to reverse strings of 5 to 25 letters,"
        " with the same recipe and the same data. In one, everything that the decoder knows of"
        " the string is the encoder's last state; the other may also look back at every state"
        " of the encoder. The string of 25 letters carries 118 bits."
    )

    def plan(self, scale: Scale) -> Plan:
        """One seed of each."""
        return {
            "fixed": long_strings(1, "quickstart"),
            "attention": long_strings(1, "quickstart-attention"),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by length, sample strings, and where attention looks."""
        lengths = range(3, 31)
        curves = {name: by_length(runs[name], lengths) for name in NAMES}
        by_length_figure = Figure(
            "demo-length",
            "Exact match by string length, 200 strings each, one seed.",
            (
                Panel(
                    "Where the fixed vector fails",
                    "letters in the string",
                    "exact match",
                    (
                        Span("trained on these lengths", 4.5, 25.5),
                        *(spread(Line, NAMES[n], curves[n], c) for c, n in enumerate(NAMES)),
                    ),
                    y_range=(0, 1.05),
                ),
            ),
        )
        task = runs["attention"][0].task()
        models = {name: runs[name][0].model() for name in NAMES}
        attention_figure = Figure(
            "demo-attention",
            "Attention weights on two strings: each row is a letter that the decoder writes,"
            " each column a letter that the encoder read. Reversal shows as a rising diagonal. It"
            " runs one place to the right of the letter itself, because the state after a letter"
            " knows that letter, too.",
            tuple(_attention_panel(models["attention"], task, word) for word in SAMPLES),
        )
        samples = Table(
            "What the models write",
            ("string", *NAMES.values()),
            tuple(
                (word, *(_written(models[name], task, word) for name in NAMES))
                for word in (*SAMPLES, "abcdefghijklmnopqrstuvwxy")
            ),
        )
        shares = {name: over(curves[name], range(5, 26)) for name in NAMES}
        table = Table(
            "Exact match by length",
            ("lengths", *NAMES.values()),
            tuple(
                (f"{a}-{b}", *(over(curves[n], range(a, b + 1)).mean for n in NAMES))
                for a, b in ((5, 10), (11, 15), (16, 20), (21, 25), (26, 30))
            ),
        )
        found = (
            f"Over the lengths of the training range the fixed vector reverses"
            f" {percent(shares['fixed'])} of the strings, attention"
            f" {percent(shares['attention'])}.",
            "Past the longest string of the training range (26-30 letters): "
            + ", ".join(f"{NAMES[n]} {percent(over(curves[n], range(26, 31)))}" for n in NAMES)
            + ". Attention removes the limit of the vector, not that of the training data.",
        )
        return Findings({}, (table, samples), (by_length_figure, attention_figure), found)


def _batch(task: Task, word: str) -> Batch:
    numbers = [*task.source_vocabulary.encode(word), EOS]
    return collate([numbers], [[*numbers[-2::-1], EOS]])


def _written(model: Seq2Seq, task: Task, word: str) -> str:
    words = predict(model, _batch(task, word))[0].tolist()
    text = "".join(task.target_vocabulary.decode(words))
    return f"{text} {'✓' if text == word[::-1] else '✗'}"


@torch.no_grad()
def _attention_panel(model: Seq2Seq, task: Task, word: str) -> Panel:
    batch = _batch(task, word)
    output = model(batch.source, batch.source_lengths, batch.inputs)
    weights = output.sites["attention"].weights[0, 0]  # (target, source)
    return Panel(
        word,
        "read by the encoder",
        "written by the decoder",
        (
            Heat(
                (*word[::-1], "<EOS>"),
                (*word, "<EOS>"),
                tuple(tuple(row) for row in weights.tolist()),
                "attention",
                numbers=False,
            ),
        ),
    )
