"""What was tried, what held, and what did not."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from regard.errors import RegardError

SHOWN = 5  # failures that are told in full


@dataclass
class Tally:
    """One row of the table: a way of trying, counted by what came of it."""

    name: str
    tried: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, outcome: str) -> None:
        """Something was tried, and it held."""
        self.tried += 1
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def fail(self, what: str) -> None:
        """Something was tried, and it did not hold."""
        self.tried += 1
        self.failures.append(what)

    def attempt(self, what: str, action: Callable[[], str]) -> None:
        """Try it: one sentence counts as held, and so does what the action says; all else failed.

        An `AssertionError` is a wrong number, anything else a traceback that a user would see.
        """
        began = time.monotonic()
        try:
            self.note(action())
        except RegardError as error:
            short = all(fault and len(fault) < 2000 for fault in error.faults) and error.faults
            self.note("refused with a sentence") if short else self.fail(f"{what}: no sentence")
        except AssertionError as error:
            self.fail(f"{what}: silently wrong: {error}")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.fail(f"{what}: {type(error).__name__}: {error} ({last.filename}:{last.lineno})")
        self.seconds += time.monotonic() - began

    @property
    def held(self) -> int:
        """How many held."""
        return self.tried - len(self.failures)


def add_up(rounds: list[list[Tally]]) -> list[Tally]:
    """The rows of several rounds as one table, in the order in which they first came."""
    found: dict[str, Tally] = {}
    for row in (row for rows in rounds for row in rows):
        total = found.setdefault(row.name, Tally(row.name))
        total.tried += row.tried
        total.seconds += row.seconds
        total.failures += row.failures
        for outcome, count in row.outcomes.items():
            total.outcomes[outcome] = total.outcomes.get(outcome, 0) + count
    return list(found.values())


def table(rows: list[Tally]) -> str:
    """The table in Markdown."""
    lines = [
        "| what was tried | times | held | failed | what came of it |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        came = "; ".join(f"{what} {count:,}" for what, count in sorted(row.outcomes.items()))
        counts = f"{row.tried:,} | {row.held:,} | {len(row.failures):,}"
        lines.append(f"| {row.name} | {counts} | {came} |")
    return "\n".join(lines)
