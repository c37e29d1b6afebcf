"""snell2021, appendix A.4: the contextualised agreement ξ in BLEU (Table 6)."""

from __future__ import annotations

from collections.abc import Sequence

from regard.display import Figure, Line, Panel, Table
from regard.instruments import looked
from regard.models import Seq2Seq
from regard.papers.experiment import Findings, Measures, Runs, Scale, experiments
from regard.papers.snell2021.agreement import WithSets, line, others_agree
from regard.papers.snell2021.datasets import COLUMNS, SETS, XI
from regard.papers.snell2021.scored import Compared
from regard.statistics import Estimate
from regard.tasks import Batch, Task
from regard.training.bleu import bleu

SHORT = ("xi_uniform", "xi_beta", "xi_best")
SENTENCES = {"quick": 40, "full": 1014}  # held-out ones, the first: as many as Multi30k has
PAPER = {"multi30k": (11.43, 16.41, 37.89), "iwslt14": (6.71, 9.89, 32.95)}  # Table 6


def in_bleu(task: Task, n: int) -> looked.Performance:
    """BLEU, with a beam of 5, of the first `n` sentences to validate on."""

    def performs(model: Seq2Seq, batches: Sequence[Batch]) -> float:
        return bleu(model, task, "validation", n=n)

    return performs


class Shown:
    """Agreement and BLEU of one data set over training, every run in turn as run A."""

    def __init__(self, compared: Compared):
        self.cells, self.courses = compared.cells, compared.courses
        self.xis = [compared.xi(turn) for turn in compared.turns]

    def xi(self, column: str) -> Estimate:
        """ξ in points of BLEU, over turns."""
        return Estimate.of((found[column][0] for found in self.xis), (0.0, 100.0))

    def shown(self, column: str) -> str:
        """The same with a star where the agreement was not reached in every turn."""
        star = "" if all(found[column][1] for found in self.xis) else "*"
        return f"{self.xi(column)}{star}"

    def level(self, column: str) -> float:
        """The agreement that is to be reached, the mean over turns."""
        return Estimate.of(cell.value for cell in self.cells[column]).mean


@experiments.register("snell2021/bleu")
class BleuExperiment(WithSets):
    """How well a model translates by the time its attention agrees."""

    title = "Contextualised agreement in BLEU"
    about = (
        "ξ of Table 2 where performance is BLEU with a beam of 5 instead of token accuracy; the"
        " runs are those of the agreement experiment."
    )
    claims = ("snell.bleu",)
    kinds = ("translation",)

    def lacks(self, scale: Scale) -> str | None:
        """The claim is about Multi30k; other sets come on top."""
        if "multi30k" in self.sets(scale):
            return None
        return "Multi30k, which does not come with Regard: --data multi30k=FOLDER"

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """ξ(α, β^uf), ξ(α, β) and ξ* of every translation set."""
        found = {}
        for name in self.sets(scale):
            performs = in_bleu(runs[f"{name} attention"][0].task(), SENTENCES[scale])
            compared = self.compared(name, runs, scale, performs=performs, whole=False)
            found[name] = Shown(compared)
        measures: Measures = {
            f"{name}_{short}": course.xi(column)
            for name, course in found.items()
            for column, short in zip(XI, SHORT, strict=True)
        }
        said = (
            f"BLEU is that of the first {SENTENCES[scale]} sentences to validate on. A star marks"
            " an agreement that no checkpoint reaches in some turn: ξ is then ξ*."
        )
        return Findings({"snell.bleu": measures}, (_table(found),), (_figure(found),), (said,))


def _table(found: dict[str, Shown]) -> Table:
    rows: list[tuple[object, ...]] = []
    for name, course in found.items():
        rows.append((SETS[name].title, *map(course.shown, XI)))
        if name in PAPER:
            rows.append(("  paper", *PAPER[name]))
    return Table("ξ in points of BLEU (Table 6)", ("data", *XI), tuple(rows))


def _figure(found: dict[str, Shown]) -> Figure:
    panels = [panel for name, course in found.items() for panel in _panels(name, course)]
    return Figure(
        "snell-bleu",
        "Agreement of attention with that of another run while this one learns, and BLEU at the"
        " same checkpoints: ξ is the BLEU where the line first passes a dashed one. Means and 95 %"
        " intervals over the runs.",
        tuple(panels),
    )


def _panels(name: str, course: Shown) -> list[Panel]:
    updates = course.courses[0].updates
    agreed = others_agree(course.courses)
    lines = [line("A(α, α̂)", updates, agreed, 0)]
    for number, column in enumerate((COLUMNS[0], COLUMNS[3])):
        level = (course.level(column),) * 2
        ends = float(updates[0]), float(updates[-1])
        lines.append(Line(column, ends, level, colour=2 + number, dashed=True))
    bleus = [
        Estimate.of((c.performances[at] for c in course.courses), (0.0, 100.0)) for at in updates
    ]
    title = SETS[name].title
    return [
        Panel(f"{title}: agreement", "update", "share of target words", tuple(lines), (0, 1.05)),
        Panel(f"{title}: BLEU", "update", "BLEU", (line("", updates, bleus, 1),)),
    ]
