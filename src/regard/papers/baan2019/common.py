"""What the experiments of baan2019 have in common: the two models, their recordings, numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.display import Bars, Panel
from regard.papers.experiment import Experiment, Measures, Plan, Scale, seeds
from regard.recordings import Recording, record
from regard.runs import Run, RunConfig
from regard.statistics import Estimate

SPLITS = ("HI", "HC", "HT", "NC")
LONGER = ("seen", "incremental", "new")
MODELS = {"guided": 1, "baseline": 0}  # and the weight of their guidance
ROWS = 576  # all rows of one and two tables, which every analysis looks at


class Lookup(Experiment):
    """An experiment on guided models and baselines that differ in nothing but guidance.

    At full scale the paper's recipe (batch 1, 100 epochs), at quick scale half of the fast one.
    Tables come from the generator, or from the published files: `--data lookup=FOLDER`.
    """

    wants = ("lookup",)

    def models(self, scale: Scale, guidance: int, **more: object) -> list[RunConfig]:
        """One configuration per seed."""
        recipe = {"recipe": "paper"} if scale == "full" else {"recipe": "fast", "updates": 2000}
        settings = {"guidance": guidance, **({} if "recipe" in more else recipe), **more}
        if "lookup" in self.data:
            settings["data"] = self.data["lookup"]
        return seeds(5 if scale == "full" else 2, "lookup", "baan", **settings)

    def plan(self, scale: Scale) -> Plan:
        """Guided models and baselines."""
        return {name: self.models(scale, weight) for name, weight in MODELS.items()}


def looked(runs: Sequence[Run], gates: bool = False) -> list[Recording]:
    """Each run recorded on all rows, those of training included, as the paper does it."""
    return [record(run, n=ROWS, split="all", gates=gates) for run in runs]


def share(runs: Sequence[Run], split: str) -> Estimate:
    """Sequence accuracy on a split over seeds."""
    return Estimate.share(run.metrics[split] for run in runs)


def over_seeds(runs: Sequence[Run], of: Callable[[Run], float]) -> Estimate:
    """One number per run."""
    return Estimate.of(of(run) for run in runs)


def more(guided: Estimate, baseline: Estimate) -> Estimate:
    """How much more the guided models have, pair by pair of seeds."""
    return Estimate.of(a - b for a, b in zip(guided.values, baseline.values, strict=True))


def split_panel(title: str, groups: dict[str, Measures], order: Sequence[str]) -> Panel:
    """Bars by split, a colour per group of models."""
    bars = tuple(
        Bars.of(name, {split: values[split] for split in order}, colour)
        for colour, (name, values) in enumerate(groups.items())
    )
    return Panel(title, "split", "sequence accuracy", bars, (0, 1.05))
