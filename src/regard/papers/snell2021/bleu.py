"""snell2021, appendix A.4: the contextualised agreement ξ in BLEU (Table 6)."""

from __future__ import annotations

from regard.display import Figure, Panel, Table
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Runs, Scale
from regard.papers.framework.measures import draw_shares
from regard.papers.snell2021._course import Performance
from regard.papers.snell2021._data_sets import XI
from regard.papers.snell2021._row import Row
from regard.papers.snell2021._with_sets import WithSets
from regard.recordings.recording import Recording
from regard.runs import Run
from regard.training.bleu import bleu

SHORT = ("xi_uniform", "xi_beta", "xi_best")
SENTENCES = {"quick": 40, "full": 1014}  # held-out ones, the first: as many as Multi30k has
PAPER = {"multi30k": (11.43, 16.41, 37.89), "iwslt14": (6.71, 9.89, 32.95)}  # Table 6


def make_performance(n: int) -> Performance:
    """BLEU, with a beam of 5, of the first `n` sentences to validate on."""

    def performs(run: Run, update: int, _recording: Recording) -> float:
        return bleu(run.model(update), run.task(), "validation", n=n)

    return performs


@EXPERIMENTS.register("snell2021/bleu")
class BleuExperiment(WithSets):
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
        """ξ(α, β^uf), ξ(α, β) and ξ* of every translation set."""
        performs = make_performance(SENTENCES[scale])
        rows = {}
        for name in self.find_sets(scale):
            compared = self.compare(name, runs, scale, performs=performs, whole=False)
            rows[name] = Row(name, compared, best=100.0)
        measures: Measures = {
            f"{name}_{short}": row.xi(column)
            for name, row in rows.items()
            for column, short in zip(XI, SHORT, strict=True)
        }
        return Findings.of(
            {"snell.bleu": measures},
            _list_xis(rows),
            _draw_courses(rows),
            f"BLEU is that of the first {SENTENCES[scale]} sentences to validate on. A star marks"
            " an agreement that no checkpoint reaches in some turn: ξ is then ξ*.",
        )


def _list_xis(rows: dict[str, Row]) -> Table:
    lines: list[tuple[object, ...]] = []
    for name, row in rows.items():
        lines.append((row.data.title, *map(row.show_xi, XI)))
        if name in PAPER:
            lines.append(("  paper", *PAPER[name]))
    return Table("ξ in points of BLEU (Table 6)", ("data", *XI), tuple(lines))


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
