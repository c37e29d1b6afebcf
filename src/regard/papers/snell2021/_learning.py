"""Who learns to copy, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regard.display import Line, Panel, Table
from regard.papers.framework.measures import draw_shares
from regard.runs import Run
from regard.statistics import Estimate

SOLVED = 0.95  # word accuracy, with the teacher's words fed, from which on a model has learned
WORDS = "forced_token_accuracy"


def find_solved(run: Run, words: float = SOLVED) -> int | None:
    """The first evaluation at which a run has learned, or None."""
    updates, accuracy = run.curve(WORDS, "validation")
    return next((u for u, a in zip(updates, accuracy, strict=True) if a > words), None)


def share_solved(runs: Sequence[Run]) -> Estimate:
    """The share of runs that learned."""
    return Estimate.share(float(find_solved(run) is not None) for run in runs)


def count_steps(runs: Sequence[Run]) -> Estimate:
    """Updates until a run has learned; those that never do count as all they had."""
    return Estimate.of(find_solved(run) or run.config.training.updates for run in runs)


def read_last(runs: Sequence[Run]) -> Estimate:
    """Word accuracy at the last evaluation."""
    return Estimate.share(run.curve(WORDS, "validation")[1][-1] for run in runs)


def compare_steps(slow: Sequence[Run], fast: Sequence[Run]) -> Estimate:
    """By how many updates one kind of run learns later, seed by seed."""
    pairs = zip(count_steps(slow).values, count_steps(fast).values, strict=False)
    return Estimate.of(a - b for a, b in pairs)


def draw_runs(title: str, groups: Mapping[str, Sequence[Run]], until: int) -> Panel:
    """A line per seed, a colour per group. A run that stopped early is drawn on at its level."""
    lines = []
    for colour, (name, runs) in enumerate(groups.items()):
        for number, run in enumerate(runs):
            updates, accuracy = run.curve(WORDS, "validation")
            if updates[-1] < until:
                updates, accuracy = [*updates, until], [*accuracy, accuracy[-1]]
            label = name if number == 0 else ""
            lines.append(Line(label, tuple(updates), tuple(accuracy), colour=colour))
    return draw_shares(title, "update", "word accuracy", *lines)


def list_learning(title: str, what: str, groups: Mapping[str, Sequence[Run]]) -> Table:
    """A row per group: how many learned, when, and what they know in the end."""
    rows = tuple(
        (name, share_solved(runs), count_steps(runs), read_last(runs))
        for name, runs in groups.items()
    )
    columns = (what, "learned", f"updates until {SOLVED}", "word accuracy at the end")
    return Table(title, columns, rows)
