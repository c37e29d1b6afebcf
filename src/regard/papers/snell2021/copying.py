"""snell2021, sections 3.3 and 6.2: where attention fails to be learned (Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence

from regard.display import Figure, Line, Panel, Table
from regard.papers.experiment import (
    Experiment,
    Findings,
    Measures,
    Plan,
    Runs,
    Scale,
    experiments,
    seeds,
)
from regard.runs import Run, RunConfig, assemble
from regard.statistics import Estimate

SOLVED = 0.95  # word accuracy, with the teacher's words fed, from which on a model has learned
WORDS = "forced_token_accuracy"


def copying(count: int, **settings: object) -> list[RunConfig]:
    """Models that copy; those that can stop once they copy all held-out rows."""
    return seeds(count, "copying", "snell-copying", **settings)


def fixed_order(seed: int, updates: int) -> RunConfig:
    """A model that puts the words out in another order; every seed has an order of its own."""
    settings = {"vocabulary": 60, "permuted": True, "permutation": seed, "updates": updates}
    return assemble("copying", "snell-copying", seed, settings)


def first_solved(run: Run, words: float = SOLVED) -> int | None:
    """The first evaluation at which a run has learned, or None."""
    updates, accuracy = run.curve(WORDS, "validation")
    return next((u for u, a in zip(updates, accuracy, strict=True) if a > words), None)


def solved(runs: Sequence[Run]) -> Estimate:
    """The share of runs that learned."""
    return Estimate.share(float(first_solved(run) is not None) for run in runs)


def steps(runs: Sequence[Run]) -> Estimate:
    """Updates until a run has learned; those that never do count as all they had."""
    return Estimate.of(first_solved(run) or run.config.training.updates for run in runs)


def last_accuracy(runs: Sequence[Run]) -> Estimate:
    """Word accuracy at the last evaluation."""
    return Estimate.share(run.curve(WORDS, "validation")[1][-1] for run in runs)


def later(slow: Sequence[Run], fast: Sequence[Run]) -> Estimate:
    """By how many updates one kind of run learns later, seed by seed."""
    pairs = zip(steps(slow).values, steps(fast).values, strict=False)
    return Estimate.of(a - b for a, b in pairs)


def curves(title: str, groups: dict[str, Sequence[Run]], until: int) -> Panel:
    """A line per seed, a colour per group. A run that stopped early is drawn on at its level."""
    lines = []
    for colour, (name, runs) in enumerate(groups.items()):
        for number, run in enumerate(runs):
            updates, accuracy = run.curve(WORDS, "validation")
            if updates[-1] < until:
                updates, accuracy = [*updates, until], [*accuracy, accuracy[-1]]
            label = name if number == 0 else ""
            lines.append(Line(label, tuple(updates), tuple(accuracy), colour=colour))
    return Panel(title, "update", "word accuracy", tuple(lines), (0, 1.05))


@experiments.register("snell2021/copying")
class CopyingExperiment(Experiment):
    """Copying what tells nothing about itself, and copying in another order."""

    title = "Copying words that do not repeat"
    about = (
        "Permutations of the same 40 words, 40 words out of 60, permutations of one of two sets of"
        " 40, and a fixed other order (Fig. 3, section 6.2)."
    )
    claims = ("snell.copy", "snell.mixture", "snell.fixed-permutation")

    def plan(self, scale: Scale) -> Plan:
        """20 seeds at full scale; runs that only have to learn stop when they have."""
        full = scale == "full"
        many, few = (20, 5) if full else (2, 2)
        return {
            "40 of 40": copying(many, vocabulary=40, stop_accuracy=1.0),
            "40 of 60": copying(many, vocabulary=60, stop_accuracy=1.0),
            "mixture": copying(many if full else few, vocabulary=40, sets=2),
            "40 of 80": copying(few, vocabulary=80, stop_accuracy=1.0),
            "fixed order": [fixed_order(seed, 300 if full else 150) for seed in range(few)],
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Who learned, and when."""
        hard, easy, mixture = runs["40 of 40"], runs["40 of 60"], runs["mixture"]
        control, fixed = runs["40 of 80"], runs["fixed order"]
        measures: dict[str, Measures] = {
            "snell.copy": {
                "hard_solved": solved(hard),
                "easy_solved": solved(easy),
                "hard_updates": steps(hard),
                "easy_updates": steps(easy),
                "delay": later(hard, easy),
            },
            "snell.mixture": {
                "mixture_solved": solved(mixture),
                "control_solved": solved(control),
                "mixture_accuracy": last_accuracy(mixture),
                "delay": later(mixture, control),
            },
            "snell.fixed-permutation": {
                "copying_solved": solved(easy),
                "copying_updates": steps(easy),
                "permuted_solved": solved(fixed),
                "permuted_accuracy": last_accuracy(fixed),
            },
        }
        until = max(run.config.training.updates for run in hard)
        longest = max(run.config.training.updates for run in fixed)
        return Findings(
            measures,
            (self._table(runs),),
            (
                Figure(
                    "snell-copying",
                    "Word accuracy on held-out sentences while learning to copy 40 words, a line"
                    f" per seed ({len(hard)}, {len(easy)}, {len(mixture)}, {len(control)} and"
                    f" {len(fixed)} seeds). Runs that copy every held-out sentence stop and are"
                    " drawn on.",
                    (
                        curves("One set", {"40 of 40": hard, "40 of 60": easy}, until),
                        curves("Two sets", {"mixture": mixture, "40 of 80": control}, until),
                        curves(
                            "A fixed other order",
                            {"fixed order": fixed, "40 of 60": easy[: len(fixed)]},
                            longest,
                        ),
                    ),
                ),
            ),
        )

    def _table(self, runs: Runs) -> Table:
        rows = tuple(
            (name, solved(group), steps(group), last_accuracy(group))
            for name, group in runs.items()
        )
        columns = ("words", "learned", f"updates until {SOLVED}", "word accuracy at the end")
        return Table("Who learns to copy, and when", columns, rows)
