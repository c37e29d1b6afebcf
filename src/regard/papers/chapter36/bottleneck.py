"""The bottleneck: how much a fixed vector holds, and what attention changes."""

from __future__ import annotations

import math
import time
from itertools import product

import numpy as np
import torch

from regard.display import Figure, Heat, Line, Panel, Span, Table
from regard.models import Seq2Seq
from regard.papers.chapter36.measuring import by_length, difference, over, percent, spread
from regard.papers.chapter36.reversal import SEEDS, UNITS, chapter
from regard.papers.experiment import Experiment, Findings, Plan, Runs, Scale, experiments, seeds
from regard.runs import RunConfig, assemble
from regard.statistics import Estimate
from regard.training import one_thread

BITS = math.log2(26)  # information in a letter


@experiments.register("chapter36/capacity")
class Capacity(Experiment):
    """How large must the context be for strings of a given length?"""

    title = "What a fixed vector holds"
    about = (
        "A string of T letters carries T·log2 26 bits, and all of them must pass through the last"
        " state of the encoder. One LSTM is trained per length and hidden size d, always forced,"
        " with a rate that falls from .005 to zero; the smallest size that reverses nine strings"
        " in ten says how many bits a dimension holds in practice. (An LSTM hands over h and c,"
        " so there are 2d numbers; the source counts d, and so do we.) The budget of the training"
        " matters too: what is not solved here may be solvable with more updates."
    )
    claims = ("c36.capacity",)
    solved = 0.9
    grid = {
        "quick": ((4, 7, 10), (8, 32, 64), 500),
        "full": ((5, 10, 20, 40, 70, 100), (8, 16, 32, 64, 128, 256), 2000),
    }

    def plan(self, scale: Scale) -> Plan:
        """Every length with every size."""
        lengths, sizes, updates = self.grid[scale]
        return {
            f"{length}x{size}": seeds(
                SEEDS[scale],
                "reversal",
                "quickstart",
                shortest=length,
                longest=length,
                hidden=size,
                updates=updates,
                learning_rate=5e-3,
                stop_accuracy=0.99,
            )
            for length, size in product(lengths, sizes)
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy over length and size, and the bits per dimension that follow."""
        lengths, sizes, updates = self.grid[scale]
        exact, words = (
            {cell: Estimate.share(run.metrics[name] for run in runs[cell]) for cell in runs}
            for name in ("accuracy", "token_accuracy")
        )
        smallest = {
            length: self._smallest(exact, length, sizes, len(runs[f"{length}x{sizes[0]}"]))
            for length in lengths
        }
        per_seed = np.array([smallest[length] for length in lengths])  # (length, seed)
        # Where no size was enough, twice the largest stands in: too small rather than too large.
        assumed = np.nan_to_num(per_seed, nan=2 * sizes[-1])
        bits = np.where(np.isnan(per_seed), 0, np.array(lengths)[:, None] * BITS / assumed)
        measures = {
            "bits_per_dimension": Estimate.of(bits.max(axis=0)),
            "growth": Estimate.of(assumed[-1] - assumed[0]),
        }
        columns = tuple(f"{n}\n{n * BITS:.0f} bits" for n in lengths)
        panels = tuple(
            Panel(
                title,
                "letters in the string, and their information",
                "hidden size d",
                (
                    Heat(
                        tuple(str(d) for d in sizes[::-1]),
                        columns,
                        tuple(tuple(values[f"{n}x{d}"].mean for n in lengths) for d in sizes[::-1]),
                        label,
                    ),
                ),
            )
            for title, label, values in (
                ("Whole strings", "exact match", exact),
                ("Letters", "letter accuracy", words),
            )
        )
        line = Line(
            "smallest d measured",
            tuple(n * BITS for n in lengths),
            tuple(
                float(np.nanmean(row)) if np.isfinite(row).any() else math.nan for row in per_seed
            ),
            points=True,
        )
        budget = tuple(
            Line(
                f"{b} bits per dimension",
                (0.0, lengths[-1] * BITS),
                (0.0, lengths[-1] * BITS / b),
                colour=colour,
                dashed=True,
            )
            for b, colour in ((1, 7), (8, 4))
        )
        need = Panel(
            "Size needed for 90 % exact match",
            "information in the string, T·log2 26 (bits)",
            "hidden size d",
            (line, *budget),
        )
        figure = Figure(
            "c36-capacity",
            f"Reversal of strings of one length after at most {updates} updates, mean over seeds."
            " Right: the smallest size that reaches 90 %, beside the source's 8 bits per"
            " dimension.",
            (*panels, need),
        )
        table = Table(
            "Smallest hidden size that reverses a length",
            ("length", "bits", "smallest d (mean over seeds that solved it)", "bits per dimension"),
            tuple((n, f"{n * BITS:.0f}", *self._row(np.array(smallest[n]), n)) for n in lengths),
        )
        found = (
            f"At the smallest size that solves a length, a dimension carries at most"
            f" {measures['bits_per_dimension'].mean:.1f} bits after this training; the source"
            " reckons with 5 to 10.",
        )
        return Findings({"c36.capacity": measures}, (table,), (figure,), found)

    def _smallest(
        self, exact: dict[str, Estimate], length: int, sizes: tuple[int, ...], count: int
    ) -> list[float]:
        """The smallest size that solves a length, per seed; NaN where none does."""
        return [
            next(
                (float(d) for d in sizes if exact[f"{length}x{d}"].values[seed] >= self.solved),
                math.nan,
            )
            for seed in range(count)
        ]

    @staticmethod
    def _row(sizes: np.ndarray, length: int) -> tuple[str, str]:
        solved = sizes[np.isfinite(sizes)]
        if not len(solved):
            return "none of those tried", "–"
        share = f" ({len(solved)} of {len(sizes)} seeds)" if len(solved) < len(sizes) else ""
        return f"{solved.mean():.0f}{share}", f"{length * BITS / solved.mean():.1f}"


LONG = {"shortest": 5, "longest": 25, "hidden": 64}


TRANSFORMER_UPDATES = {"quick": 450, "full": 4000}
LONG_UPDATES = {"quick": 800, "full": 3000}


def long_strings(count: int, model: str, **settings: object) -> list[RunConfig]:
    """Strings of up to 25 letters through 64 units, as in the demo."""
    return seeds(count, "reversal", model, **LONG, **settings)


@experiments.register("chapter36/attention")
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
        count = SEEDS[scale]
        transformer = {"hidden": 64, "updates": TRANSFORMER_UPDATES[scale]}
        return {
            "fixed": chapter(scale),
            "attention": chapter(scale, attention="dot"),
            "transformer": seeds(count, "reversal", "transformer", **transformer),
            "fixed-long": long_strings(count, "quickstart", updates=LONG_UPDATES[scale]),
            "attention-long": long_strings(
                count, "quickstart-attention", updates=LONG_UPDATES[scale]
            ),
            "transformer-long": seeds(
                count, "reversal", "transformer", shortest=5, longest=25, **transformer
            ),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy by length on both ranges, and the time of a step as the source grows."""
        names = ("fixed", "attention", "transformer")
        short = {name: by_length(runs[name], range(3, 21)) for name in names}
        long = {name: by_length(runs[f"{name}-long"], range(3, 31)) for name in names}
        inside = {name: over(long[name], range(5, 26)) for name in names}
        places = (64, 128, 256, 512, 1024)
        times = {name: step_times(name, places) for name in names}
        growth = {name: growth_of(places, times[name]) for name in names}
        gain = difference(
            over(long["attention"], range(16, 26)), over(long["fixed"], range(16, 26))
        )
        measures = {
            "c36.attention": {
                "accuracy_gain_long": gain,
                "attention_inside": inside["attention"],
                "fixed_inside": inside["fixed"],
                "fixed_growth": Estimate.of([growth["fixed"]]),
                "attention_growth": Estimate.of([growth["attention"]]),
            },
            "c36.transformer": {
                "transformer_inside": inside["transformer"],
                "transformer_growth": Estimate.of([growth["transformer"]]),
            },
        }
        panels = tuple(
            Panel(
                title,
                "letters in the string",
                "exact match",
                (
                    Span("trained on these lengths", 4.5, stop),
                    *(spread(Line, n, curves[n], c) for c, n in enumerate(names)),
                ),
                y_range=(0, 1.05),
            )
            for title, curves, stop in (
                (f"5-10 letters, d = {UNITS[scale]} (Transformer 64)", short, 10.5),
                ("5-25 letters, d = 64", long, 25.5),
            )
        )
        cost = Panel(
            "Cost as the source grows",
            "positions in the source, T",
            "time (ms)",
            tuple(
                Line(
                    f"{n}: grows as T^{growth[n]:.2f}",
                    tuple(map(float, places)),
                    times[n],
                    colour=c,
                    points=True,
                )
                for c, n in enumerate(names)
            ),
            x_scale="log",
            y_scale="log",
        )
        figure = Figure(
            "c36-attention",
            "Exact match by length (bands: 95 % interval over seeds), and the time of one decoder"
            " step (fixed, attention; batch 64) or one whole pass (Transformer; batch 2), on one"
            " thread.",
            (*panels, cost),
        )
        table = Table(
            "Accuracy inside the training range, and growth of the cost",
            ("model", "exact match, 5-25 letters", "what is timed", "growth: T to the power of"),
            (
                ("fixed vector", inside["fixed"], "one decoder step", growth["fixed"]),
                ("attention", inside["attention"], "one decoder step", growth["attention"]),
                ("Transformer", inside["transformer"], "one pass", growth["transformer"]),
            ),
        )
        found = (
            f"On strings of 5-25 letters the fixed vector reaches {percent(inside['fixed'])},"
            f" attention {percent(inside['attention'])}, the Transformer"
            f" {percent(inside['transformer'])}.",
            "Past the longest string seen in training (26-30 letters): "
            + ", ".join(f"{n} {percent(over(long[n], range(26, 31)))}" for n in names)
            + ". Attention removes the limit of the vector, not that of the training data.",
        )
        return Findings(measures, (table,), (figure,), found)


def step_times(name: str, places: tuple[int, ...], batch: int = 64) -> tuple[float, ...]:
    """Milliseconds of one decoder step, or of one Transformer pass, per source length.

    The weights do not matter for the time, so fresh models are timed: the fastest of several
    tries, one thread. A Transformer's pass takes so much more that it gets a batch of 2.
    """
    preset = {
        "fixed": "quickstart",
        "attention": "quickstart-attention",
        "transformer": "transformer",
    }[name]
    config = assemble("reversal", preset, 0, {"hidden": 64})
    model = config.make_model(config.make_task()).eval()
    batch = 2 if name == "transformer" else batch
    with one_thread(), torch.no_grad():
        return tuple(_timed(model, name, place, batch) for place in places)


def _timed(model: Seq2Seq, name: str, places: int, batch: int) -> float:
    source = torch.randint(3, 29, (batch, places))
    lengths = torch.full((batch,), places)
    memory = model.encode(source, lengths)
    best = math.inf
    for _ in range(12 if name == "transformer" else 100):
        start = time.perf_counter()
        if name == "transformer":
            model(source, lengths, source)
        else:
            model.step(memory, source[:, 0], memory.initial)
        best = min(best, time.perf_counter() - start)
    return best * 1000


def growth_of(places: tuple[int, ...], times: tuple[float, ...]) -> float:
    """The power of T by which the time grows over the three longest sources."""
    return float(np.polyfit(np.log(places[-3:]), np.log(times[-3:]), 1)[0])
