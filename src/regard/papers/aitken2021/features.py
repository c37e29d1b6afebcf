"""aitken2021, section 4: alignment, offset, variance and readouts across tasks (Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.components import breakdown, dictionary, offset, variance
from regard.instruments.components.breakdown import Breakdown
from regard.instruments.components.dictionary import Dictionary, DictionaryResult
from regard.instruments.components.variance import VarianceResult
from regard.papers.aitken2021._attention import REACH, WORDS, record_runs
from regard.papers.aitken2021.escan import plan_escan
from regard.papers.aitken2021.one_to_one import plan_one_to_one
from regard.papers.aitken2021.translation import MODELS, WithCorpus
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import SHARE, join_figures, measure_each, read_share
from regard.recordings.recording import Recording
from regard.statistics import Estimate

TASKS = ("one-to-one", "escan", "translation")
COLUMNS = ("μ·μ", "μ·μ + μ·χ + μ·Δ", "variance drop", "dictionary")
OFFSETS = {"offset": "temporal offset", "data": "data offset", "error": "error",
           "follows": "correlation"}  # fmt: skip


@EXPERIMENTS.register("aitken2021/features")
class FeaturesExperiment(WithCorpus):
    """The same measurements on three tasks."""

    title = "Alignment, offset, variance and readouts across tasks"
    about = "One-to-one, eSCAN and translation side by side (Fig. 5)."
    claims = ("ait.solve", "ait.breakdown", "ait.offset", "ait.variance", "ait.readout")

    def plan(self, scale: Scale) -> Plan:
        """Both architectures on every task, and VED on the first."""
        return {
            "one-to-one ved": plan_one_to_one("ved", scale),
            **{f"one-to-one {model}": plan_one_to_one(model, scale) for model in MODELS},
            **{f"escan {model}": plan_escan(model, scale) for model in MODELS},
            **self.plan_translations(scale),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """All of Fig. 5."""
        names = [f"{task} {model}" for task in TASKS for model in MODELS]
        accuracy = {name: read_share(runs[name], WORDS) for name in runs}
        seen = {name: record_runs(runs[name]) for name in names}
        found = {name: Features.of(seen[name]) for name in names}
        moved = {name: offset(seen[name], reach=REACH) for name in names}
        measures = {
            "ait.solve": {_key("accuracy", name): value for name, value in accuracy.items()},
            "ait.breakdown": {
                _key(what, name): value
                for name in names
                for what, value in found[name].measure_alignment().items()
            },
            "ait.offset": {
                _key(what, name): moved[name].estimates()[value]
                for name in names
                for what, value in OFFSETS.items()
            },
            "ait.variance": {_key("drop", name): found[name].row[2] for name in names},
            "ait.readout": {_key("dictionary", name): found[name].row[3] for name in names}
            | {
                _key("silent", name): measure_each(found[name].readouts.seeds, _count_silent)
                for name in names
                if name.startswith("escan")
            },
        }
        before = {name: Features.of(record_runs(runs[name], checkpoint=0)) for name in names}
        return Findings.of(
            measures,
            Table(
                "Features",
                ("condition", "word accuracy", *COLUMNS),
                tuple((name, accuracy[name], *found[name].row) for name in names),
            ),
            Table(  # what random weights give by themselves
                "The same networks, untrained",
                ("condition", *COLUMNS),
                tuple((name, *before[name].row) for name in names),
            ),
            draw_alignments("ait-breakdown", found),
            join_figures(
                "ait-offset",
                "Temporal alignment by offset, AO (Fig. 5b).",
                {task: moved[f"{task} ao"].figure() for task in TASKS},
            ),
            _draw_variances(found),
            join_figures(
                "ait-readout",
                "Readouts and input components, AO (Fig. 5d; Fig. 4c).",
                {
                    title: found[f"{title.lower()} ao"].readouts.figure()
                    for title in ("eSCAN", "translation")
                },
            ),
            self.name_corpus(scale),
        )


@dataclass(frozen=True)
class Features:
    """What Fig. 5 shows of one condition."""

    shares: Breakdown
    left: VarianceResult
    readouts: DictionaryResult

    @classmethod
    def of(cls, recordings: Sequence[Recording]) -> Features:
        """Of one recording per seed."""
        return cls(breakdown(recordings), variance(recordings), dictionary(recordings))

    @property
    def row(self) -> tuple[Estimate, ...]:
        """Under `COLUMNS`."""
        time, drop = self.shares.estimates()["temporal-temporal"], self.left.estimates()["drop"]
        return time, self.add_terms(0, 3), drop, self.readouts.estimates()["dictionary"]

    def add_terms(self, start: int, stop: int) -> Estimate:
        """The shares of some of the nine terms together."""
        return measure_each(self.shares.seeds, lambda s: float(s.absolute[start:stop].sum()), SHARE)

    def measure_alignment(self) -> Measures:
        """μ·μ, what it is with μ·χ and μ·Δ, and the largest of the nine terms."""
        return {
            "temporal": self.shares.estimates()["temporal-temporal"],
            "three": self.add_terms(0, 3),
            "largest": measure_each(self.shares.seeds, lambda s: float(s.absolute.max()), SHARE),
        }


def _key(what: str, name: str) -> str:
    task, model = name.split(" ")
    return f"{what}_{task.replace('-', '_')}_{model}"


def _count_silent(readouts: Dictionary) -> float:
    """For how many readouts the component of a word that is never put out is the largest."""
    return float(readouts.maximal("and") + readouts.maximal("twice"))


def draw_alignments(name: str, found: Mapping[str, Features]) -> Figure:
    """The nine terms in three groups, a bar for each condition."""
    groups = {
        label: {name: one.add_terms(*terms) for name, one in found.items()}
        for label, terms in {"μ·μ": (0, 1), "μ·χ + μ·Δ": (1, 3), "other six": (3, 9)}.items()
    }
    return Figure.of(
        name,
        "Shares of the alignment at the five largest positions (Fig. 5a).",
        Panel("Nine terms in three groups", "", "share", Bars.of_each(groups), (0, 1)),
    )


def _draw_variances(found: Mapping[str, Features]) -> Figure:
    bars = Bars.of("", {name: one.left.estimates()["left"] for name, one in found.items()})
    return Figure.of(
        "ait-variance",
        "Variance of a word's states after the temporal component is taken away (Fig. 5c).",
        Panel("What time does not explain", "", "share of variance left", (bars,), (0, 1)),
    )
