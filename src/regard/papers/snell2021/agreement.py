"""snell2021, section 3 and appendices A.4, A.6 and A.7: who agrees with whom (Tables 2 to 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from regard.display import Figure, Line, Panel, Table
from regard.instruments.looked import Course, Performance, performance
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
from regard.papers.snell2021.datasets import COLUMNS, SETS, WANTED, XI, DataSet, at_hand
from regard.papers.snell2021.scored import Compared, Models, sentences
from regard.runs import RunConfig, assemble
from regard.statistics import Estimate
from regard.tasks import CorpusTask

KINDS = ("attention", "uniform", "proxy", "frozen")
MOST = 4000  # held-out sentences, as in the paper
TRAINED = 500  # training sentences
SLICE = 120  # held-out sentences of a translation at quick scale
FROZEN = ("encoder", "output")
PROXY = {"batch": 64, "epochs": 30}
TRANSLATOR = {"batch": 16, "epochs": 20}
NAMES = dict(zip(COLUMNS, ("alpha_uniform", "uniform_proxy", "saliency_uniform", "alpha_beta"),
                 strict=True))  # fmt: skip
# A slice for a first look: a smaller model that sees a few thousand sentences.
QUICK: dict[str, dict[str, Any]] = {
    "classification": {"updates": 500, "hidden": 64, "embedding": 100},
    "translation": {"updates": 400, "hidden": 64, "embedding": 64, "pieces": 2000, "longest": 20},
}


def models_of(name: str, folder: Path, scale: Scale) -> Plan:
    """The runs of one data set, by what they are for."""
    data = SETS[name]
    quick = scale == "quick"
    task = {**data.task(folder), **_short(data, quick)}
    own = dict(QUICK[data.kind]) if quick else {}
    model = "snell-classifier" if data.kind == "classification" else "snell-translation"
    count = (3 if quick else 6) if data.kind == "classification" else 2

    def made(number: int, first: int = 0, **more: Any) -> list[RunConfig]:
        """Runs with seeds from `first` on: a run that is compared shares no first weights."""
        settings = {**task, **own, **more}
        return [assemble(data.kind, model, first + k, settings) for k in range(number)]

    plain = {k: v for k, v in own.items() if k in ("pieces", "longest")}
    updates = {"updates": 500 if quick else _epochs(data, task, PROXY)}
    epochs: dict[str, Any] = {}
    if not quick and data.kind == "translation":
        epochs = {"updates": _epochs(data, task, TRANSLATOR)}
    attending = {**epochs, **({} if quick else data.attending)}
    plan = {
        "attention": made(count, **attending),
        "uniform": made(1, first=count, attention="uniform", **epochs),
        "proxy": seeds(1, data.kind, "snell-proxy", **{**task, **plain, **updates}),
    }
    if data.kind == "classification":
        plan["frozen"] = made(1, first=count + 1, freeze=FROZEN, **attending)
    return {f"{name} {kind}": configs for kind, configs in plan.items()}


def _short(data: DataSet, quick: bool) -> dict[str, Any]:
    """Few checkpoints at quick scale: each is looked at by every instrument."""
    if not quick:
        return {}
    return {"milestones": (0, 10, 50, 100, 200), "evaluate_every": 250, "checkpoint_every": 250}


def _epochs(data: DataSet, task: dict[str, Any], recipe: Mapping[str, int]) -> int:
    """Updates of so many epochs of a data set."""
    rows = cast(CorpusTask, assemble(data.kind, "snell-proxy", 0, task).make_task()).rows
    return max(1, recipe["epochs"] * len(rows["train"]) // recipe["batch"])


class WithSets(Experiment):
    """An experiment on data sets that the user has."""

    wants = WANTED
    kinds: tuple[str, ...] = ("classification", "translation")

    def sets(self, scale: Scale) -> dict[str, Path]:
        """The data sets at hand."""
        there = at_hand(self.data, scale == "quick")
        return {name: folder for name, folder in there.items() if SETS[name].kind in self.kinds}

    def lacks(self, scale: Scale) -> str | None:
        """At least one data set has to be there."""
        if self.sets(scale):
            return None
        names = dict.fromkeys(data.folder for data in SETS.values() if data.kind in self.kinds)
        return f"data that do not come with Regard: --data NAME=FOLDER, of {', '.join(names)}"

    def plan(self, scale: Scale) -> Plan:
        """The models of every data set."""
        found: Plan = {}
        for name, folder in self.sets(scale).items():
            found |= models_of(name, folder, scale)
        return found

    def compared(
        self,
        name: str,
        runs: Runs,
        scale: Scale,
        part: str = "validation",
        performs: Performance = performance,
        whole: bool = True,
    ) -> Compared:
        """Every score of one data set's models on some sentences."""
        mine = {kind: runs.get(f"{name} {kind}") for kind in KINDS}
        attention, uniform, proxy = mine["attention"], mine["uniform"], mine["proxy"]
        assert attention and uniform and proxy
        frozen = mine["frozen"][0] if mine["frozen"] else None
        task = cast(CorpusTask, attention[0].task())
        small = SLICE if scale == "quick" else TRAINED
        most = MOST if part == "validation" and scale == "full" else small
        models = Models(attention, uniform[0], proxy[0], frozen)
        return Compared(models, sentences(task, part, most), performs, whole)


@experiments.register("snell2021/agreement")
class AgreementExperiment(WithSets):
    """Attention, lexical knowledge, a bag of words and saliency: who agrees with whom."""

    title = "Agreement of attention and lexical knowledge"
    about = (
        "Tables 2, 3, 5, 7 and 10, and A.7. Every run with attention takes its turn as run A;"
        " intervals are over these turns."
    )
    claims = ("snell.table2", "snell.kendall", "snell.train-set", "snell.frozen",
              "snell.uniform-trend")  # fmt: skip

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """All cells on held-out and on training sentences."""
        sets = list(self.sets(scale))
        held = {name: Row(name, self.compared(name, runs, scale)) for name in sets}
        trained = {name: Row(name, self.compared(name, runs, scale, "train")) for name in sets}
        measures = {
            "snell.table2": _agreements(held, "held_out"),
            "snell.kendall": _kendall(held),
            "snell.train-set": _agreements(trained, "trained"),
            "snell.frozen": _frozen(held),
            "snell.uniform-trend": _trend(held),
        }
        tables = (
            _table("Agreement on held-out sentences (Table 2)", held, "held_out"),
            _taus("Kendall's τ on held-out sentences (Table 3)", held),
            _table(f"Agreement on {TRAINED} training sentences (Table 7)", trained, "trained"),
        )
        others = [SETS[name].other for name in sets if SETS[name].other]
        return Findings(measures, tables, (_trends(held), _reached(held)), tuple(others))


class Row:
    """One row of the tables: every cell, once for each run as run A."""

    def __init__(self, name: str, compared: Compared):
        self.name, self.data, turns = name, SETS[name], compared.turns
        self.cells = compared.cells
        self.xis = [compared.xi(turn) for turn in turns]
        self.trends = [compared.trend(turn) for turn in turns]
        self.ends = [compared.ends(turn) for turn in turns]
        self.courses = compared.courses
        self.frozen = compared.frozen() if compared.models.frozen is not None else []

    def cell(self, column: str) -> Estimate:
        """One cell of Table 2 over turns; one number where no run has a turn."""
        return Estimate.share(cell.value for cell in self.cells[column])

    def tau(self, column: str) -> Estimate:
        """The same as Kendall's τ."""
        return Estimate.of((cell.tau for cell in self.cells[column]), (-1.0, 1.0))

    @property
    def shuffled(self) -> Estimate:
        """Â, by column."""
        return Estimate.share(
            sum(cell.shuffled for cell in cells) / len(cells) for cells in self.cells.values()
        )

    def ratio(self, column: str) -> Estimate:
        """How often better than chance."""
        return Estimate.of(cell.value / max(cell.shuffled, 1e-9) for cell in self.cells[column])

    def xi(self, column: str) -> Estimate:
        """ξ over turns."""
        return Estimate.share(found[column][0] for found in self.xis)

    def always(self, column: str) -> bool:
        """Whether the agreement was reached in every turn; otherwise the paper writes a star."""
        return all(found[column][1] for found in self.xis)


def _least(values: Sequence[Estimate]) -> Estimate:
    """The least of several numbers: the one whose mean is lowest."""
    return min(values, key=lambda value: value.mean)


def _farthest(cells: Mapping[tuple[str, str], Estimate], paper: str) -> Measures:
    """The largest distance to one of the paper's cells; nothing where it has none."""
    distances = [
        abs(cell.mean - said)
        for (name, column), cell in cells.items()
        if (said := getattr(SETS[name], paper).get(column)) is not None
    ]
    return {"farthest": Estimate.of([max(distances)])} if distances else {}


def _agreements(rows: dict[str, Row], paper: str) -> Measures:
    cells = {(name, c): row.cell(c) for name, row in rows.items() for c in COLUMNS}
    found = {f"{name}_{NAMES[column]}": value for (name, column), value in cells.items()}
    for name, row in rows.items():
        found[f"{name}_shuffled"] = row.shuffled
        for column, short in zip(XI, ("xi_uniform", "xi_beta", "xi_best"), strict=True):
            found[f"{name}_{short}"] = row.xi(column)
    least = _least([row.ratio(column) for row in rows.values() for column in COLUMNS])
    return {"least_over_shuffled": least, **_farthest(cells, paper), **found}


def _kendall(rows: dict[str, Row]) -> Measures:
    cells = {(name, c): row.tau(c) for name, row in rows.items() for c in COLUMNS[:3]}
    named = {f"{name}_{NAMES[column]}": value for (name, column), value in cells.items()}
    return {"least_tau": _least(list(cells.values())), **_farthest(cells, "kendall"), **named}


def _frozen(rows: dict[str, Row]) -> Measures:
    found: Measures = {}
    differences = []
    for name, row in rows.items():
        if row.frozen:
            found[f"{name}_frozen"] = Estimate.share(row.frozen)
            pairs = zip(row.cell(COLUMNS[0]).values, row.frozen, strict=True)
            differences.append(Estimate.of(a - b for a, b in pairs))
    return {"least_difference": _least(differences), **found} if differences else {}


def _trend(rows: dict[str, Row]) -> Measures:
    rises, falls = (
        [Estimate.of(ends[which] for ends in row.ends) for row in rows.values()] for which in (0, 1)
    )
    return {"least_rise": _least(rises), "least_fall": _least(falls)}


def _table(title: str, rows: dict[str, Row], paper: str) -> Table:
    lines = []
    for row in rows.values():
        stars = {column: "" if row.always(column) else "*" for column in XI}
        xis = (f"{row.xi(column)}{stars[column]}" for column in XI)
        lines.append((row.data.title, *map(row.cell, COLUMNS), row.shuffled, *xis))
        said = getattr(row.data, paper)
        if said:
            lines.append(("  paper", *(said.get(c) for c in (*COLUMNS, "shuffled", *XI))))
    return Table(title, ("data", *COLUMNS, "shuffled", *XI), tuple(lines))


def _taus(title: str, rows: dict[str, Row]) -> Table:
    lines: list[tuple[Any, ...]] = []
    for row in rows.values():
        lines.append((row.data.title, *map(row.tau, COLUMNS)))
        if row.data.kendall:
            lines.append(("  paper", *(row.data.kendall.get(column) for column in COLUMNS)))
    return Table(title, ("data", *(column.replace("A(", "τ(") for column in COLUMNS)), tuple(lines))


def _trends(rows: dict[str, Row]) -> Figure:
    panels = []
    for row in rows.values():
        updates = sorted(row.trends[0])
        found = [Estimate.share(trend[at] for trend in row.trends) for at in updates]
        ends = float(updates[0]), float(updates[-1])
        chance = Line("shuffled", ends, (row.shuffled.mean,) * 2, colour=7, dashed=True)
        marks = (line("A(α, β^uf)", updates, found, 0), chance)
        label = "update under uniform attention"
        panels.append(Panel(row.data.title, label, "A(α, β^uf)", marks, (0, 1.05)))
    return Figure(
        "snell-uniform-trend",
        "Agreement of learned attention with the lexical probe of a model that is trained under"
        " uniform attention, over its training; means and 95 % intervals over the runs that"
        " attend.",
        tuple(panels),
    )


def _reached(rows: dict[str, Row]) -> Figure:
    panels = []
    for row in rows.values():
        updates = row.courses[0].updates
        agreed = others_agree(row.courses)
        right = [Estimate.share(c.performances[at] for c in row.courses) for at in updates]
        marks = [line("A(α, α̂)", updates, agreed, 0), line("performance", updates, right, 1)]
        for number, column in enumerate((COLUMNS[0], COLUMNS[3])):
            level = row.cell(column).mean
            ends = float(updates[0]), float(updates[-1])
            marks.append(Line(column, ends, (level, level), colour=2 + number, dashed=True))
        label = "agreement, performance"
        panels.append(Panel(row.data.title, "update", label, tuple(marks), (0, 1.05)))
    return Figure(
        "snell-agreement",
        "Agreement of attention with that of another run while this one learns, and its"
        " performance: ξ is the performance where the first line crosses a dashed one (Fig. 2).",
        tuple(panels),
    )


def others_agree(courses: Sequence[Course]) -> list[Estimate]:
    """A(α, α̂(τ)) at each checkpoint, over all pairs of different runs."""
    return [
        Estimate.share(
            value
            for k, course in enumerate(courses)
            for turn, value in enumerate(course.agreements[at])
            if turn != k
        )
        for at in courses[0].updates
    ]


def line(name: str, updates: list[int], found: list[Estimate], colour: int) -> Line:
    """Means with their intervals over updates."""
    return Line(
        name,
        tuple(map(float, updates)),
        tuple(e.mean for e in found),
        tuple(e.low for e in found),
        tuple(e.high for e in found),
        colour,
    )
