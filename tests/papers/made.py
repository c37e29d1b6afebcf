"""Made runs and made instruments: every number is known, and says whose it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from shown import hold

from regard.display import Figure, Panel, Table
from regard.papers import EXPERIMENTS
from regard.papers.framework import Findings
from regard.statistics import Estimate

SEEDS = 3


def number(condition: str, key: object, seed: int) -> float:
    """A share between 0 and 1 that no other condition, key or seed has."""
    return crc32(f"{condition}|{key}|{seed}".encode()) / 2**32


def values(condition: str, key: object) -> list[float]:
    return [number(condition, key, seed) for seed in range(SEEDS)]


class Everything(Mapping[Any, Any]):
    """A mapping that has whatever it is asked for."""

    def __init__(self, find: Callable[[Any], Any]):
        self.find = find

    def __getitem__(self, key: Any) -> Any:
        return self.find(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0


class MadeRun:
    """What an experiment asks of a run; its numbers follow from its condition and seed."""

    def __init__(self, condition: str, seed: int, curves: Mapping[str, Any] | None = None):
        self.condition, self.seed, self.curves = condition, seed, curves or {}
        self.metrics = Everything(lambda key: number(condition, key, seed))
        self.config: Any = self

    def curve(self, name: str, split: str | None = None) -> tuple[list[int], list[float]]:
        found: tuple[list[int], list[float]] = self.curves[name]
        return found

    def model(self, checkpoint: Any = "reported") -> Any:
        return self


def make_runs(
    conditions: Iterable[str], curves: Callable[[str, int], Mapping[str, Any]] | None = None
) -> dict[str, list[Any]]:
    return {
        name: [MadeRun(name, s, curves(name, s) if curves else None) for s in range(SEEDS)]
        for name in conditions
    }


class MadeSeed:
    """What an instrument found of one run."""

    def __init__(self, of: Any, tool: str):
        self.of, self.tool = of, tool

    def values(self) -> Mapping[Any, float]:
        return Everything(lambda key: number(self.of.condition, (self.tool, key), self.of.seed))


class MadeResult:
    """What an instrument found of some runs: a number for everything that it is asked for."""

    def __init__(self, tool: str, things: Sequence[Any]):
        self.tool, self.things = tool, list(things)
        self.seeds = [MadeSeed(thing, tool) for thing in self.things]
        self.first, self.n = self.seeds[0], len(self.things)
        self.shares = Everything(lambda key: number(self.things[0].condition, (tool, key), 0))

    def estimates(self) -> Mapping[Any, Estimate]:
        def find(key: Any) -> Estimate:
            named = [number(t.condition, (self.tool, key), t.seed) for t in self.things]
            return Estimate.of(named)

        return Everything(find)

    def table(self) -> Table:
        return Table(self.tool, ("a",), ((1,),))

    def figure(self) -> Figure:
        return Figure(self.tool, "caption", (Panel("panel", "x", "y", ()),) * 2)


def instrument(tool: str) -> Callable[..., MadeResult]:
    """An instrument that takes anything; its settings do not matter, but for a block."""

    def measure(things: Any, *settings: Any, **more: Any) -> MadeResult:
        name = " ".join([tool, *(str(more[key]) for key in ("block",) if key in more)])
        return MadeResult(name, things)

    return measure


def measure(name: str, runs: Mapping[str, Any], scale: Any = "quick") -> Findings:
    """What an experiment finds on made runs; what it shows of that is held against what it did."""
    findings = EXPERIMENTS[name]({}).measure(runs, scale)
    test = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].removesuffix(" (call)")
    CALLS[test] = CALLS.pop(test, 0) + 1
    for other in list(CALLS)[:-1]:
        del CALLS[other]
    described = {"tables": findings.tables, "figures": findings.figures, "found": findings.found}
    hold(Path(__file__).with_name("shown.json"), f"{test} {CALLS[test]}", described)
    return findings


CALLS: dict[str, int] = {}  # how often the test that runs has measured
