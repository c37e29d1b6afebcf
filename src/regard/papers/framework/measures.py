"""What experiments of several papers plan, measure and draw alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from regard.display import Figure, Panel
from regard.display.figure import Mark
from regard.papers.framework.experiment import Scale
from regard.statistics import Estimate

if TYPE_CHECKING:
    from regard.runs.config import RunConfig
    from regard.runs.run import Run

T = TypeVar("T")
SHARE = (0.0, 1.0)  # what a share cannot leave
CHANGE = (-1.0, 1.0)  # what the difference of two shares cannot leave, nor a correlation
SIZE = (0.0, sys.float_info.max)  # what a size cannot leave; JSON has no infinity


def count_seeds(scale: Scale, quick: int = 2, full: int = 5) -> int:
    """How many seeds a condition has."""
    return quick if scale == "quick" else full


def plan_seeds(seeds: int | Scale, task: str, model: str, **overrides: Any) -> list[RunConfig]:
    """One configuration per seed, of so many seeds or of as many as a scale has by default.

    A dot in a key is written as two underscores.
    """
    count = seeds if isinstance(seeds, int) else count_seeds(seeds)
    return plan_each(range(count), task, model, **overrides)


def plan_each(seeds: Iterable[int], task: str, model: str, **overrides: Any) -> list[RunConfig]:
    """One configuration for each of these seeds; keys as for `plan_seeds`."""
    from regard.runs.config import assemble

    values = {key.replace("__", "."): value for key, value in overrides.items()}
    return [assemble(task, model, seed, values) for seed in seeds]


def read_share(runs: Iterable[Run], metric: str) -> Estimate:
    """A metric at the end of training that is a share, over seeds."""
    return Estimate.share(run.metrics[metric] for run in runs)


def measure_each(
    things: Iterable[T],
    measure: Callable[[T], float],
    within: tuple[float, float] | None = None,
) -> Estimate:
    """One number of each run, recording or measurement; `within` is what it cannot leave."""
    return Estimate.of(map(measure, things), within)


def subtract(a: Estimate, b: Estimate, within: tuple[float, float] | None = None) -> Estimate:
    """a − b, seed by seed."""
    return Estimate.of((x - y for x, y in zip(a.values, b.values, strict=True)), within)


def to_percent(share: Estimate) -> str:
    """A share for a sentence."""
    return f"{100 * share.mean:.0f} %"


def draw_shares(title: str, x: str, y: str, *marks: Mark, wide: bool = False) -> Panel:
    """A panel whose vertical axis goes from 0 to 1."""
    return Panel(title, x, y, marks, (0, 1.05), wide=wide)


def join_figures(name: str, caption: str, figures: Mapping[str, Figure]) -> Figure:
    """The panels of several figures as one, each with its figure's word in front of its title."""
    panels = (
        replace(panel, title=f"{front}: {panel.title[:1].lower()}{panel.title[1:]}")
        for front, figure in figures.items()
        for panel in figure.panels
    )
    return Figure(name, caption, tuple(panels))


def join_panels(name: str, caption: str, panels: Mapping[str, Panel]) -> Figure:
    """Panels of other figures as one figure, under titles of their own."""
    named = (replace(panel, title=title) for title, panel in panels.items())
    return Figure(name, caption, tuple(named))
