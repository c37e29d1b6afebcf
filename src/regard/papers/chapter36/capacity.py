"""The bottleneck: how much a fixed vector holds."""

from __future__ import annotations

import math

import numpy as np

from regard.display import Figure, Heat, Line, Panel, Table
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import SIZE, plan_seeds, read_share
from regard.statistics import Estimate

BITS = math.log2(26)  # information in a letter


@EXPERIMENTS.register("chapter36/capacity")
class Capacity(Experiment):
    """How large must the context be for strings of a given length?"""

    title = "What a fixed vector holds"
    about = (
        "A string of T letters carries T·log2 26 bits, and all of them must pass through the last"
        " state of the encoder. One LSTM is trained per length and hidden size d, always forced,"
        " with a rate that falls from .005 to zero; the smallest size that reverses nine strings"
        " in ten says how many bits a dimension holds in practice. (An LSTM hands over h and c,"
        " so there are 2d numbers; the source counts d, and so do we.) The budget of the training"
        " matters too: what is not solved here may be solvable with more updates. A length is"
        " tried when some model reversed the one before it."
    )
    claims = ("c36.capacity",)
    solved = 0.9
    grid = {
        "quick": ((4, 7, 10), (8, 32, 64), 500),
        "full": ((5, 10, 20, 40, 70, 100), (8, 16, 32, 64, 128, 256), 2000),
    }

    def plan(self, scale: Scale) -> Plan:
        """The shortest length with every size."""
        return self.plan_length(self.grid[scale][0][0], scale)

    def then(self, runs: Runs, scale: Scale) -> Plan:
        """The next length, if some model reverses the longest one so far."""
        lengths, sizes, _ = self.grid[scale]
        tried = self.find_tried(runs, scale)
        last = (read_share(runs[f"{tried[-1]}x{size}"], "accuracy") for size in sizes)
        if tried == lengths or not any(max(e.values) >= self.solved for e in last):
            return {}
        return self.plan_length(lengths[len(tried)], scale)

    def coverage(self, scale: Scale, plan: Plan | None = None) -> str:
        """How many cells of the grid were trained."""
        lengths, sizes, _ = self.grid[scale]
        every = len(lengths) * len(sizes)
        tried = every if plan is None else len(plan)
        left = (every - tried) // len(sizes)
        ending = f"; {left} longer lengths were not tried" if left else ""
        return f"{tried} of {every} pairs of length and size{ending}"

    def plan_length(self, length: int, scale: Scale) -> Plan:
        """Strings of one length with every size."""
        _, sizes, updates = self.grid[scale]
        return {
            f"{length}x{size}": plan_seeds(
                scale, "reversal", "quickstart", shortest=length, longest=length, hidden=size,
                 updates=updates, learning_rate=5e-3, stop_accuracy=0.99,
            )
            for size in sizes
        }  # fmt: skip

    def find_tried(self, runs: Runs, scale: Scale) -> tuple[int, ...]:
        """The lengths that there are runs of."""
        lengths, sizes, _ = self.grid[scale]
        return tuple(length for length in lengths if f"{length}x{sizes[0]}" in runs)

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Accuracy over length and size, and the bits per dimension that follow."""
        lengths, sizes, updates = self.grid[scale]
        tried = self.find_tried(runs, scale)
        exact, words = (
            {cell: read_share(runs[cell], name) for cell in runs}
            for name in ("accuracy", "token_accuracy")
        )
        found = np.array([self._find_smallest(exact, n, sizes) for n in tried])
        left = np.full((len(lengths) - len(tried), found.shape[1]), math.nan)  # not tried
        per_seed = np.concatenate([found, left])
        # Where no size was enough, twice the largest stands in: too small rather than too large.
        assumed = np.nan_to_num(per_seed, nan=2 * sizes[-1])
        bits = np.where(np.isnan(per_seed), 0, np.array(lengths)[:, None] * BITS / assumed)
        measures = {
            "bits_per_dimension": Estimate.of(bits.max(axis=0), SIZE),
            "growth": Estimate.of(assumed[-1] - assumed[0]),
        }
        table = Table(
            "Smallest hidden size that reverses a length",
            ("length", "bits", "smallest d (mean over seeds that solved it)", "bits per dimension"),
            tuple(
                (n, f"{n * BITS:.0f}", *self._list_sizes(row, n))
                for n, row in zip(tried, per_seed, strict=False)
            )
            + tuple((n, f"{n * BITS:.0f}", "not tried", "–") for n in lengths[len(tried) :]),
        )
        return Findings.of(
            {"c36.capacity": measures},
            table,
            Figure.of(
                "c36-capacity",
                f"Reversal of strings of one length after at most {updates} updates, mean over"
                " seeds. Right: the smallest size that reaches 90 %, beside the source's 8 bits per"
                " dimension.",
                self._draw_grid("Whole strings", "exact match", exact, tried, sizes),
                self._draw_grid("Letters", "letter accuracy", words, tried, sizes),
                self._draw_need(per_seed, lengths),
            ),
            f"At the smallest size that solves a length, a dimension carries at most"
            f" {measures['bits_per_dimension'].mean:.1f} bits after this training; the source"
            " reckons with 5 to 10.",
        )

    def _find_smallest(
        self, exact: dict[str, Estimate], length: int, sizes: tuple[int, ...]
    ) -> list[float]:
        """The smallest size that solves a length, by seed; NaN where none does. -> (seed,)"""
        found = zip(*(exact[f"{length}x{d}"].values for d in sizes), strict=True)  # by seed
        return [
            next((float(d) for d, share in zip(sizes, seed, strict=True) if share >= self.solved),
                 math.nan)
            for seed in found
        ]  # fmt: skip

    def _draw_grid(
        self,
        title: str,
        label: str,
        values: dict[str, Estimate],
        lengths: tuple[int, ...],
        sizes: tuple[int, ...],
    ) -> Panel:
        """Means by hidden size and length, the largest size at the top."""
        heat = Heat(
            tuple(map(str, sizes[::-1])),
            tuple(f"{n}\n{n * BITS:.0f} bits" for n in lengths),
            tuple(tuple(values[f"{n}x{d}"].mean for n in lengths) for d in sizes[::-1]),
            label,
        )
        axis = "letters in the string, and their information"
        return Panel(title, axis, "hidden size d", (heat,))

    def _draw_need(self, per_seed: np.ndarray, lengths: tuple[int, ...]) -> Panel:
        """The smallest size over the information, beside what some budgets would need."""
        bits = tuple(n * BITS for n in lengths)
        means = (float(np.nanmean(r)) if np.isfinite(r).any() else math.nan for r in per_seed)
        line = Line("smallest d measured", bits, tuple(means), points=True)
        budgets = (
            Line(f"{b} bits per dimension", (0.0, bits[-1]), (0.0, bits[-1] / b), colour=c,
                 dashed=True)
            for b, c in ((1, 7), (8, 4))
        )  # fmt: skip
        axis = "information in the string, T·log2 26 (bits)"
        return Panel("Size needed for 90 % exact match", axis, "hidden size d", (line, *budgets))

    @staticmethod
    def _list_sizes(sizes: np.ndarray, length: int) -> tuple[str, str]:
        solved = sizes[np.isfinite(sizes)]
        if not len(solved):
            return "none of those tried", "–"
        share = f" ({len(solved)} of {len(sizes)} seeds)" if len(solved) < len(sizes) else ""
        return f"{solved.mean():.0f}{share}", f"{length * BITS / solved.mean():.1f}"
