"""The models of every data set of snell2021, and experiments that compare them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any, ClassVar, cast

from regard import __version__
from regard.papers.framework import Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.cost import add_hours
from regard.papers.framework.experiment import Parts
from regard.papers.framework.measures import plan_seeds
from regard.papers.snell2021._compared import Compared, Models, draw_sentences
from regard.papers.snell2021._course import Performance, count_right
from regard.papers.snell2021._data_sets import SETS, WANTED, DataSet, find_sets
from regard.papers.snell2021._row import Row
from regard.runs import RunConfig, assemble
from regard.tasks import CorpusTask

TRAINED = 500  # training sentences
SLICE = 120  # held-out sentences of a translation at quick scale
FROZEN = ("encoder", "output")
PROXY = {"batch": 64, "epochs": 30}
TRANSLATOR = {"batch": 16, "epochs": 20}
# A slice for a first look: a smaller model that sees a few thousand sentences.
QUICK: dict[str, dict[str, Any]] = {
    "classification": {"updates": 500, "hidden": 64, "embedding": 100},
    "translation": {"updates": 400, "hidden": 64, "embedding": 64, "pieces": 2000, "longest": 20},
}
# Few checkpoints at quick scale: each is looked at by every instrument.
SPARSE = {"milestones": (0, 10, 50, 100, 200), "evaluate_every": 250, "checkpoint_every": 250}


def plan_models(name: str, folder: Path, scale: Scale) -> Plan:
    """The runs of one data set, by what they are for."""
    data = SETS[name]
    quick = scale == "quick"
    task = {**data.fill_settings(folder), **(SPARSE if quick else {})}
    own = dict(QUICK[data.kind]) if quick else {}
    model = "snell-classifier" if data.kind == "classification" else "snell-translation"
    count = (3 if quick else 6) if data.kind == "classification" else 2

    def plan(number: int, first: int = 0, **more: Any) -> list[RunConfig]:
        """Runs with seeds from `first` on: a run that is compared shares no first weights."""
        settings = {**task, **own, **more}
        return [assemble(data.kind, model, first + k, settings) for k in range(number)]

    plain = {k: v for k, v in own.items() if k in ("pieces", "longest")}
    updates = {"updates": 500 if quick else count_updates(data, task, PROXY)}
    recipe = {} if quick else read_recipe(data, task)
    attending = {**recipe, **({} if quick else data.attending)}
    found = {
        "attention": plan(count, **attending),
        "uniform": plan(1, first=count, attention="uniform", **recipe),
        "proxy": plan_seeds(1, data.kind, "snell-proxy", **{**task, **plain, **updates}),
    }
    if data.kind == "classification":
        found["frozen"] = plan(1, first=count + 1, freeze=FROZEN, **attending)
    return {f"{name} {kind}": configs for kind, configs in found.items()}


def read_recipe(data: DataSet, task: dict[str, Any]) -> dict[str, Any]:
    """How the models of a data set learn where its preset does not say it; epochs as updates."""
    recipe = {**(TRANSLATOR if data.kind == "translation" else {}), **data.recipe}
    if "epochs" in recipe:
        recipe["updates"] = count_updates(data, task, recipe)
        del recipe["epochs"]
    return recipe


def count_updates(data: DataSet, task: dict[str, Any], recipe: Mapping[str, int]) -> int:
    """Updates of so many epochs of a data set."""
    rows = cast(CorpusTask, assemble(data.kind, "snell-proxy", 0, task).make_task()).rows
    return max(1, recipe["epochs"] * len(rows["train"]) // recipe["batch"])


class WithSets(Experiment):
    """An experiment on data sets that the user has."""

    wants = WANTED
    partial = True
    kinds: ClassVar[tuple[str, ...]] = ("classification", "translation")
    about_set: ClassVar[str | None] = None  # the data set that its claims are about

    def find_sets(self, scale: Scale) -> dict[str, Path]:
        """The data sets at hand."""
        found = find_sets(self.data, scale == "quick")
        return {name: folder for name, folder in found.items() if SETS[name].kind in self.kinds}

    def lacks(self, scale: Scale) -> str | None:
        """The data set that the claims are about has to be there, or any."""
        sets = self.find_sets(scale)
        if self.about_set in sets or (sets and self.about_set is None):
            return None
        if self.about_set is not None:
            title, folder = SETS[self.about_set].title, SETS[self.about_set].folder
            return f"{title}, which does not come with Regard: --data {folder}=FOLDER"
        names = dict.fromkeys(data.folder for data in SETS.values() if data.kind in self.kinds)
        return f"data that do not come with Regard: --data NAME=FOLDER, of {', '.join(names)}"

    def coverage(self, scale: Scale, plan: Plan | None = None) -> str:
        """Which of the paper's data sets were looked at, those marked that stand in for others."""
        every = [data for data in SETS.values() if data.kind in self.kinds]
        known = {*self.find_sets(scale), *self.earlier}
        found = [data for name, data in SETS.items() if name in known and data in every]
        named = ", ".join(data.title + " (stand-in)" * data.stand_in for data in found)
        return f"{len(found)} of {len(every)} data sets: {named}"

    def plan(self, scale: Scale) -> Plan:
        """The models of every data set."""
        found: Plan = {}
        for name, folder in self.find_sets(scale).items():
            found |= plan_models(name, folder, scale)
        return found

    def compare(
        self,
        name: str,
        runs: Runs,
        scale: Scale,
        part: str = "validation",
        performs: Performance = count_right,
        whole: bool = True,
    ) -> Compared:
        """Every score of one data set's models on some sentences."""
        attending = runs[f"{name} attention"]
        uniform, proxy = (runs[f"{name} {kind}"][0] for kind in ("uniform", "proxy"))
        frozen = next(iter(runs.get(f"{name} frozen", ())), None)
        task = cast(CorpusTask, attending[0].task())
        small = SLICE if scale == "quick" else TRAINED
        most = SETS[name].sentences if part == "validation" and scale == "full" else small
        models = Models(attending, uniform, proxy, frozen)
        return Compared(models, draw_sentences(task, part, most), performs, whole)


class BySet(WithSets):
    """An experiment whose data sets are measured one by one, on different days if need be."""

    def part_of(self, condition: str) -> str | None:
        """The data set's name, with which `plan_models` begins its conditions."""
        name, _, _ = condition.partition(" ")
        return name if name in SETS else None

    @abstractmethod
    def measure_set(self, name: str, runs: Runs, scale: Scale) -> dict[str, Row]:
        """The rows that one data set has in the tables, by the kind of sentences."""

    def gather(self, runs: Runs, scale: Scale) -> tuple[dict[str, dict[str, Row]], Parts]:
        """Every data set's rows, by kind of sentences and set; and the same to be kept.

        A set that is at hand is measured; of another one, what it gave before is taken.
        """
        parts = {name: part for name, part in self.earlier.items() if name in SETS}
        for name in self.find_sets(scale):
            started = process_time()
            rows = self.measure_set(name, runs, scale)
            own = {key: group for key, group in runs.items() if self.part_of(key) == name}
            hours = add_hours(own, process_time() - started)
            plain = {kind: row.to_json() for kind, row in rows.items()}
            parts[name] = {"rows": plain, "core_hours": hours, "version": __version__}
        parts = {name: parts[name] for name in SETS if name in parts}
        kinds = dict.fromkeys(kind for part in parts.values() for kind in part["rows"])
        return {
            kind: {name: Row.from_json(part["rows"][kind]) for name, part in parts.items()}
            for kind in kinds
        }, parts

    def keep(self, findings: Findings, parts: Parts, scale: Scale) -> Findings:
        """With what each data set gave, and a sentence on those that were measured before."""
        old = {name: part for name, part in parts.items() if name not in self.find_sets(scale)}
        told = [
            f"{SETS[name].title} was measured before, by version {part['version']}."
            for name, part in old.items()
        ]
        hours = sum(part["core_hours"] for part in old.values())
        found = (*findings.found, *told)
        return replace(findings, found=found, parts=parts, hours_before=hours)
