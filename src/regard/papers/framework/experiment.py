"""Experiments: which runs a claim needs, and what to measure on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from regard.display import Figure, Table
from regard.errors import RegardError, unknown
from regard.papers import PAPERS
from regard.papers.framework.claims import Claim, ledger
from regard.registry import Registry
from regard.statistics import Estimate

if TYPE_CHECKING:  # who asks for the name of an experiment need not wait for torch
    from regard.runs.config import RunConfig
    from regard.runs.run import Run

Scale = Literal["quick", "full"]
Plan = dict[str, list["RunConfig"]]  # condition -> one configuration per seed
Runs = Mapping[str, Sequence["Run"]]  # condition -> one run per seed
Measures = dict[str, Estimate]
Parts = dict[str, dict[str, Any]]  # data set -> what it gave, as plain data


@dataclass(frozen=True)
class Findings:
    """What an experiment found: numbers for each claim, tables, figures, and it in words."""

    measures: dict[str, Measures] = field(default_factory=dict)  # claim id -> name -> estimate
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    found: tuple[str, ...] = ()
    parts: Parts = field(default_factory=dict)  # what each data set gave, to be kept
    hours_before: float = 0.0  # core hours of the parts that were measured before

    @classmethod
    def of(cls, measures: dict[str, Measures], *shown: Table | Figure | str) -> Findings:
        """With what is shown of them, in the order of a page: tables, figures, sentences."""
        tables = tuple(one for one in shown if isinstance(one, Table))
        figures = tuple(one for one in shown if isinstance(one, Figure))
        return cls(measures, tables, figures, tuple(one for one in shown if isinstance(one, str)))


class Experiment(ABC):
    """One experiment of one paper. `plan` says what to train, `measure` looks at the runs."""

    title: ClassVar[str]
    about: ClassVar[str]
    claims: ClassVar[tuple[str, ...]] = ()
    partial: ClassVar[bool] = False  # it may leave measures out, for lack of data
    wants: ClassVar[tuple[str, ...]] = ()  # data that a user can name with --data NAME=FILE

    def __init__(self, data: Mapping[str, str] | None = None):
        self.data = {name: file for name, file in (data or {}).items() if name in self.wants}
        self.earlier: Parts = {}  # what data sets gave that were measured before

    def lacks(self, scale: Scale) -> str | None:
        """What has to be named before the experiment can be run, in words; mostly nothing."""
        return None

    def reads(self, scale: Scale) -> list[Path]:
        """Files that are read without a run: other content makes another result."""
        return []

    def coverage(self, scale: Scale, plan: Plan | None = None) -> str | None:
        """How much of what the claims speak of is looked at, where that is not all of it.

        `plan` is what was run in the end, with what `then` added.
        """
        return None

    def part_of(self, condition: str) -> str | None:
        """The data set that a condition belongs to, where they are measured one by one."""
        return None

    @abstractmethod
    def plan(self, scale: Scale) -> Plan:
        """The runs that are needed, by condition."""

    def then(self, runs: Runs, scale: Scale) -> Plan:
        """Further runs that follow from what the others learnt, by condition; mostly none.

        It is asked again when those are done, until no condition is new.
        """
        return {}

    def find_further(self, runs: Runs, scale: Scale) -> Plan:
        """What `then` adds to the conditions that are there."""
        then = self.then(runs, scale)
        return {condition: configs for condition, configs in then.items() if condition not in runs}

    @abstractmethod
    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """What the runs show."""

    def rows(self) -> list[Claim]:
        """The claims that this experiment decides."""
        known = ledger()
        missing = [claim for claim in self.claims if claim not in known]
        if missing:
            own = [row.id for row in known.values()]
            raise RegardError(*(unknown("claim", claim, own) for claim in missing))
        return [known[claim] for claim in self.claims]


EXPERIMENTS: Registry[type[Experiment]] = Registry(
    "experiment", modules=tuple(f"regard.papers.{paper}" for paper in (*PAPERS, "demo"))
)
