"""How far many runs have come, for a notebook, or a script that asks."""

from __future__ import annotations

from regard.display.progress import Bar, make_bar
from regard.runs.config import RunConfig
from regard.runs.executor import Monitor


class BarMonitor:
    """One bar over all runs; of those under way, the share that is done."""

    def __init__(self, bar: Bar):
        self.bar, self.total, self.done = bar, 0, 0
        self.parts: dict[str, float] = {}

    def expect(self, count: int) -> None:
        """So many runs are to come."""
        self.total += count

    def progress(
        self, config: RunConfig, update: int, total: int, loss: float, accuracy: float | None
    ) -> None:
        """A run has come this far."""
        self.parts[config.name] = update / max(1, total)
        self._show(f"{config.name}: loss {loss:.3f}")

    def finished(self, config: RunConfig) -> None:
        """A run is done."""
        self.parts.pop(config.name, None)
        self.done += 1
        self._show(config.name)

    def _show(self, note: str) -> None:
        self.bar(round(self.done + sum(self.parts.values()), 2), self.total, note)


def make_monitor(wanted: bool | None = None) -> Monitor | None:
    """A monitor where one is wanted; by default in notebooks only."""
    bar = make_bar("runs", wanted)
    return BarMonitor(bar) if bar else None
