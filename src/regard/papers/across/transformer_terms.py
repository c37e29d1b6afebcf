"""Which heads of a Transformer carry time (aitken2021's μ·μ) in eSCAN, and does it matter?"""

from __future__ import annotations

from collections.abc import Mapping

from regard.display import Figure, Heat, Panel, Table
from regard.instruments.components import breakdown, heads
from regard.instruments.components._terms import TERMS
from regard.instruments.interventions import ablate
from regard.papers.across._transformers import CROSSING, plan_transformer_escan
from regard.papers.aitken2021._attention import WORDS
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, read_share, subtract
from regard.recordings.record import record
from regard.recordings.recording import Recording
from regard.runs import Run
from regard.statistics import Estimate

SAMPLES = {"quick": 200, "full": 1000}
ABLATED = {"quick": 100, "full": 400}
Shares = Mapping[tuple[str, int], float]  # (site, head) -> share of μ·μ


@EXPERIMENTS.register("across/transformer-terms")
class TransformerTermsExperiment(Experiment):
    """The nine terms, head by head."""

    title = "Which heads of a Transformer carry time"
    about = (
        "A Transformer of two layers and four heads on eSCAN. The share of μ·μ of every head that"
        " looks at the source; then μ is taken out of the alignment of the head that has most of"
        " it, and of the head that has least, and the model is asked again."
    )
    claims = ("x.transformer-terms",)

    def plan(self, scale: Scale) -> Plan:
        """One condition."""
        return {"escan": plan_transformer_escan(scale)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Shares by head, and what the removal of μ costs in two of them."""
        group = runs["escan"]
        seen = [record(run, n=SAMPLES[scale], sites="cross") for run in group]
        shares = [share_heads(recording) for recording in seen]
        lost = [compare_losses(*pair, ABLATED[scale]) for pair in zip(group, shares, strict=True)]
        most, least = (Estimate.of((pair[k] for pair in lost), CHANGE) for k in (0, 1))
        largest = Estimate.share(max(by.values()) for by in shares)
        mean = Estimate.share(sum(by.values()) / len(by) for by in shares)
        own: Measures = {
            "largest": largest,
            "mean": mean,
            "above_mean": subtract(largest, mean, CHANGE),
            "lost_most_timed": most,
            "lost_least_timed": least,
            "more_lost": subtract(most, least, CHANGE),
            "accuracy": read_share(group, WORDS),
        }
        for site in CROSSING:
            terms = breakdown(seen, site=site).estimates()
            own |= {f"{site.replace('.', '_')}_{t.replace('-', '_')}": terms[t] for t in TERMS}
        figure = draw_heads(shares)
        table = Table.of("Heads and time", own)
        return Findings.of({"x.transformer-terms": own}, table, figure)


def share_heads(recording: Recording) -> Shares:
    """μ·μ's share of each head that looks at the source."""
    grid = heads(recording).first.grid.rows
    return {(site, head): float(v) for site, row in grid.items() for head, v in enumerate(row)}


def compare_losses(run: Run, shares: Shares, n: int) -> tuple[float, float]:
    """Word accuracy lost without μ in the alignment of the most timed head, and of the least."""
    ends = max(shares, key=lambda at: shares[at]), min(shares, key=lambda at: shares[at])
    found = (ablate(run, n=n, site=site, head=head).first for site, head in ends)
    most, least = (one.baseline - one.accuracy["remove", "temporal", "alignment"] for one in found)
    return most, least


def draw_heads(shares: list[Shares]) -> Figure:
    """Heads by layer, the most timed first in each seed: which head it is differs by seed."""
    rows = []
    for site in CROSSING:
        own = [sorted((v for (s, _), v in by.items() if s == site), reverse=True) for by in shares]
        rows.append(tuple(sum(column) / len(column) for column in zip(*own, strict=True)))
    places = tuple(str(place + 1) for place in range(len(rows[0])))
    heat = Heat(CROSSING, places, tuple(rows), "share of μ·μ")
    return Figure.of(
        "x-transformer-terms",
        "Share of μ·μ in the alignment of each head on eSCAN, heads of a layer in the order of it;"
        f" means over {len(shares)} seeds.",
        Panel("Heads in order", "place in the layer", "attention", (heat,)),
    )
