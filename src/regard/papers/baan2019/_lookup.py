"""The two models of baan2019, guided and not, on lookup tables; their recordings, and splits."""

from __future__ import annotations

from collections.abc import Sequence

from regard.display import Bars, Panel
from regard.papers.framework import Experiment, Measures, Plan, Scale
from regard.papers.framework.measures import draw_shares, plan_seeds, read_share
from regard.recordings.record import record
from regard.recordings.recording import Recording
from regard.runs import Run, RunConfig

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

    def plan_models(self, scale: Scale, guidance: int, **more: object) -> list[RunConfig]:
        """One configuration per seed."""
        recipe = {"recipe": "paper"} if scale == "full" else {"recipe": "fast", "updates": 2000}
        settings = {"guidance": guidance, **({} if "recipe" in more else recipe), **more}
        if "lookup" in self.data:
            settings["data"] = self.data["lookup"]
        return plan_seeds(scale, "lookup", "baan", **settings)

    def plan(self, scale: Scale) -> Plan:
        """Guided models and baselines."""
        return {name: self.plan_models(scale, weight) for name, weight in MODELS.items()}

    def plan_fast(self, scale: Scale) -> Plan:
        """The same by the fast recipe at either scale, which takes a quarter of the time."""
        short = {"updates": 2000} if scale == "quick" else {}
        return {
            name: self.plan_models(scale, weight, recipe="fast", **short)
            for name, weight in MODELS.items()
        }


def record_runs(runs: Sequence[Run], gates: bool = False) -> list[Recording]:
    """Each run recorded on all rows, those of training included, as the paper does it."""
    return [record(run, n=ROWS, split="all", gates=gates) for run in runs]


def read_splits(runs: Sequence[Run], splits: Sequence[str] = SPLITS, front: str = "") -> Measures:
    """Sequence accuracy by split, over seeds."""
    return {split: read_share(runs, front + split) for split in splits}


def draw_splits(title: str, groups: dict[str, Measures]) -> Panel:
    """Bars by split, a colour per group of models."""
    return draw_shares(title, "split", "sequence accuracy", *Bars.of_each(groups))
