"""snell2021, section 6.1: where the knowledge of a keyword is kept (Fig. 7)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from regard.display import Figure, Line, Panel, Table
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, measure_each, plan_each
from regard.recordings.record import record
from regard.runs import Run, RunConfig
from regard.statistics import Estimate

PLACES = ("keyword", "next", "mean", "last")
Places = dict[str, float]  # γ by place
SENTENCES = 400
BEGUN = 0.75  # accuracy from which on a model has begun to learn
POSITIVE = "positive"


def plan_keyword(seeds: Iterable[int], **settings: object) -> list[RunConfig]:
    """Classifiers under uniform attention, in both directions by default."""
    settings = {"attention": "uniform", "report": "last", **settings}
    return plan_each(seeds, "keyword", "snell-classifier", **settings)


def follow_places(run: Run) -> dict[int, Places]:
    """γ at the four places at every checkpoint."""
    return {at: measure_places(run, at) for at in run.checkpoints()}


def measure_places(run: Run, checkpoint: int) -> Places:
    """Mean γ at the keyword, right after it, over all positions, and at the last one.

    Over positive sentences whose keyword has a word after it that is not the last.
    """
    positive = run.task().target_vocabulary.numbers[POSITIVE]
    also = {"log_odds": {"word": positive}}
    names = ("log_odds", "alignment")
    kept = record(run, SENTENCES, checkpoint=checkpoint, inputs="teacher", also=also, only=names)
    at, gamma = kept["alignment"][:, 0], kept["log_odds"][:, 0]  # (sample,), (sample, source)
    rows = np.flatnonzero((at >= 0) & (at < gamma.shape[1] - 2))
    gamma, at = gamma[rows], at[rows]
    every = np.arange(len(rows))
    return {
        "keyword": float(gamma[every, at].mean()),
        "next": float(gamma[every, at + 1].mean()),
        "mean": float(gamma.mean()),
        "last": float(gamma[:, -1].mean()),
    }


def find_begun(run: Run) -> int:
    """The first kept checkpoint at which the model has begun to learn; else the last."""
    updates, accuracy = run.curve("accuracy", "validation")
    kept = run.checkpoints()
    reached = [u for u, a in zip(updates, accuracy, strict=True) if a > BEGUN and u in kept]
    return reached[0] if reached else kept[-1]


@EXPERIMENTS.register("snell2021/keyword")
class KeywordExperiment(Experiment):
    """Knowledge that is local at first wanders to the end of the sentence."""

    title = "A keyword under uniform attention"
    about = "Log-odds γ at the keyword, after it, on average, and at the end, over training."
    claims = ("snell.keyword",)

    def plan(self, scale: Scale) -> Plan:
        """In one direction, of which the paper's four places speak, and in both."""
        settings = {"updates": 3000} if scale == "full" else {"hidden": 128, "updates": 1500}
        return {
            "one direction": plan_keyword(
                range(count_seeds(scale)), bidirectional=False, **settings
            ),
            "both directions": plan_keyword(range(1), **settings),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """γ at the four places at every checkpoint."""
        found = {name: list(map(follow_places, group)) for name, group in runs.items()}
        ahead = found["one direction"]
        early = [
            course[find_begun(run)]
            for run, course in zip(runs["one direction"], ahead, strict=True)
        ]
        late = [course[max(course)] for course in ahead]
        soon = [course[sorted(course)[1]] for course in ahead]  # the first checkpoint that learned

        measures = {
            "early_key_over_next": subtract_places(early, "keyword", "next"),
            "early_next_over_mean": subtract_places(early, "next", "mean"),
            "early_last_share": compare_places(early, "last", "keyword"),
            "late_last_over_next": subtract_places(late, "last", "next"),
            "late_next_over_mean": subtract_places(late, "next", "mean"),
            "late_key_share": compare_places(late, "keyword", "last"),
            "first_key_over_next": subtract_places(soon, "keyword", "next"),
            "first_next_over_mean": subtract_places(soon, "next", "mean"),
            "first_last_share": compare_places(soon, "last", "keyword"),
            "begun_at": measure_each(runs["one direction"], find_begun),
        }
        columns = {
            "at the first checkpoint": average_places(soon),
            f"first above {BEGUN} accuracy": average_places(early),
            "at the end": average_places(late),
        }
        return Findings.of(
            {"snell.keyword": measures},
            Table.of_columns("Log-odds γ, one direction", "attention at", columns),
            Figure.of(
                "snell-keyword",
                "Mean log-odds of a positive label if all attention were at the keyword, right"
                " after it, everywhere alike, or at the last word, over training under"
                f" uniform attention; means and 95 % intervals over {len(ahead)} and"
                f" {len(found['both directions'])} seeds.",
                *(_draw_places(name, courses) for name, courses in found.items()),
            ),
            f"The rule takes as early the first checkpoint above {BEGUN} accuracy, which may be"
            " later than the paper's beginning; the first checkpoint of all is in the table.",
        )


def subtract_places(courses: list[Places], a: str, b: str) -> Estimate:
    """How far one place is above another, over seeds."""
    return measure_each(courses, lambda c: c[a] - c[b])


def compare_places(courses: list[Places], a: str, b: str) -> Estimate:
    """How far a place is from the mean, as a share of how far another one is."""
    return measure_each(courses, lambda c: abs(c[a] - c["mean"]) / max(abs(c[b] - c["mean"]), 1e-9))


def average_places(courses: list[Places]) -> dict[str, Estimate]:
    """By place, over seeds."""
    return {place: Estimate.of(course[place] for course in courses) for place in PLACES}


def _draw_places(name: str, courses: list[dict[int, Places]]) -> Panel:
    updates = sorted(set.intersection(*(set(course) for course in courses)))
    found = {at: average_places([course[at] for course in courses]) for at in updates}
    lines = Line.of_each({place: {at: found[at][place] for at in found} for place in PLACES})
    return Panel(name, "update", "log-odds γ", lines)
