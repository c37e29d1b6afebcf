"""Numbers over the course of training: which of them change, and which can share an axis."""

from __future__ import annotations

import math

from regard.display import Line, Panel
from regard.instruments.result import to_floats
from regard.statistics import Estimate, significant

LINES = 6  # that one panel can hold and still be read
PANELS = 4
FACTOR = 30.0  # numbers whose sizes differ by more do not share an axis

SHARES = (0.0, 1.0)


class Courses(dict[str, dict[int, Estimate]]):
    """By name, a number at each update where it is there."""

    def means(self, name: str) -> list[float]:
        """The means of one number that are numbers, in the order of the updates."""
        means = [value.mean for value in self[name].values()]
        return [mean for mean in means if math.isfinite(mean)]

    def bounds(self, name: str) -> tuple[float, float] | None:
        """What the number cannot leave."""
        return next(iter(self[name].values())).within

    def size(self, name: str) -> float:
        """The largest it is, in either direction."""
        return max(map(abs, self.means(name)), default=0.0)

    def change(self, name: str) -> float:
        """How far it moves: a share as it is, any other number against its size. At most 2."""
        means = self.means(name)
        if not means:
            return 0.0
        size = 1.0 if self.bounds(name) == SHARES else self.size(name)
        return (max(means) - min(means)) / size if size else 0.0

    def liveliest(self, count: int) -> list[str]:
        """The `count` that change most, in the order in which they are measured."""
        ranked = sorted(self, key=self.change, reverse=True)[:count]
        return [name for name in self if name in ranked]

    def families(self) -> list[list[str]]:
        """Names that can share an axis: shares, then numbers of similar size, the largest first."""
        shares = [name for name in self if self.bounds(name) == SHARES]
        found = [shares] if shares else []
        largest = 0.0
        for name in sorted((n for n in self if n not in shares), key=self.size, reverse=True):
            if not largest or self.size(name) < largest / FACTOR:
                found.append([])
                largest = self.size(name)
            found[-1].append(name)
        return found

    def panels(self) -> tuple[tuple[Panel, ...], int, int]:
        """Panels of lines, how many lines they have, and how many there could be."""
        moves = Courses({name: self[name] for name in self if self.change(name)}) or self
        families = [Courses({name: moves[name] for name in family}) for family in moves.families()]
        moving = sorted(families, key=lambda f: max(map(f.change, f)), reverse=True)[:PANELS]
        kept = [family for family in families if family in moving]
        chosen = [family.liveliest(LINES) for family in kept]
        panels = tuple(map(self._panel, chosen))
        return panels, sum(map(len, chosen)), len(self)

    def _panel(self, names: list[str]) -> Panel:
        lines = tuple(self._line(name, colour) for colour, name in enumerate(names))
        if self.bounds(names[0]) == SHARES:
            return Panel("Shares", "updates", "share", lines, (0, 1.05))
        top = significant(max(map(self.size, names)))
        return Panel(f"Numbers up to {top}", "updates", "value", lines)

    def _line(self, name: str, colour: int) -> Line:
        x, values = to_floats(self[name]), list(self[name].values())
        low = high = None
        if values[0].n > 1:
            low, high = to_floats(v.low for v in values), to_floats(v.high for v in values)
        return Line(name, x, to_floats(v.mean for v in values), low, high, colour, points=True)
