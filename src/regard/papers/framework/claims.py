"""Claims: what a source says, the rule that decides, and what was found."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

from regard.errors import RegardError, together, unknown
from regard.papers import PAPERS
from regard.papers.framework.rules import check_rule, holds, names_in
from regard.registry import Registry
from regard.statistics import Estimate

Verdict = Literal["reproduced", "partly", "not reproduced", "not run"]
HoursFrom = Literal["measured", "timed"]  # core hours that it took, or that it would take


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

    def check_measures(self, measures: Mapping[str, Estimate], partial: bool) -> None:
        """Refuse a ledger that speaks of what its experiment does not measure.

        A `partial` experiment may leave measures out; then only what looks like a typo is refused.
        """
        for name in sorted(self.names - set(measures)):
            guess = get_close_matches(name, measures, n=1, cutoff=0.7 if partial else 0.5)
            if guess or not partial:
                hint = f" Did you mean '{guess[0]}'?" if guess else ""
                known = ", ".join(sorted(measures)) or "nothing"
                raise RegardError(
                    f"The claim '{self.id}' speaks of '{name}', which {self.experiment} does not"
                    f" measure.{hint} It measures: {known}."
                )

    def row(
        self,
        scale: str | None,
        measures: Mapping[str, Estimate] | None,
        coverage: str | None = None,
        core_hours: float | None = None,
        core_hours_from: HoursFrom = "measured",
    ) -> dict[str, Any]:
        """The claim with what was measured, as `regard claims --json` gives it.

        Where a measure that the rule needs could not be taken, the claim counts as not run.
        `coverage` says how much of what the claim speaks of was looked at; `core_hours` is what
        its whole experiment took, and None where that is not known. `core_hours_from` says whether
        that was `measured`, or is expected from updates that were `timed`.
        """
        if measures is None or not self.names <= set(measures):
            scale, measures, coverage, core_hours = None, None, None, None
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
            "coverage": coverage,
            "core_hours": core_hours,
            "core_hours_from": None if core_hours is None else core_hours_from,
            "measures": {name: value.to_json() for name, value in (measures or {}).items()},
        }


LEDGERS: Registry[Path] = Registry("ledger")  # source -> the file of its claims
for _source in PAPERS:
    LEDGERS.register(_source)(Path(__file__).parents[1] / _source / "claims.toml")

_ledger: dict[str, Claim] = {}
_read: dict[Path, tuple[int, list[str]]] = {}  # file -> when it was changed, and its claims


def ledger() -> dict[str, Claim]:
    """All claims by id, source by source. A file that was changed is read again."""
    for source in LEDGERS:
        path = LEDGERS[source]
        changed = path.stat().st_mtime_ns if path.is_file() else 0
        if _read.get(path, (None, []))[0] == changed:
            continue
        for claim in _read.pop(path, (0, []))[1]:
            del _ledger[claim]
        rows = read_claims(path)
        _check_ids(rows, path)
        _ledger.update({row.id: row for row in rows})
        _read[path] = changed, [row.id for row in rows]
    return _ledger


def read_claims(path: Path) -> list[Claim]:
    """The claims in a file; every typo that can be seen in it is a fault that names the claim."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RegardError(f"The ledger {path} cannot be read ({error}).") from None
    return together(partial(_make, row, number, path) for number, row in enumerate(rows, 1))


def _make(row: dict[str, Any], number: int, path: Path) -> Claim:
    """A claim from its row, if its keys and its rules are what they should be."""
    where = f"{path}, claim {number} ({row.get('id', 'without an id')})"
    keys = [field.name for field in fields(Claim)]
    faults = [f"{where}: {unknown('key', key, keys)}" for key in row if key not in keys]
    faults += [f"{where}: there is no '{key}'." for key in keys if key not in row]
    faults += [f"{where}: {key} has to be a text." for key in row if not isinstance(row[key], str)]
    for rule in () if faults else ("reproduced", "partly"):
        try:
            check_rule(row[rule])
        except RegardError as error:
            faults += [f"{where}, {rule}: {fault}" for fault in error.faults]
    if faults:
        raise RegardError(*faults)
    return Claim(**row)


def _check_ids(rows: Sequence[Claim], path: Path) -> None:
    """A claim has one row, in one ledger, of an experiment that knows it."""
    ids = [row.id for row in rows]
    faults = [
        f"{path}: the claim '{one}' has two rows. Give one of them another id."
        for one in dict.fromkeys(ids)
        if ids.count(one) > 1 or one in _ledger
    ]
    if faults:
        raise RegardError(*faults)
