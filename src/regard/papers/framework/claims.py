"""Claims: what a source says, the rule that decides, and what was found."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from regard.papers import PAPERS
from regard.papers.framework.rules import holds, names_in
from regard.statistics import Estimate

Verdict = Literal["reproduced", "partly", "not reproduced", "not run"]


@dataclass(frozen=True)
class Claim:
    """One row of a paper's `claims.toml`."""

    id: str
    paper: str
    experiment: str
    statement: str
    expected: str
    headline: str  # the measure that stands for the claim in one number
    reproduced: str  # a rule
    partly: str  # a weaker rule
    figure: str  # where the source shows it

    @property
    def rule(self) -> str:
        """Both rules as one sentence."""
        return f"reproduced if {self.reproduced}; partly if {self.partly}; otherwise not reproduced"

    @property
    def names(self) -> set[str]:
        """The measures that the claim needs."""
        return names_in(self.reproduced) | names_in(self.partly) | {self.headline}

    def verdict(self, measures: Mapping[str, Estimate]) -> Verdict:
        """What follows from the measures, by the rule and by nothing else."""
        if holds(self.reproduced, measures):
            return "reproduced"
        return "partly" if holds(self.partly, measures) else "not reproduced"

    def row(self, scale: str | None, measures: Mapping[str, Estimate] | None) -> dict[str, Any]:
        """The claim with what was measured, as `regard claims --json` gives it.

        Where a measure that the rule needs could not be taken, the claim counts as not run.
        """
        if measures is None or not self.names <= set(measures):
            scale, measures = None, None
        head = measures[self.headline] if measures else None
        return {
            "id": self.id,
            "paper": self.paper,
            "experiment": self.experiment,
            "statement": self.statement,
            "expected": self.expected,
            "headline": self.headline,
            "measured": None if head is None else head.mean,
            "interval": None if head is None or head.interval is None else list(head.interval),
            "seeds": 0 if head is None else head.n,
            "scale": scale,
            "rule": self.rule,
            "verdict": "not run" if measures is None else self.verdict(measures),
            "figure": self.figure,
            "measures": {name: value.to_json() for name, value in (measures or {}).items()},
        }


@cache
def ledger() -> dict[str, Claim]:
    """All claims by id, paper by paper."""
    texts = (
        files("regard.papers").joinpath(paper, "claims.toml").read_text(encoding="utf-8")
        for paper in PAPERS
    )
    return {row["id"]: Claim(**row) for text in texts for row in tomllib.loads(text)["claim"]}
