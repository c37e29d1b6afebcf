"""aitken2021, section 4: English to French (Fig. 4), and features across tasks (Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from regard.display import Bars, Figure, Panel, Table
from regard.instruments import Decomposition, breakdown, offset, paths, readouts, variance
from regard.instruments.instrument import Result
from regard.papers.aitken2021.escan import escan
from regard.papers.aitken2021.looking import (
    REACH,
    accuracy,
    attention_panel,
    count,
    follows,
    joined,
    looked,
    measured,
)
from regard.papers.aitken2021.one_to_one import one_to_one
from regard.papers.experiment import (
    Experiment,
    Findings,
    Measures,
    Plan,
    Runs,
    Scale,
    experiments,
    seeds,
)
from regard.runs import RunConfig
from regard.statistics import Estimate

MODELS = ("aed", "ao")
CORPUS = "english-french"
# The paper keeps 30,000 words of a corpus of millions of sentences; of one of a hundred thousand,
# the 4,000 most frequent words are over 90 % of the text, and training takes a sixth of the time.
LIMITS = {"vocabulary": 4000, "held_out": 1000, "updates": 1200}
TASKS = ("one-to-one", "escan", "translation")


def translation(model: str, scale: Scale, corpus: str | None) -> list[RunConfig]:
    """The runs of one architecture, on the shipped corpus or on one that the user names."""
    named: dict[str, object] = {"source": corpus, "bad_lines": "skip", **LIMITS} if corpus else {}
    if scale == "quick":
        return seeds(count(scale), "parallel", model, updates=1000)
    return seeds(count(scale), "parallel", model, **named)


class WithCorpus(Experiment):
    """An experiment that translates."""

    wants = (CORPUS,)

    def translations(self, scale: Scale) -> Plan:
        """Both architectures with attention."""
        corpus = self.data.get(CORPUS)
        return {f"translation {model}": translation(model, scale, corpus) for model in MODELS}

    def corpus(self, scale: Scale) -> str:
        """Which corpus it was, in words."""
        if scale == "full" and CORPUS in self.data:
            return "Translation on the corpus that was named (its hash is in each run)."
        other = f"--scale full --data {CORPUS}=FILE"
        return f"Translation on the small shipped corpus; name another with {other}."


@experiments.register("aitken2021/translation")
class TranslationExperiment(WithCorpus):
    """Natural language: nearly diagonal, but not in every sentence."""

    title = "English to French"
    about = "Sample attention, temporal components, and the dictionary of the readouts (Fig. 4)."
    claims = ("ait.translation",)

    def plan(self, scale: Scale) -> Plan:
        """Both architectures."""
        return self.translations(scale)

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """How diagonal attention is, and temporal alignment early against late."""
        seen = {name: looked(runs[name]) for name in runs}
        own: Measures = {}
        for name, sources in seen.items():
            model = name.split(" ")[1]
            own[f"follows_{model}"] = measured(sources, lambda d: follows(d.recording))
            own[f"early_minus_late_{model}"] = measured(sources, early_minus_late)
            own[f"accuracy_{model}"] = accuracy(runs[name])
        figures = tuple(
            Figure(
                f"ait-{name.replace(' ', '-')}",
                f"{name.split(' ')[1].upper()}, English to French (Fig. 4), first of"
                f" {len(sources)} seeds. {self.corpus(scale)}",
                (
                    attention_panel(sources[0].recording, 3),
                    *paths(sources, reach=REACH).figure().panels,
                    *readouts(sources).figure().panels,
                ),
            )
            for name, sources in seen.items()
        )
        table = Table("Translation", ("what", "measured"), tuple(own.items()))
        return Findings({"ait.translation": own}, (table,), figures, (self.corpus(scale),))


def early_minus_late(source: Decomposition) -> float:
    """Weight of softmax(μ·μ) on the diagonal and its neighbours, first half less second half."""
    attention = paths(source, reach=REACH).first.attention
    steps = min(attention.shape)
    near = [attention[s, max(0, s - 1) : s + 2].sum() for s in range(steps)]
    half = steps // 2
    return float(np.mean(near[:half]) - np.mean(near[half:]))


@experiments.register("aitken2021/features")
class FeaturesExperiment(WithCorpus):
    """The same measurements on three tasks."""

    title = "Alignment, offset, variance and readouts across tasks"
    about = "One-to-one, eSCAN and translation side by side (Fig. 5)."
    claims = ("ait.solve", "ait.breakdown", "ait.offset", "ait.variance", "ait.readout")

    def plan(self, scale: Scale) -> Plan:
        """Both architectures on every task, and VED on the first."""
        return {
            "one-to-one ved": one_to_one("ved", scale),
            **{f"one-to-one {model}": one_to_one(model, scale) for model in MODELS},
            **{f"escan {model}": escan(model, scale) for model in MODELS},
            **self.translations(scale),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """All of Fig. 5."""
        names = [f"{task} {model}" for task in TASKS for model in MODELS]
        seen = {name: looked(runs[name]) for name in names}
        shares = {name: breakdown(seen[name]) for name in names}
        moved = {name: offset(seen[name], reach=REACH) for name in names}
        left = {name: variance(seen[name]) for name in names}
        spelled = {name: readouts(seen[name]) for name in names}
        solved = {_key("accuracy", name): accuracy(runs[name]) for name in runs}
        measures = {
            "ait.solve": solved,
            "ait.breakdown": _alignment(shares),
            "ait.offset": {
                _key(what, name): moved[name].estimates()[value]
                for name in names
                for what, value in (("offset", "temporal offset"), ("data", "data offset"),
                                    ("error", "error"), ("follows", "correlation"))
            },
            "ait.variance": {_key("drop", name): left[name].estimates()["drop"] for name in names},
            "ait.readout": {
                _key("dictionary", name): spelled[name].estimates()["dictionary"] for name in names
            } | {
                _key("silent", name): Estimate.of(
                    float(seed.maximal("and") + seed.maximal("twice"))
                    for seed in spelled[name].seeds
                )
                for name in names if name.startswith("escan")
            },
        }  # fmt: skip
        table = Table(
            "Features",
            ("condition", "word accuracy", "μ·μ", "μ·μ + μ·χ + μ·Δ", "variance drop", "dictionary"),
            tuple(
                (name, accuracy(runs[name]), shares[name].estimates()["temporal-temporal"],
                 _three(shares[name]), left[name].estimates()["drop"],
                 spelled[name].estimates()["dictionary"])
                for name in names
            ),
        )  # fmt: skip
        return Findings(
            measures,
            (table, self._untrained(runs, names)),
            (
                _breakdown_figure(shares),
                joined("ait-offset", "Temporal alignment by offset, AO (Fig. 5b).",
                       *(moved[f"{task} ao"].figure() for task in TASKS), titles=TASKS),
                _variance_figure(left),
                joined("ait-readout", "Readouts and input components, AO (Fig. 5d; Fig. 4c).",
                       spelled["escan ao"].figure(), spelled["translation ao"].figure(),
                       titles=("eSCAN", "translation")),
            ),
            (self.corpus(scale),),
        )  # fmt: skip

    def _untrained(self, runs: Runs, names: list[str]) -> Table:
        """The same of the networks before training: what random weights give by themselves."""
        rows = []
        for name in names:
            seen = looked(runs[name], checkpoint=0)
            shares = breakdown(seen)
            rows.append(
                (name, shares.estimates()["temporal-temporal"], _three(shares),
                 variance(seen).estimates()["drop"], readouts(seen).estimates()["dictionary"])
            )  # fmt: skip
        columns = ("condition", "μ·μ", "μ·μ + μ·χ + μ·Δ", "variance drop", "dictionary")
        return Table("The same networks, untrained", columns, tuple(rows))


def _key(what: str, name: str) -> str:
    task, model = name.split(" ")
    return f"{what}_{task.replace('-', '_')}_{model}"


def _three(result: Result) -> Estimate:  # type: ignore[type-arg]
    """μ·μ + μ·χ + μ·Δ."""
    return Estimate.of(float(seed.absolute[:3].sum()) for seed in result.seeds)


def _alignment(shares: Mapping[str, Result]) -> Measures:  # type: ignore[type-arg]
    found: Measures = {}
    for name, result in shares.items():
        found[_key("temporal", name)] = result.estimates()["temporal-temporal"]
        found[_key("three", name)] = _three(result)
        found[_key("largest", name)] = Estimate.of(float(s.absolute.max()) for s in result.seeds)
    return found


def _breakdown_figure(shares: Mapping[str, Result]) -> Figure:  # type: ignore[type-arg]
    groups = {"μ·μ": slice(0, 1), "μ·χ + μ·Δ": slice(1, 3), "other six": slice(3, 9)}
    bars = []
    for colour, (label, terms) in enumerate(groups.items()):
        values = {
            name: Estimate.of(float(seed.absolute[terms].sum()) for seed in result.seeds)
            for name, result in shares.items()
        }
        bars.append(Bars.of(label, values, colour))
    return Figure(
        "ait-breakdown",
        "Shares of the alignment at the five largest positions (Fig. 5a).",
        (Panel("Nine terms in three groups", "", "share", tuple(bars), (0, 1)),),
    )


def _variance_figure(left: Mapping[str, Result]) -> Figure:  # type: ignore[type-arg]
    bars = Bars.of("", {name: result.estimates()["left"] for name, result in left.items()})
    return Figure(
        "ait-variance",
        "Variance of a word's states after the temporal component is taken away (Fig. 5c).",
        (Panel("What time does not explain", "", "share of variance left", (bars,), (0, 1)),),
    )
