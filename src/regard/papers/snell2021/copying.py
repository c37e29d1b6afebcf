"""snell2021, sections 3.3 and 6.2: where attention fails to be learned (Fig. 3)."""

from __future__ import annotations

from regard.display import Figure
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import plan_seeds
from regard.papers.snell2021._learning import (
    compare_steps,
    count_steps,
    draw_runs,
    list_learning,
    read_last,
    share_solved,
)
from regard.runs import RunConfig, assemble


def plan_copying(count: int, **settings: object) -> list[RunConfig]:
    """Models that copy; those that can stop once they copy all held-out rows."""
    return plan_seeds(count, "copying", "snell-copying", **settings)


def plan_fixed_order(seed: int, updates: int) -> RunConfig:
    """A model that puts the words out in another order; every seed has an order of its own."""
    settings = {"vocabulary": 60, "permuted": True, "permutation": seed, "updates": updates}
    return assemble("copying", "snell-copying", seed, settings)


@EXPERIMENTS.register("snell2021/copying")
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
            "40 of 40": plan_copying(many, vocabulary=40, stop_accuracy=1.0),
            "40 of 60": plan_copying(many, vocabulary=60, stop_accuracy=1.0),
            "mixture": plan_copying(many, vocabulary=40, sets=2),
            "40 of 80": plan_copying(few, vocabulary=80, stop_accuracy=1.0),
            "fixed order": [plan_fixed_order(seed, 300 if full else 150) for seed in range(few)],
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Who learned, and when."""
        hard, easy, mixture = runs["40 of 40"], runs["40 of 60"], runs["mixture"]
        control, fixed = runs["40 of 80"], runs["fixed order"]
        measures: dict[str, Measures] = {
            "snell.copy": {
                "hard_solved": share_solved(hard),
                "easy_solved": share_solved(easy),
                "hard_updates": count_steps(hard),
                "easy_updates": count_steps(easy),
                "delay": compare_steps(hard, easy),
            },
            "snell.mixture": {
                "mixture_solved": share_solved(mixture),
                "control_solved": share_solved(control),
                "mixture_accuracy": read_last(mixture),
                "delay": compare_steps(mixture, control),
            },
            "snell.fixed-permutation": {
                "copying_solved": share_solved(easy),
                "copying_updates": count_steps(easy),
                "permuted_solved": share_solved(fixed),
                "permuted_accuracy": read_last(fixed),
            },
        }
        until = max(run.config.training.updates for run in hard)
        longest = max(run.config.training.updates for run in fixed)
        ordered = {"fixed order": fixed, "40 of 60": easy[: len(fixed)]}
        return Findings.of(
            measures,
            list_learning("Who learns to copy, and when", "words", runs),
            Figure.of(
                "snell-copying",
                "Word accuracy on held-out sentences while learning to copy 40 words, a line"
                f" per seed ({len(hard)}, {len(easy)}, {len(mixture)}, {len(control)} and"
                f" {len(fixed)} seeds). Runs that copy every held-out sentence stop and are"
                " drawn on.",
                draw_runs("One set", {"40 of 40": hard, "40 of 60": easy}, until),
                draw_runs("Two sets", {"mixture": mixture, "40 of 80": control}, until),
                draw_runs("A fixed other order", ordered, longest),
            ),
        )
