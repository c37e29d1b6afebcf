"""What an instrument is: recordings in, a frozen result out, with a table and a figure.

Seeds are the first axis: an instrument takes one recording or many, measures each, and its
result gives every number with its mean, its interval and how many there were.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from regard.display import Figure, Table
from regard.errors import RegardError
from regard.instruments.decomposition import Decomposition
from regard.recordings import Recording
from regard.registry import Registry
from regard.runs import Run
from regard.runs.files import write_whole
from regard.statistics import Estimate

M = TypeVar("M", bound="Measured")
F = TypeVar("F", bound=Callable[..., Any])
Runs = Run | str | Path | Sequence[Run | str | Path]
Source = Recording | Decomposition
Sources = Source | Sequence[Source]
SIZES = (0.0, sys.float_info.max)  # what a size cannot leave; JSON has no infinity


class Measured(ABC):
    """What was measured on one recording."""

    @abstractmethod
    def values(self) -> dict[str, float]:
        """The numbers that mean something over seeds, by name."""


class Shown(ABC):
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
        return _page(self.name, self.figure())

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
        cells = [self.table().columns, *self.table().cells()]
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>" for row in cells
        )
        return f"<table>{rows}</table>{self.figure().svg()}"


@dataclass(frozen=True)
class Result(Shown, Generic[M]):
    """What an instrument found: one measurement per seed."""

    seeds: tuple[M, ...]
    within: ClassVar[tuple[float, float] | None] = None  # what no value, and no interval, leaves

    @property
    def n(self) -> int:
        """How many seeds."""
        return len(self.seeds)

    @property
    def first(self) -> M:
        """The first seed's: what a picture of one network shows."""
        return self.seeds[0]

    def bounds(self, _name: str) -> tuple[float, float] | None:
        """What one number cannot leave: for most results `within`, whatever its name."""
        return self.within

    def estimates(self) -> dict[str, Estimate]:
        """Every number over seeds."""
        found = over([seed.values() for seed in self.seeds])
        return {name: Estimate.of(e.values, self.bounds(name)) for name, e in found.items()}

    def table(self) -> Table:
        """The numbers, with their intervals."""
        rows = tuple((name, value) for name, value in self.estimates().items())
        return Table(f"{self.name}, {self.n} seed{'s' * (self.n > 1)}", ("what", "measured"), rows)

    def to_json(self) -> dict[str, Any]:
        """Plain data: the estimates; instruments with more to say add to it."""
        found = {name: value.to_json() for name, value in self.estimates().items()}
        return {"instrument": self.name, "seeds": self.n, "values": found}


Instrument = Callable[..., Result[Any]]
instruments: Registry[Instrument] = Registry("instrument")


def reads_gates(instrument: F) -> F:
    """Mark an instrument that wants recordings with gates: who makes them for it, asks for them."""
    instrument.reads_gates = True  # type: ignore[attr-defined]
    return instrument


def takes_runs(instrument: Instrument) -> bool:
    """Whether an instrument wants the runs themselves; all others want recordings of them."""
    return next(iter(inspect.signature(instrument).parameters)) == "runs"


def opened(runs: Runs) -> list[Run]:
    """One run or many, given themselves or by their folders."""
    many = [runs] if isinstance(runs, (Run, str, Path)) else list(runs)
    if not many:
        raise RegardError("There is nothing to inspect: no runs were given.")
    return [run if isinstance(run, Run) else Run.open(run) for run in many]


def over(
    seeds: Sequence[dict[str, float]], within: tuple[float, float] | None = None
) -> dict[str, Estimate]:
    """Numbers by name, one mapping per seed, as estimates over seeds; only what all seeds have."""
    shared = [name for name in seeds[0] if all(name in seed for seed in seeds)]
    return {name: Estimate.of((seed[name] for seed in seeds), within) for name in shared}


def each(sources: Sources, measure: Callable[[Decomposition], M]) -> tuple[M, ...]:
    """Measure the decomposition of one source or many."""
    return tuple(measure(as_decomposition(source)) for source in _many(sources))


def each_recording(sources: Sources, measure: Callable[[Recording], M]) -> tuple[M, ...]:
    """Measure the recording of one source or many; nothing is decomposed."""
    return tuple(
        measure(source.recording if isinstance(source, Decomposition) else source)
        for source in _many(sources)
    )


def _many(sources: Sources) -> list[Source]:
    many = [sources] if isinstance(sources, (Recording, Decomposition)) else list(sources)
    if not many:
        raise RegardError("There is nothing to inspect: no recordings were given.")
    return many


def as_decomposition(source: Source) -> Decomposition:
    """A recording's decomposition; what is one already stays as it is."""
    return source if isinstance(source, Decomposition) else Decomposition.of(source)


def numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """Plain floats, for a figure."""
    return tuple(float(value) for value in values)


def _csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    writer.writerows(table.cells())
    return out.getvalue()


def _page(name: str, figure: Figure) -> str:
    """The interactive figure as one page that needs no network."""
    import plotly.io

    body: str = plotly.io.to_html(figure.interactive(), include_plotlyjs=True, full_html=False)
    return (
        f"<!doctype html><meta charset='utf-8'><title>{escape(name)}</title>"
        f"{body}<p>{escape(figure.caption)}</p>"
    )
