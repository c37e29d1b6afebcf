"""How many seeds would each source's headline have needed, by the spread that was measured?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import nctdtr, stdtrit

from regard.display import Figure, Line, Panel, Rule, Table
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.result import published_files, published_rows
from regard.statistics import Estimate

LEVEL, POWER = 0.05, 0.8
MOST = 10_000  # seeds beyond which nobody counts
PRECISE = 0.1  # half of the interval, as a share of the mean
SHOWN = (2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100)  # seeds of the figure


@dataclass(frozen=True)
class Headline:
    """A number of a source, where its rule draws the line, and how many seeds the source has."""

    claim: str
    measure: str
    line: float
    reported: int


# The line is that of the claim's rule; seeds as the sources report them (aitken2021 shows single
# networks, picked from about thirty).
HEADLINES = {
    "chapter36": Headline("c36.addition", "accuracy_2_2", 0.9, 1),
    "baan2019": Headline("baan.accuracy", "guided_NC", 0.69, 5),
    "aitken2021": Headline("ait.breakdown", "temporal_escan_aed", 0.77, 1),
    "snell2021": Headline("snell.copy", "delay", 0.0, 20),
}


@EXPERIMENTS.register("across/seeds")
class SeedsExperiment(Experiment):
    """Nothing is trained: the published values say how far seeds lie apart."""

    title = "How many seeds a headline needs"
    about = (
        "For the headline of each source: how many seeds it takes to tell its mean from the line"
        f" that its rule draws, by a two-sided t-test at {LEVEL:.0%} with power {POWER:g}, if the"
        " mean and the spread are those that were measured. And for every published row: how many"
        f" seeds make its 95 % interval ± {PRECISE:.0%} of the mean. A computation on published"
        " values, without runs: it has no interval of its own, but a range, of what each seed left"
        " out would have said."
    )
    claims = ("x.seeds",)

    def coverage(self, scale: Scale, plan: Plan | None = None) -> str:
        """One headline per source."""
        return f"{len(HEADLINES)} headlines, one of each source"

    def reads(self, scale: Scale) -> list[Path]:
        """The published rows."""
        return published_files()

    def plan(self, scale: Scale) -> Plan:
        """Nothing to train."""
        return {}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Seeds needed against seeds reported."""
        rows = published_rows()
        known = {paper: read_values(rows, head) for paper, head in HEADLINES.items()}
        needed = {paper: count_needed(known[paper], HEADLINES[paper].line) for paper in known}
        own: Measures = {f"needed_{paper}": Estimate.of([n]) for paper, n in needed.items()}
        own |= {
            f"over_{paper}": Estimate.of([n / HEADLINES[paper].reported])
            for paper, n in needed.items()
        }
        own["short"] = Estimate.of([sum(n > HEADLINES[p].reported for p, n in needed.items())])
        return Findings.of(
            {"x.seeds": own},
            list_headlines(known, needed),
            list_precision(rows),
            draw_power(known),
            f"{own['short'].mean:.0f} of {len(HEADLINES)} headlines needed more seeds than their"
            " source reports.",
        )


def read_values(rows: Mapping[str, Mapping[str, Any]], head: Headline) -> tuple[float, ...]:
    """The values of a headline, one per seed."""
    return tuple(rows[head.claim]["measures"][head.measure]["values"])


def find_power(values: Sequence[float], line: float, n: int) -> float:
    """The chance that n seeds tell the mean from the line, were mean and spread as in values."""
    spread = float(np.std(values, ddof=1))
    distance = abs(float(np.mean(values)) - line)
    if spread == 0:
        return float(distance > 0)
    shift, bound = distance / spread * np.sqrt(n), float(stdtrit(n - 1, 1 - LEVEL / 2))
    return float(1 - nctdtr(n - 1, shift, bound) + nctdtr(n - 1, shift, -bound))


def count_needed(values: Sequence[float], line: float) -> int:
    """The least number of seeds that has the power; at most `MOST`."""
    return next(n for n in count(2) if n >= MOST or find_power(values, line, n) >= POWER)


def count_precise(values: Sequence[float]) -> int:
    """The least number of seeds whose interval is narrow enough; at most `MOST`."""
    wanted, spread = PRECISE * abs(float(np.mean(values))), float(np.std(values, ddof=1))
    return next(
        n
        for n in count(2)
        if n >= MOST or float(stdtrit(n - 1, 0.975)) * spread / np.sqrt(n) <= wanted
    )


def list_headlines(known: Mapping[str, Sequence[float]], needed: Mapping[str, int]) -> Table:
    """A row per source, with the range that leaving out one seed gives."""
    rows = []
    for paper, head in HEADLINES.items():
        values = list(known[paper])
        without = [
            count_needed(values[:k] + values[k + 1 :], head.line) for k in range(len(values))
        ]
        span = f"{min(without)} to {max(without)}"
        rows.append((paper, f"{head.claim}: {head.measure}", Estimate.of(values), head.line,
                     head.reported, needed[paper], span))  # fmt: skip
    columns = ("source", "headline", "measured", "the rule's line", "seeds reported",
               "seeds needed", "needed, one seed left out")  # fmt: skip
    return Table("Seeds to tell a headline from its line", columns, tuple(rows))


def list_precision(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Every published row at full scale with five seeds or more that do not all agree."""
    found = []
    for claim, row in rows.items():
        measured = row["measures"].get(row["headline"]) if row["scale"] == "full" else None
        values = measured["values"] if measured else ()
        if measured and len(values) >= 5 and np.std(values) > 0:
            shown = Estimate.from_json(measured)
            found.append((claim, row["headline"], shown, count_precise(values)))
    columns = ("claim", "measure", "measured", f"seeds for ± {PRECISE:.0%} of the mean")
    return Table("Seeds for a narrow interval", columns, tuple(found))


def draw_power(known: Mapping[str, Sequence[float]]) -> Figure:
    """Power over seeds, a line per source."""
    lines = (
        Line(paper, tuple(map(float, SHOWN)),
             tuple(find_power(values, HEADLINES[paper].line, n) for n in SHOWN), colour=colour)
        for colour, (paper, values) in enumerate(known.items())
    )  # fmt: skip
    panel = Panel("Power", "seeds", "chance to tell the headline from its line",
                  (*lines, Rule("wanted", y=POWER)), (0, 1.05), x_scale="log")  # fmt: skip
    caption = "How likely so many seeds tell each source's headline from the line of its rule."
    return Figure("x-seeds", caption, (panel,))
