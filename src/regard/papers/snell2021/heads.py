"""snell2021, section 5.2: many heads learn because one of them begins well (Fig. 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from regard.display import Figure, Table
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import subtract
from regard.papers.snell2021._learning import (
    draw_runs,
    find_solved,
    list_learning,
    read_last,
    share_solved,
)
from regard.runs import Run, RunConfig, assemble

HEADS = 8
BAD = 0.6  # word accuracy at the end below which a head has not learned
BACKBONE = 0  # the seed of every weight that is not a head's
TRIALS = 3  # data seeds that a head has to be good, or bad, for
RANDOM = 10_000  # head seeds from here on are no candidates
# A small model that learns slowly: when it is stopped, some heads have learned and some have not.
QUICK = {"vocabulary": 30, "length": 30, "hidden": 32, "embedding": 32, "batch": 16,
         "learning_rate": 3e-3, "updates": 225, "evaluate_every": 25, "held_out": 32}  # fmt: skip
NUMBERS = {"quick": (4, 2), "full": (40, 20)}  # candidates at most, and seeds of each condition
ROUND = 8  # candidates that are tried at a time, until there are enough good ones and bad ones
ENOUGH = (4, HEADS)
SUMMED = 5  # seeds of what the paper's text says; its program takes the mean
ALONE = "head "  # begins the conditions of single heads
CONDITIONS = ("all bad", "one good", "random")


def plan_heads(seed: int, head_seeds: Sequence[int], scale: Scale, **more: object) -> RunConfig:
    """A model with these heads on the one backbone; the seed is that of the data."""
    own = QUICK if scale == "quick" else {}
    settings = {"heads": len(head_seeds), "head_seeds": tuple(head_seeds),
                "initial_seed": BACKBONE, "stop_accuracy": 1.0}  # fmt: skip
    return assemble("copying", "snell-heads", seed, {**own, **settings, **more})


def is_good(runs: Sequence[Run]) -> bool:
    """Whether a single head learns, whatever the data seed."""
    return all(find_solved(run) is not None for run in runs)


def is_bad(runs: Sequence[Run]) -> bool:
    """Whether a single head has not learned at the end, whatever the data seed."""
    return all(value < BAD for value in read_last(runs).values)


def name_kind(runs: Sequence[Run]) -> str:
    """What a single head is, in a word."""
    return "good" if is_good(runs) else "bad" if is_bad(runs) else "neither"


def sort_heads(runs: Runs) -> tuple[list[int], list[int]]:
    """The seeds of the candidates that are good, and of those that are bad."""
    tried = {read_seed(name): group for name, group in runs.items() if name.startswith(ALONE)}
    good = [head for head, group in tried.items() if is_good(group)]
    return good, [head for head, group in tried.items() if is_bad(group)]


def read_seed(condition: str) -> int:
    """The seed of the head that a condition tries."""
    return int(condition.removeprefix(ALONE))


def draw_heads(from_: Sequence[int], count: int, seed: int) -> list[int]:
    """Some of the heads, none twice unless there are too few."""
    rng = np.random.default_rng([seed, count])
    return [int(head) for head in rng.choice(from_, count, replace=len(from_) < count)]


@EXPERIMENTS.register("snell2021/heads")
class HeadsExperiment(Experiment):
    """Eight heads, begun well or badly."""

    title = "Eight heads, begun well or badly"
    about = (
        "Single heads on one backbone are sorted into good and bad ones, until there are enough of"
        " both; then models with eight heads: all bad, one good among them, or drawn at random"
        " (Fig. 6)."
    )
    claims = ("snell.heads",)
    partial = True

    def plan(self, scale: Scale) -> Plan:
        """The first candidates: every head alone, with several seeds of the data."""
        return self.plan_candidates(0, scale)

    def plan_candidates(self, first: int, scale: Scale) -> Plan:
        """A round of candidates, from one on."""
        heads = range(first, min(first + ROUND, NUMBERS[scale][0]))
        return {
            f"{ALONE}{head}": [plan_heads(seed, (head,), scale) for seed in range(TRIALS)]
            for head in heads
        }

    def then(self, runs: Runs, scale: Scale) -> Plan:
        """More candidates, until there are enough of both kinds; then eight heads each.

        As far as there are heads for it, and with seeds of data that were not seen before.
        """
        good, bad = sort_heads(runs)
        tried = [read_seed(name) for name in runs if name.startswith(ALONE)]
        few = len(good) < ENOUGH[0] or len(bad) < ENOUGH[1]
        if few and (more := self.plan_candidates(max(tried) + 1, scale)):
            return more
        seeds = range(NUMBERS[scale][1])
        starts = (RANDOM + HEADS * seed for seed in seeds)
        sets = {"random": [list(range(start, start + HEADS)) for start in starts]}
        if bad:
            sets["all bad"] = [draw_heads(bad, HEADS, seed) for seed in seeds]
        if bad and good:
            sets["one good"] = [
                [*draw_heads(good, 1, seed), *draw_heads(bad, HEADS - 1, seed)] for seed in seeds
            ]
        merges = {"": ("mean", len(seeds)), ", summed": ("sum", SUMMED)}
        if scale == "quick":
            del merges[", summed"]
        return {
            f"{name}{ending}": [
                plan_heads(TRIALS + seed, chosen, scale, merge=merge)
                for seed, chosen in enumerate(sets[name][:count])
            ]
            for ending, (merge, count) in merges.items()
            for name in CONDITIONS
            if name in sets
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Who learned. Without bad heads, or good ones, the claim cannot be judged."""
        good, bad = sort_heads(runs)
        tried = {name: group for name, group in runs.items() if name.startswith(ALONE)}
        many = {name: group for name, group in runs.items() if name not in tried}
        return Findings.of(
            {"snell.heads": _measure_many(many)},
            _list_candidates(tried),
            list_learning("Who learns with eight heads", "eight heads", many),
            _draw_learning(tried, many),
            *_say_kinds(len(tried), good, bad),
        )


def _measure_many(many: Mapping[str, Sequence[Run]]) -> Measures:
    if not set(CONDITIONS) <= set(many):
        return {}
    named = {
        "bad_solved": share_solved(many["all bad"]),
        "good_solved": share_solved(many["one good"]),
        "random_solved": share_solved(many["random"]),
        "good_over_bad": subtract(read_last(many["one good"]), read_last(many["all bad"])),
    }
    further = {
        f"{name.split(',')[0].replace(' ', '_')}_summed_solved": share_solved(group)
        for name, group in many.items()
        if name.endswith(", summed")
    }
    return {**named, **further}


def _say_kinds(tried: int, good: list[int], bad: list[int]) -> tuple[str, ...]:
    lines = [
        f"Of {tried} heads that were tried alone, {len(good)} are good and {len(bad)} are bad;"
        " the others are neither for every seed of the data."
    ]
    if not (good and bad):
        kinds = " and ".join(kind for kind, found in (("good", good), ("bad", bad)) if not found)
        lines.append(
            f"There is no {kinds} head among them, so the conditions that need one were not run"
            " and the claim is not judged."
        )
    elif len(bad) < HEADS:
        lines.append(
            f"With {len(bad)} bad heads, the same one begins several of the eight: fewer than"
            " eight different heads are tried at once."
        )
    return tuple(lines)


def _list_candidates(tried: Mapping[str, Sequence[Run]]) -> Table:
    rows = tuple(
        (read_seed(name), share_solved(group), read_last(group), name_kind(group))
        for name, group in tried.items()
    )
    columns = ("head", "learned", "word accuracy at the end", "it is")
    return Table("Single heads", columns, rows)


def _draw_learning(tried: Mapping[str, Sequence[Run]], many: Mapping[str, Sequence[Run]]) -> Figure:
    kinds: dict[str, list[Run]] = {"good": [], "bad": [], "neither": []}
    for group in tried.values():
        kinds[name_kind(group)] += group
    until = max(run.config.training.updates for group in tried.values() for run in group)
    panels = [draw_runs("Single heads", {k: v for k, v in kinds.items() if v}, until)]
    for title, ending in (("Eight heads", ""), ("Eight heads, contexts summed", ", summed")):
        groups = {n: many[n + ending] for n in CONDITIONS if n + ending in many}
        if groups:
            panels.append(draw_runs(title, groups, until))
    return Figure.of(
        "snell-heads",
        "Word accuracy on held-out sentences while learning to copy permutations, a line per run:"
        " heads alone, and eight at once. Runs that copy every held-out sentence stop and are drawn"
        " on.",
        *panels,
    )
