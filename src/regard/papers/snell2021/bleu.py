"""snell2021, appendix A.4: the contextualised agreement ξ in BLEU (Tables 4, 6 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from regard.display import Figure, Panel, Table
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Runs, Scale
from regard.papers.framework.measures import draw_shares
from regard.papers.snell2021._compared import draw_sentences
from regard.papers.snell2021._course import Performance
from regard.papers.snell2021._data_sets import EVERY_XI, OF_TAU, name_differences
from regard.papers.snell2021._row import Row
from regard.papers.snell2021._with_sets import SLICE, TRAINED, BySet
from regard.papers.snell2021.agreement import SHORT
from regard.recordings.recording import Recording
from regard.runs import Run
from regard.tasks import Batch, CorpusTask
from regard.training.bleu import Spoken, bleu, scorer, translations

SENTENCES = {"quick": 40, "full": 1014}  # held-out ones, the first: as many as Multi30k has


def make_performance(n: int) -> Performance:
    """BLEU, with a beam of 5, of the first `n` sentences to validate on."""

    def performs(run: Run, update: int, _recording: Recording) -> float:
        return bleu(run.model(update), run.task(), "validation", n=n)

    return performs


def perform_on(batches: Sequence[Batch]) -> Performance:
    """The same of some sentences, against their own words put together."""

    def performs(run: Run, update: int, _recording: Recording) -> float:
        task, model = cast(Spoken, run.task()), run.model(update)
        said = [text for batch in batches for text in translations(model, task, batch)]
        right = [text for batch in batches for text in task.texts(batch.target)]
        return float(scorer().corpus_bleu(said, [right], force=True).score)

    return performs


@EXPERIMENTS.register("snell2021/bleu")
class BleuExperiment(BySet):
    """How well a model translates by the time its attention agrees."""

    title = "Contextualised agreement in BLEU"
    about = (
        "ξ of Table 2 where performance is BLEU with a beam of 5 instead of token accuracy; the"
        " runs are those of the agreement experiment."
    )
    claims = ("snell.bleu",)
    kinds = ("translation",)
    about_set = "multi30k"  # other sets come on top

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Every ξ of every translation set: held-out and training sentences, and by rank."""
        rows, parts = self.gather(runs, scale)
        held, trained = rows["held out"], rows["trained"]
        measures: Measures = {
            f"{name}_{short}": row.xi(column)
            for name, row in held.items()
            for column, short in zip(EVERY_XI, SHORT, strict=True)
        }
        found = Findings.of(
            {"snell.bleu": measures},
            list_xis("ξ in points of BLEU (Table 6)", held, EVERY_XI, "bleu"),
            list_xis(
                "The same where agreement is τ (Table 4)",
                held,
                OF_TAU,
                "bleu_kendall",
                by_rank=True,
            ),
            list_xis("The same on training sentences (Table 8)", trained, OF_TAU, "bleu_trained"),
            _draw_courses(held),
            f"BLEU is that of the first {SENTENCES[scale]} sentences to validate on. A star marks"
            " an agreement that no checkpoint reaches in some turn: ξ is then ξ*.",
            *name_differences(parts),
        )
        return self.keep(found, parts, scale)

    def measure_set(self, name: str, runs: Runs, scale: Scale) -> dict[str, Row]:
        """Its ξ on held-out and on training sentences."""
        compared = self.compare(name, runs, scale, performs=make_performance(SENTENCES[scale]))
        held_out = Row.of(name, compared, best=100.0)
        task = cast(CorpusTask, runs[f"{name} attention"][0].task())
        sentences = draw_sentences(task, "train", TRAINED if scale == "full" else SLICE)
        compared = self.compare(name, runs, scale, "train", perform_on(sentences))
        trained = Row.of(name, compared, held_out=False, best=100.0)
        return {"held out": held_out, "trained": trained}


def list_xis(
    title: str, rows: dict[str, Row], columns: Sequence[str], paper: str, by_rank: bool = False
) -> Table:
    """A line per data set, and the paper's below it where it has one."""
    lines: list[tuple[object, ...]] = []
    for row in rows.values():
        lines.append((row.data.title, *(row.show_xi(column, by_rank) for column in columns)))
        if said := getattr(row.data, paper):
            lines.append(("  paper", *(said.get(column) for column in columns)))
    return Table(title, ("data", *columns), tuple(lines))


def _draw_courses(rows: dict[str, Row]) -> Figure:
    panels: list[Panel] = []
    for row in rows.values():
        title, lines = row.data.title, (row.draw_agreement(), *row.draw_levels())
        panels += [
            draw_shares(f"{title}: agreement", "update", "share of target words", *lines),
            Panel(f"{title}: BLEU", "update", "BLEU", (row.draw_performance(""),)),
        ]
    return Figure(
        "snell-bleu",
        "Agreement of attention with that of another run while this one learns, and BLEU at the"
        " same checkpoints: ξ is the BLEU where the line first passes a dashed one. Means and 95 %"
        " intervals over the runs.",
        tuple(panels),
    )
