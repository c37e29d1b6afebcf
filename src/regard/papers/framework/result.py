"""Results: what an experiment found, as kept on disk, and what it says of the claims."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from regard.display import Figure, Table
from regard.errors import RegardError, unknown
from regard.papers.framework.claims import Claim, HoursFrom, ledger
from regard.papers.framework.experiment import EXPERIMENTS, Parts
from regard.runs.files import read_json
from regard.statistics import Estimate

SOURCES = ("here", "published")
PUBLISHED = Path(__file__).parents[1] / "published"  # what comes with Regard


def results_folder() -> Path:
    """Where results go by default: $REGARD_RESULTS, or `results` here."""
    return Path(os.environ.get("REGARD_RESULTS", "results"))


@dataclass(frozen=True)
class Result:
    """What one experiment found at one scale, as kept on disk."""

    experiment: str
    scale: str
    title: str
    about: str
    found: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    claims: tuple[dict[str, Any], ...]  # rows of the ledger with what was measured
    settings: dict[str, Any]  # condition -> configuration of its first seed, seeds
    provenance: dict[str, Any]
    plan: str  # hash of the runs and rules that this result rests on
    coverage: str | None = None  # of the conditions or data sets that its claims speak of
    core_hours: float | None = None  # of its runs and of the measuring
    parts: Parts = field(default_factory=dict)  # what each data set gave, where there are several

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.__dict__,
            "tables": [table.to_json() for table in self.tables],
            "figures": [figure.to_json() for figure in self.figures],
        }

    @classmethod
    def read(cls, path: Path) -> Result:
        """From a file that `to_json` went into; verdicts are those of the ledger as it is now."""
        data = read_json(path)
        try:
            return cls(
                **{
                    **data,
                    "found": tuple(data["found"]),
                    "claims": tuple(_judge(row) for row in data["claims"]),
                    "tables": tuple(map(Table.from_json, data["tables"])),
                    "figures": tuple(map(Figure.from_json, data["figures"])),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RegardError(
                f"{path} is not a result that this version of Regard can read"
                f" ({type(error).__name__}: {error}). Delete this file and reproduce again."
            ) from None


def _judge(row: dict[str, Any]) -> dict[str, Any]:
    """A stored row by the rule that is in the ledger now; as it was if the claim is gone."""
    claim = ledger().get(row["id"])
    if claim is None:
        return row
    measures = {name: Estimate.from_json(value) for name, value in row["measures"].items()}
    came_from: HoursFrom = "timed" if row.get("core_hours_from") == "timed" else "measured"
    return claim.row(row["scale"], measures, row.get("coverage"), row.get("core_hours"), came_from)


def result_path(results: Path, name: str, scale: str) -> Path:
    """Where the result of an experiment is kept."""
    paper, experiment = name.split("/")
    return results / paper / scale / f"{experiment}.json"


def load(results: Path, name: str, scale: str) -> Result | None:
    """A result from disk, or None if there is none."""
    path = result_path(results, name, scale)
    return Result.read(path) if path.is_file() else None


def load_folder(folder: Path) -> list[Result]:
    """All results in a folder and below, in the order of the experiments."""
    names = {f"{name.split('/')[1]}.json" for name in EXPERIMENTS}
    results = [Result.read(path) for path in sorted(folder.rglob("*.json")) if path.name in names]
    if not results:
        raise RegardError(
            f"{folder} holds no results. `regard reproduce chapter36 --out {folder}` makes some."
        )
    order = {name: index for index, name in enumerate(EXPERIMENTS)}
    return sorted(results, key=lambda r: (order.get(r.experiment, len(order)), r.scale))


def claims(
    paper: str | None = None, results: str | Path | None = None, source: str | None = None
) -> Claims:
    """Every row of the ledger with what was measured, at full scale where there is that.

    `source` of a row is `here` where it was measured on this machine, `published` where the result
    is one that comes with Regard, None where there is neither. Given, it is the only one taken.
    """
    if source not in (None, *SOURCES):
        raise RegardError(unknown("source", str(source), SOURCES))
    known = list(dict.fromkeys(claim.paper for claim in ledger().values()))
    if paper is not None and paper not in known:
        raise RegardError(unknown("paper with claims", paper, known))
    place = Path(results) if results else results_folder()
    return Claims(
        _choose_row(claim, place, source)
        for claim in ledger().values()
        if paper in (None, claim.paper)
    )


class Claims(list[dict[str, Any]]):
    """Rows of the ledger, as a table for people."""

    def table(self) -> Table:
        """One row per claim: what the source says, what was measured, the verdict."""
        columns = ("id", "what the source says", "measured", "scale", "verdict", "source")
        rows = []
        for row in self:
            found = estimate(row)
            measured = found and f"{row['headline']} {found}"
            plain = (row["scale"], row["verdict"], row["source"])
            rows.append((row["id"], row["statement"], measured, *plain))
        return Table("The ledger", columns, tuple(rows))

    def __repr__(self) -> str:
        counts = Counter(row["verdict"] for row in self)
        return f"{len(self)} claims: " + ", ".join(f"{n} {name}" for name, n in counts.items())

    def _repr_html_(self) -> str:
        return self.table().html()


def _choose_row(claim: Claim, results: Path, source: str | None) -> dict[str, Any]:
    """A claim with what was measured here, or else with the published result."""
    here = None if source == "published" else _find_row(claim.id, claim.experiment, results)
    if here:
        return {**here, "source": "here"}
    known = None if source == "here" else published_rows().get(claim.id)
    if known and known["measures"]:
        return {**_judge(known), "source": "published"}
    return {**claim.row(None, None), "source": None}


def published_files() -> list[Path]:
    """The files of rows that come with Regard, one per paper."""
    return sorted(PUBLISHED.glob("*.json"))


def parts_path(name: str, published: Path = PUBLISHED) -> Path:
    """Where what an experiment's data sets gave at full scale is kept, if it comes with Regard."""
    return published / "parts" / f"{name.replace('/', '-')}.json"


def read_parts(results: Path, name: str, scale: str, published: Path = PUBLISHED) -> Parts:
    """What data sets gave that were measured before: here, or else as it comes with Regard."""
    known = parts_path(name, published)
    parts: Parts = read_json(known) if scale == "full" and known.is_file() else {}
    try:
        last = load(results, name, scale)
    except RegardError:  # damaged or of another version: it is made again
        last = None
    return parts | (last.parts if last else {})


@cache
def published_rows() -> dict[str, dict[str, Any]]:
    """The rows that come with Regard, by claim, as they were measured."""
    return {row["id"]: row for path in published_files() for row in read_json(path)}


def _find_row(claim: str, experiment: str, results: Path) -> dict[str, Any] | None:
    for scale in ("full", "quick"):
        result = load(results, experiment, scale)
        row = next((row for row in result.claims if row["id"] == claim), None) if result else None
        if row:
            return row
    return None


def estimate(row: dict[str, Any]) -> Estimate | None:
    """The headline number of a row of `claims`, or None where nothing was measured."""
    measured = row["measures"].get(row["headline"])
    return Estimate.from_json(measured) if measured else None
