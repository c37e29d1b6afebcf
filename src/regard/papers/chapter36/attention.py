"""What attention and the Transformer change, and what they cost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from regard.display import Figure, Line, Panel, Table
from regard.models import Seq2Seq
from regard.papers.chapter36._lengths import average_lengths, draw_lengths, measure_by_length
from regard.papers.chapter36._runs import UNITS, plan_chapter
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, measure_each, plan_seeds, subtract, to_percent
from regard.runs import RunConfig, assemble
from regard.statistics import Estimate
from regard.training import one_thread

LONG = {"shortest": 5, "longest": 25, "hidden": 64}
MODELS = {"fixed": "quickstart", "attention": "quickstart-attention", "transformer": "transformer"}
PLACES = (64, 128, 256, 512, 1024)  # of the sources that are timed
ROUNDS = 5  # in which all of them are timed in turn, so that a busy machine slows no length alone
TRANSFORMER_UPDATES = {"quick": 450, "full": 4000}
LONG_UPDATES = {"quick": 800, "full": 3000}

Times = tuple[float, ...]  # milliseconds, by the length of the source


def plan_long(seeds: int | Scale, model: str, **settings: object) -> list[RunConfig]:
    """Strings of up to 25 letters through 64 units, as in the demo."""
    return plan_seeds(seeds, "reversal", model, **LONG, **settings)


@EXPERIMENTS.register("chapter36/attention")
class Attention(Experiment):
    """The pipe, the switchboard, and no recurrence at all."""

    title = "Attention and the Transformer against the fixed vector"
    about = (
        "Three architectures learn the same reversal. On the chapter's own strings (5 to 10"
        " letters) a fixed vector suffices. On strings of 5 to 25 letters with 64"
        " units it overflows, and the decoder needs to look back. The price is measured as the"
        " time of one decoder step (fixed vector, attention) or of one pass (Transformer) as"
        " the source grows."
    )
    claims = ("c36.attention", "c36.transformer")

    def plan(self, scale: Scale) -> Plan:
        """Short strings with the chapter's recipe, long strings with the demo's."""
        updates = dict.fromkeys(MODELS, LONG_UPDATES[scale])
        updates["transformer"] = TRANSFORMER_UPDATES[scale]
        short = {"hidden": LONG["hidden"], "updates": updates["transformer"]}
        return {
            "fixed": plan_chapter(scale),
            "attention": plan_chapter(scale, attention="dot"),
            "transformer": plan_seeds(scale, "reversal", "transformer", **short),
            **{
                f"{name}-long": plan_long(scale, model, updates=updates[name])
                for name, model in MODELS.items()
            },
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by length on both ranges, and the time of a step as the source grows."""
        short = {name: measure_by_length(runs[name], range(3, 21)) for name in MODELS}
        long = {name: measure_by_length(runs[f"{name}-long"], range(3, 31)) for name in MODELS}
        inside, upper, beyond = (
            {name: average_lengths(long[name], lengths) for name in MODELS}
            for lengths in (range(5, 26), range(16, 26), range(26, 31))
        )
        times = {name: time_steps(name, PLACES) for name in MODELS}
        growth = {
            name: measure_each(rounds, lambda found: fit_growth(PLACES, found))
            for name, rounds in times.items()
        }
        measures = {
            "c36.attention": {
                "accuracy_gain_long": subtract(upper["attention"], upper["fixed"], CHANGE),
                "attention_inside": inside["attention"],
                "fixed_inside": inside["fixed"],
                "fixed_growth": growth["fixed"],
                "attention_growth": growth["attention"],
            },
            "c36.transformer": {
                "transformer_inside": inside["transformer"],
                "transformer_growth": growth["transformer"],
            },
        }
        title = f"5-10 letters, d = {UNITS[scale]} (Transformer 64)"
        table = Table(
            "Accuracy inside the training range, and growth of the cost",
            ("model", "exact match, 5-25 letters", "what is timed", "growth: T to the power of"),
            (
                ("fixed vector", inside["fixed"], "one decoder step", growth["fixed"]),
                ("attention", inside["attention"], "one decoder step", growth["attention"]),
                ("Transformer", inside["transformer"], "one pass", growth["transformer"]),
            ),
        )
        return Findings.of(
            measures,
            table,
            Figure.of(
                "c36-attention",
                "Exact match by length (bands: 95 % interval over seeds), and the time of one"
                " decoder step (fixed, attention; batch 64) or one whole pass (Transformer; batch"
                " 2), on one thread.",
                draw_lengths(title, 10, *Line.of_each(short)),
                draw_lengths("5-25 letters, d = 64", 25, *Line.of_each(long)),
                _draw_cost(times, growth),
            ),
            f"On strings of 5-25 letters the fixed vector reaches {to_percent(inside['fixed'])},"
            f" attention {to_percent(inside['attention'])}, the Transformer"
            f" {to_percent(inside['transformer'])}.",
            "Past the longest string seen in training (26-30 letters): "
            + ", ".join(f"{name} {to_percent(share)}" for name, share in beyond.items())
            + ". Attention removes the limit of the vector, not that of the training data.",
        )


def _draw_cost(times: Mapping[str, Sequence[Times]], growth: Mapping[str, Estimate]) -> Panel:
    """The fastest of all rounds at each length."""
    places = tuple(map(float, PLACES))
    lines = (
        Line(f"{name}: grows as T^{round(growth[name].mean, 2) + 0:.2f}", places,
             tuple(map(min, zip(*rounds, strict=True))), colour=colour, points=True)
        for colour, (name, rounds) in enumerate(times.items())
    )  # fmt: skip
    title, axis = "Cost as the source grows", "positions in the source, T"
    return Panel.of(title, axis, "time (ms)", *lines, x_scale="log", y_scale="log")


def time_steps(name: str, places: tuple[int, ...], batch: int = 64) -> tuple[Times, ...]:
    """Milliseconds of one decoder step, or of one Transformer pass, per source length; in rounds.

    The weights do not matter for the time, so fresh models are timed: the fastest of several
    tries, one thread. A Transformer's pass takes so much more that it gets a batch of 2.
    """
    config = assemble("reversal", MODELS[name], 0, {"hidden": 64})
    model = config.make_model(config.make_task()).eval()
    batch = 2 if name == "transformer" else batch
    with one_thread(), torch.no_grad():
        return tuple(
            tuple(_time_pass(model, name, place, batch) for place in places) for _ in range(ROUNDS)
        )


def _time_pass(model: Seq2Seq, name: str, places: int, batch: int) -> float:
    source = torch.randint(3, 29, (batch, places))
    lengths = torch.full((batch,), places)
    memory = model.encode(source, lengths)
    best = math.inf
    for _ in range(3 if name == "transformer" else 20):
        start = time.perf_counter()
        if name == "transformer":
            model(source, lengths, source)
        else:
            model.step(memory, source[:, 0], memory.initial)
        best = min(best, time.perf_counter() - start)
    return best * 1000


def fit_growth(places: tuple[int, ...], times: Times) -> float:
    """The power of T by which the time grows over the three longest sources."""
    return float(np.polyfit(np.log(places[-3:]), np.log(times[-3:]), 1)[0])
