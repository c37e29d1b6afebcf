"""Where a fixed vector fails and attention does not."""

from __future__ import annotations

import torch

from regard.display import Figure, Heat, Line, Panel, Table
from regard.instruments.result import to_floats
from regard.models import Seq2Seq
from regard.papers.chapter36._lengths import average_lengths, draw_lengths, measure_by_length
from regard.papers.chapter36.attention import plan_long
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import to_percent
from regard.tasks import EOS, Batch, Task, collate
from regard.training import predict

NAMES = {"fixed": "fixed vector", "attention": "attention"}
SAMPLES = ("attention", "encoderdecoder")
SPANS = ((5, 10), (11, 15), (16, 20), (21, 25), (26, 30))  # lengths


@EXPERIMENTS.register("demo/first-look")
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
            "fixed": plan_long(1, "quickstart"),
            "attention": plan_long(1, "quickstart-attention"),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by length, sample strings, and where attention looks."""
        lengths = range(3, 31)
        curves = {label: measure_by_length(runs[name], lengths) for name, label in NAMES.items()}
        task = runs["attention"][0].task()
        models = {label: runs[name][0].model() for name, label in NAMES.items()}
        words = (*SAMPLES, "abcdefghijklmnopqrstuvwxy")
        written = {
            label: {word: _write(model, task, word) for word in words}
            for label, model in models.items()
        }
        spans = {f"{a}-{b}": range(a, b + 1) for a, b in SPANS}
        right = {
            label: {name: average_lengths(curve, span).mean for name, span in spans.items()}
            for label, curve in curves.items()
        }
        fixed, attending = (average_lengths(c, range(5, 26)) for c in curves.values())
        beyond = (
            f"{name} {to_percent(average_lengths(c, range(26, 31)))}" for name, c in curves.items()
        )
        return Findings.of(
            {},
            Table.of_columns("Exact match by length", "lengths", right),
            Table.of_columns("What the models write", "string", written),
            Figure.of(
                "demo-length",
                "Exact match by string length, 200 strings each, one seed.",
                draw_lengths("Where the fixed vector fails", 25, *Line.of_each(curves)),
            ),
            Figure.of(
                "demo-attention",
                "Attention weights on two strings: each row is a letter that the decoder writes,"
                " each column a letter that the encoder read. Reversal shows as a rising diagonal."
                " It runs one place to the right of the letter itself, because the state after a"
                " letter knows that letter, too.",
                *(_draw_attention(models["attention"], task, word) for word in SAMPLES),
            ),
            f"Over the lengths of the training range the fixed vector reverses {to_percent(fixed)}"
            f" of the strings, attention {to_percent(attending)}.",
            f"Past the longest string of the training range (26-30 letters): {', '.join(beyond)}."
            " Attention removes the limit of the vector, not that of the training data.",
        )


def _batch(task: Task, word: str) -> Batch:
    numbers = [*task.source_vocabulary.encode(word), EOS]
    return collate([numbers], [[*numbers[-2::-1], EOS]])


def _write(model: Seq2Seq, task: Task, word: str) -> str:
    words = predict(model, _batch(task, word))[0].tolist()
    text = "".join(task.target_vocabulary.decode(words))
    return f"{text} {'✓' if text == word[::-1] else '✗'}"


@torch.no_grad()
def _draw_attention(model: Seq2Seq, task: Task, word: str) -> Panel:
    batch = _batch(task, word)
    output = model(batch.source, batch.source_lengths, batch.inputs)
    weights = output.sites["attention"].weights[0, 0]  # (target, source)
    rows, columns = (*word[::-1], "<EOS>"), (*word, "<EOS>")
    heat = Heat(rows, columns, tuple(map(to_floats, weights)), "attention", numbers=False)
    return Panel(word, "read by the encoder", "written by the decoder", (heat,))
