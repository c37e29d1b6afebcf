"""Does attention follow lexical knowledge (snell2021) in each layer of a Transformer?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from regard.display import Figure, Line, Panel, Table
from regard.models.seq2seq import Seq2Seq
from regard.papers.across._positions import count_found
from regard.papers.across._transformers import CROSSING, plan_transformer_escan
from regard.papers.across.order import SAMPLES, Course
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import draw_shares
from regard.recordings.record import record
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.runs import Run
from regard.statistics import Estimate

LABELS = ("β at the right word", "α at the right position, best head")
READ = ("encoder.words", "encoder.mask", "decoder.mask", "targets")
Gold = Callable[[Recording], Array]  # the right source positions (sample, target), −1: none


@EXPERIMENTS.register("across/transformer-lexical")
class TransformerLexicalExperiment(Experiment):
    """β and α over training, layer by layer."""

    title = "Lexical knowledge before attention, in each layer of a Transformer?"
    about = (
        "Transformers on eSCAN through their training. β of a layer: all heads of its attention"
        " look at one source position, and what they give is put through the last normalisation and"
        " the output layer alone; how often the right word's probability is largest at a source"
        " word like the right one. α of a layer: the head that is right most often at the end. Each"
        " course is timed by the update at which it has gone half of its way."
    )
    claims = ("x.transformer-lexical",)

    def plan(self, scale: Scale) -> Plan:
        """The runs of transformer-terms."""
        return {"escan": plan_transformer_escan(scale)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Half-way times by layer, and who leads."""
        courses = [follow_layers(run) for run in runs["escan"]]  # [seed][layer]
        own: Measures = {}
        panels: list[Panel] = []
        for layer, site in enumerate(CROSSING):
            halves = [seed[layer].find_halves() for seed in courses]
            own[f"half_lexical_{layer}"] = Estimate.of(half[0] for half in halves)
            own[f"half_attention_{layer}"] = Estimate.of(half[1] for half in halves)
            own[f"lead_{layer}"] = Estimate.of(half[1] - half[0] for half in halves)
            last = [seed[layer].values[-1] for seed in courses]
            own[f"final_lexical_{layer}"] = Estimate.share(end[0] for end in last)
            own[f"final_attention_{layer}"] = Estimate.share(end[1] for end in last)
            lines = draw_layer([seed[layer] for seed in courses])
            panels.append(draw_shares(site, "updates", "share", *lines))
        figure = Figure(
            "x-transformer-lexical",
            "What is right first in each layer of a Transformer on eSCAN; means and 95 % intervals"
            " over seeds.",
            tuple(panels),
        )
        table = Table.of("Updates to half of the way, and who leads", own)
        return Findings.of({"x.transformer-lexical": own}, table, figure)


def read_alignment(recording: Recording) -> Array:
    """The task's own alignment. -> (sample, target)"""
    return recording["alignment"]


def follow_layers(run: Run, find_gold: Gold = read_alignment) -> list[Course]:
    """β and α of each layer at every checkpoint; α of the head that is best at the end."""
    updates = tuple(run.checkpoints())
    gold: list[Array] = []  # of the same sentences at every checkpoint
    found = []  # [checkpoint][layer]
    for update in updates:
        recording = record(
            run, n=SAMPLES, checkpoint=update, inputs="teacher", also=("values",), sites="cross"
        )
        gold = gold or [find_gold(recording)]
        found.append(look_layers(run.model(update), recording, gold[0]))
    courses = []
    for layer in range(len(CROSSING)):
        lexical = [one[layer][0] for one in found]
        attended = np.array([one[layer][1] for one in found])  # (checkpoint, head)
        best = attended[:, int(attended[-1].argmax())]
        courses.append(Course(updates, np.stack([lexical, best], axis=1)))
    return courses


def look_layers(
    model: Seq2Seq, recording: Recording, gold: Array
) -> list[tuple[float, list[float]]]:
    """For each layer of one checkpoint: how often β is right, and how often each head is."""
    chunk = {name: recording[name] for name in READ}
    found = []
    for layer, site in enumerate(CROSSING):
        beta = probe_layer(model, layer, recording)
        weights = recording[f"{site}.weights"]
        attended = [
            share(*count_found(weights[:, head], chunk, gold, alike=False))
            for head in range(weights.shape[1])
        ]
        lexical = share(*count_found(beta, chunk, gold, alike=True))
        found.append((lexical, attended))
    return found


def share(right: int, total: int) -> float:
    """Of some words, those that are right."""
    return right / max(total, 1)


def probe_layer(model: Seq2Seq, layer: int, recording: Recording) -> Array:
    """log β of a layer: the target word, were all its heads at one source position.

    -> (sample, target, source)
    """
    site = CROSSING[layer]
    values = torch.from_numpy(recording[f"{site}.values"]).float()
    with torch.no_grad():  # (sample, head, source, size) -> (sample, source, vocab)
        table = model.read_values(site, values).log_softmax(-1)
    targets = torch.from_numpy(recording["targets"]).long()  # (sample, target)
    wide = targets[:, None].expand(-1, table.shape[1], -1)
    found: Array = table.gather(2, wide).transpose(1, 2).numpy()
    return found


def draw_layer(courses: Sequence[Course]) -> tuple[Line, ...]:
    """β and α of a layer, with intervals over runs."""
    updates = courses[0].updates
    return tuple(
        Line.of(label, updates, (
            Estimate.share(course.values[at, k] for course in courses) for at in range(len(updates))
        ), k)
        for k, label in enumerate(LABELS)
    )  # fmt: skip
