"""One row of the tables of snell2021: what the models of one data set have in common."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from regard.display import Line
from regard.papers.framework.measures import SIZE
from regard.papers.snell2021._compared import Cell, Compared
from regard.papers.snell2021._course import Course
from regard.papers.snell2021._data_sets import COLUMNS, SETS, DataSet
from regard.statistics import Estimate


@dataclass(frozen=True)
class Row:
    """One row of the tables: every cell, once for each run as run A. Plain data, to be kept."""

    name: str
    cells: Mapping[str, Sequence[Cell]]
    xis: Sequence[Mapping[str, tuple[float, bool]]]
    xis_by_rank: Sequence[Mapping[str, tuple[float, bool]]]
    trends: Sequence[Mapping[int, float]]
    ends: Sequence[tuple[float, float]]
    courses: Sequence[Course]
    frozen: Sequence[float] = ()
    best: float = 1.0  # the highest that a performance can be

    @classmethod
    def of(cls, name: str, compared: Compared, held_out: bool = True, best: float = 1.0) -> Row:
        """What the models of a data set give."""
        turns = compared.turns
        return cls(
            name,
            compared.cells,
            [compared.xi(turn) for turn in turns],
            [compared.xi_by_rank(turn) for turn in turns],
            [compared.trend(turn) for turn in turns],
            [compared.ends(turn) for turn in turns],
            compared.courses,
            compared.compare_frozen() if held_out and compared.models.frozen else [],
            best,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; NaN, which JSON does not know, is null."""
        plain: dict[str, Any] = json.loads(_ROWS.dump_json(self))
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Row:
        """What `to_json` gave."""
        return _ROWS.validate_python(_restore(plain))

    @property
    def data(self) -> DataSet:
        """The data set that it is about."""
        return SETS[self.name]

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
        return Estimate.of(
            (cell.value / max(cell.shuffled, 1e-9) for cell in self.cells[column]), SIZE
        )

    def xi(self, column: str, by_rank: bool = False) -> Estimate:
        """ξ over turns; `by_rank`, where agreement is Kendall's τ."""
        turns = self.xis_by_rank if by_rank else self.xis
        return Estimate.of((found[column][0] for found in turns), (0.0, self.best))

    def show_xi(self, column: str, by_rank: bool = False) -> str:
        """The same with the paper's star where the agreement was not reached in every turn."""
        turns = self.xis_by_rank if by_rank else self.xis
        star = "" if all(found[column][1] for found in turns) else "*"
        return f"{self.xi(column, by_rank)}{star}"

    @property
    def updates(self) -> list[int]:
        """The checkpoints of the runs that attend."""
        return self.courses[0].updates

    def draw_agreement(self) -> Line:
        """A(α, α̂(τ)) at each checkpoint, over all pairs of different runs."""
        found = (
            Estimate.share(
                value
                for k, course in enumerate(self.courses)
                for turn, value in enumerate(course.agreements[at])
                if turn != k
            )
            for at in self.updates
        )
        return Line.of("A(α, α̂)", self.updates, found)

    def draw_performance(self, label: str) -> Line:
        """How good the runs are at each checkpoint."""
        found = (
            Estimate.of((c.performances[at] for c in self.courses), (0.0, self.best))
            for at in self.updates
        )
        return Line.of(label, self.updates, found, 1)

    def draw_levels(self) -> tuple[Line, ...]:
        """The agreements that are to be reached, across the panel."""
        return tuple(
            draw_level(column, self.updates, self.cell(column), colour)
            for colour, column in ((2, COLUMNS[0]), (3, COLUMNS[3]))
        )


_ROWS = TypeAdapter(Row)


def _restore(plain: Any) -> Any:
    """Plain data with NaN where there is null."""
    if isinstance(plain, Mapping):
        return {key: _restore(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return list(map(_restore, plain))
    return math.nan if plain is None else plain


def draw_level(label: str, updates: Sequence[int], found: Estimate, colour: int) -> Line:
    """A mean across the panel."""
    ends = float(updates[0]), float(updates[-1])
    return Line(label, ends, (found.mean,) * 2, colour=colour, dashed=True)
