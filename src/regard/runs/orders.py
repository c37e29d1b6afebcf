"""What whoever trains many runs is told, and whom they tell how it goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from regard.runs.config import RunConfig


class Monitor(Protocol):
    """Whoever wants to see how the runs go."""

    def expect(self, count: int) -> None:
        """So many runs are to come, those counted that are done already."""

    def progress(
        self, config: RunConfig, update: int, total: int, loss: float, accuracy: float | None
    ) -> None:
        """A run has come this far."""

    def finished(self, config: RunConfig) -> None:
        """A run is done (or was, before anybody asked)."""


class Watcher(Protocol):
    """Whoever is told by those who train; all that a monitor is told, and what came to nothing."""

    def progress(
        self, config: RunConfig, update: int, total: int, loss: float, accuracy: float | None
    ) -> None:
        """A run has come this far."""

    def finished(self, config: RunConfig) -> None:
        """A run is done."""

    def failed(self, config: RunConfig, faults: Iterable[str]) -> None:
        """A run was given up."""


@dataclass(frozen=True)
class Orders:
    """What holds for all runs that are asked for at once."""

    root: Path  # the folder of runs
    jobs: int | None = None  # side by side; none: as many as there are cores
    monitor: Watcher | None = None
    preset: str = ""


class Executor(Protocol):
    """A way of training many runs. It returns faults; a run that fails does not stop the others.

    A run that was cut goes on from its last checkpoint, and gives the same bits wherever it is
    trained.
    """

    def __call__(self, configs: Sequence[RunConfig], orders: Orders) -> list[str]:
        """Have all of these runs made; returns the faults, of which there may be none."""
