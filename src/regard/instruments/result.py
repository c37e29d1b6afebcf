"""What an instrument finds: numbers over seeds, with a table, a picture, plain data and files.

An instrument writes what it measures on one source (`Measured`) and the picture (`figure`); the
rest follows from the numbers' names.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from regard.display import Figure, Table
from regard.display.page import figure_page
from regard.runs.files import write_whole
from regard.statistics import Estimate

M = TypeVar("M", bound="Measured")
Key = str | tuple[str, ...]  # the name of a number, or one name for each of several columns
Range = tuple[float, float] | None

SHARE: Range = (0.0, 1.0)
CORRELATION: Range = (-1.0, 1.0)
SIZE: Range = (0.0, sys.float_info.max)  # what a size cannot leave; JSON has no infinity


class Measured(ABC):
    """What was measured on one source; `described` names what belongs beside the numbers."""

    described: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def values(self) -> Mapping[Any, float]:
        """The numbers that mean something over seeds, by name, or by a tuple of names."""

    def about(self) -> dict[str, Any]:
        """Plain data that belongs beside the numbers: which site, which block, …"""
        return {name: getattr(self, name) for name in self.described}


class Displayable(ABC):
    """What people look at: a table, a picture, plain data, and files of all three."""

    name: ClassVar[str]

    @abstractmethod
    def table(self) -> Table:
        """The numbers."""

    @abstractmethod
    def figure(self) -> Figure:
        """The picture, vector and interactive."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data."""

    @property
    def stem(self) -> str:
        """What its files are called."""
        return self.name

    def plain_table(self) -> Table:
        """The table that goes into a file."""
        return self.table()

    def page(self) -> str:
        """The interactive figure as one page that needs no network."""
        return figure_page(self.name, self.figure())

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.json, NAME.csv, NAME.svg and NAME.html (interactive) into a folder."""
        folder = Path(folder)
        files = {
            "json": json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n",
            "csv": _csv(self.plain_table()),
            "svg": self.figure().svg(),
            "html": self.page(),
        }
        paths = [folder / f"{self.stem}.{ending}" for ending in files]
        for path, text in zip(paths, files.values(), strict=True):
            write_whole(path, text.encode())
        return paths

    def _repr_html_(self) -> str:
        """Table and picture; the picture has a ground of its own, to be read in the dark."""
        figure = self.figure()
        drawn = figure.svg().partition("?>")[2] or figure.svg()
        ground = "background:#fff;border-radius:6px;padding:.4em;display:inline-block"
        picture = f'<div style="{ground}">{drawn}</div><p>{escape(figure.caption)}</p>'
        return self.table().html() + picture

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.table().title}>"


@dataclass(frozen=True)
class Result(Displayable, Generic[M]):
    """What an instrument found: one measurement per seed, and the settings it was asked with.

    Where numbers are named by tuples, `columns` names the parts; the table has a row for all parts
    but the last and a column for each last part. Numbers go by their names in `headers` where they
    are there. `title` may name what the `first` seed and the `settings` have.
    `within` is the range that no number leaves, but for those whose last part is in `ranges`.
    """

    seeds: tuple[M, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    title: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]] = ("what",)
    headers: ClassVar[Mapping[str, str]] = {}
    within: ClassVar[Range] = None
    ranges: ClassVar[Mapping[str, Range]] = {}

    @property
    def n(self) -> int:
        """How many seeds."""
        return len(self.seeds)

    @property
    def first(self) -> M:
        """The first seed's: what a picture of one network shows."""
        return self.seeds[0]

    @property
    def over_seeds(self) -> str:
        """`1 seed`, `5 seeds`."""
        return count_nouns(self.n, "seed")

    def label(self, key: Key) -> str:
        """The name of a number as one text."""
        return key if isinstance(key, str) else " ".join(key)

    def bounds(self, key: Key) -> Range:
        """What one number cannot leave."""
        return self.ranges.get(key if isinstance(key, str) else key[-1], self.within)

    def by_key(self) -> dict[Key, Estimate]:
        """Every number that all seeds have, over seeds."""
        found = estimate_over_seeds([seed.values() for seed in self.seeds])
        return {key: Estimate.of(value.values, self.bounds(key)) for key, value in found.items()}

    def estimates(self) -> dict[str, Estimate]:
        """Every number over seeds, by its name."""
        return {self.label(key): value for key, value in self.by_key().items()}

    def heading(self) -> str:
        """What stands above the table."""
        title = (self.title or self.name).format(first=self.first, settings=self.settings)
        return f"{title}, {self.over_seeds}"

    def table(self) -> Table:
        """The numbers, with their intervals."""
        found = self.by_key()
        if all(isinstance(key, str) for key in found):
            named = self.estimates().items()
            rows = tuple((self.headers.get(name, name), value) for name, value in named)
            return Table(self.heading(), (*self.columns, "measured"), rows)
        last = list(dict.fromkeys(key[-1] for key in found))
        firsts = dict.fromkeys(tuple(key[:-1]) for key in found)
        return Table(
            self.heading(),
            (*self.columns, *(self.headers.get(name, name) for name in last)),
            tuple((*row, *(found.get((*row, name)) for name in last)) for row in firsts),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data: the estimates, and what the measurement says about itself."""
        found = {name: value.to_json() for name, value in self.estimates().items()}
        about = {"instrument": self.name, "seeds": self.n, "values": found}
        sample = {"sample": self.settings["sample"]} if "sample" in self.settings else {}
        return {**about, **sample, **self.first.about()}


def estimate_over_seeds(
    seeds: Sequence[Mapping[Key, float]], within: Range = None
) -> dict[Any, Estimate]:
    """Numbers by name, one mapping per seed, as estimates over seeds; only what all seeds have."""
    shared = [name for name in seeds[0] if all(name in seed for seed in seeds)]
    return {name: Estimate.of((seed[name] for seed in seeds), within) for name in shared}


def count_nouns(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def to_floats(values: Iterable[Any]) -> tuple[float, ...]:
    """Plain floats, for a figure."""
    return tuple(float(value) for value in values)


def _csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    writer.writerows(table.cells())
    return out.getvalue()
