"""snell2021, section 6.1: where the knowledge of a keyword is kept (Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from regard.display import Figure, Line, Panel, Table
from regard.instruments.looked import batches_of, log_odds, looked
from regard.papers.experiment import Experiment, Findings, Plan, Runs, Scale, experiments, seeds
from regard.runs import Run, RunConfig
from regard.statistics import Estimate
from regard.tasks import Batch
from regard.tasks.keyword import Keyword

PLACES = ("keyword", "next", "mean", "last")
SENTENCES = 400
BEGUN = 0.75  # accuracy from which on a model has begun to learn
POSITIVE = "positive"


def keyword(count: int, **settings: object) -> list[RunConfig]:
    """Classifiers under uniform attention, in one direction unless told otherwise."""
    return seeds(
        count, "keyword", "snell-classifier", attention="uniform", report="last", **settings
    )


def places(run: Run, checkpoint: int, batches: Sequence[Batch]) -> dict[str, float]:
    """Mean γ at the keyword, right after it, over all positions, and at the last one.

    Over positive sentences whose keyword has a word after it that is not the last.
    """
    task = cast(Keyword, run.task())
    positive = task.target_vocabulary.numbers[POSITIVE]
    scores = looked(run.model(checkpoint), batches, log_odds(positive))
    at = np.concatenate([np.asarray(batch.alignment)[:, 0] for batch in batches])
    gamma = scores.values[:, 0]  # (sample, source)
    rows = np.flatnonzero((at >= 0) & (at < gamma.shape[1] - 2))
    gamma, at = gamma[rows], at[rows]
    every = np.arange(len(rows))
    return {
        "keyword": float(gamma[every, at].mean()),
        "next": float(gamma[every, at + 1].mean()),
        "mean": float(gamma.mean()),
        "last": float(gamma[:, -1].mean()),
    }


def begun(run: Run) -> int:
    """The first kept checkpoint at which the model has begun to learn; else the last."""
    updates, accuracy = run.curve("accuracy", "validation")
    kept = run.checkpoints()
    reached = [u for u, a in zip(updates, accuracy, strict=True) if a > BEGUN and u in kept]
    return reached[0] if reached else kept[-1]


@experiments.register("snell2021/keyword")
class KeywordExperiment(Experiment):
    """Knowledge that is local at first wanders to the end of the sentence."""

    title = "A keyword under uniform attention"
    about = "Log-odds γ at the keyword, after it, on average, and at the end, over training."
    claims = ("snell.keyword",)

    def plan(self, scale: Scale) -> Plan:
        """In one direction, of which the paper's four places speak, and in both."""
        full = scale == "full"
        settings = {"updates": 3000} if full else {"hidden": 128, "updates": 1500}
        return {
            "one direction": keyword(5 if full else 2, bidirectional=False, **settings),
            "both directions": keyword(1, **settings),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """γ at the four places at every checkpoint."""
        found = {name: [self._course(run) for run in group] for name, group in runs.items()}
        ahead = found["one direction"]
        early = [
            course[begun(run)] for run, course in zip(runs["one direction"], ahead, strict=True)
        ]
        late = [course[max(course)] for course in ahead]
        soon = [course[sorted(course)[1]] for course in ahead]  # the first checkpoint that learned

        def gap(courses: list[dict[str, float]], a: str, b: str) -> Estimate:
            return Estimate.of(course[a] - course[b] for course in courses)

        def share(courses: list[dict[str, float]], a: str, b: str) -> Estimate:
            """How far a place is from the mean, as a share of how far another one is."""
            return Estimate.of(
                abs(c[a] - c["mean"]) / max(abs(c[b] - c["mean"]), 1e-9) for c in courses
            )

        measures = {
            "early_key_over_next": gap(early, "keyword", "next"),
            "early_next_over_mean": gap(early, "next", "mean"),
            "early_last_share": share(early, "last", "keyword"),
            "late_last_over_next": gap(late, "last", "next"),
            "late_next_over_mean": gap(late, "next", "mean"),
            "late_key_share": share(late, "keyword", "last"),
            "first_key_over_next": gap(soon, "keyword", "next"),
            "first_next_over_mean": gap(soon, "next", "mean"),
            "first_last_share": share(soon, "last", "keyword"),
            "begun_at": Estimate.of(begun(run) for run in runs["one direction"]),
        }
        return Findings(
            {"snell.keyword": measures},
            (self._table(soon, early, late),),
            (
                Figure(
                    "snell-keyword",
                    "Mean log-odds of a positive label if all attention were at the keyword, right"
                    " after it, everywhere alike, or at the last word, over training under"
                    f" uniform attention; means and 95 % intervals over {len(ahead)} and"
                    f" {len(found['both directions'])} seeds.",
                    tuple(self._panel(name, courses) for name, courses in found.items()),
                ),
            ),
            (
                f"The rule takes as early the first checkpoint above {BEGUN} accuracy, which may be"
                " later than the paper's beginning; the first checkpoint of all is in the table.",
            ),
        )

    def _course(self, run: Run) -> dict[int, dict[str, float]]:
        batches = batches_of(run.task(), SENTENCES)
        return {at: places(run, at, batches) for at in run.checkpoints()}

    def _table(self, *when: list[dict[str, float]]) -> Table:
        rows = tuple(
            (place, *(Estimate.of(c[place] for c in courses) for courses in when))
            for place in PLACES
        )
        columns = ("at the first checkpoint", f"first above {BEGUN} accuracy", "at the end")
        return Table("Log-odds γ, one direction", ("attention at", *columns), rows)

    def _panel(self, name: str, courses: list[dict[int, dict[str, float]]]) -> Panel:
        lines = []
        updates = sorted(set.intersection(*(set(course) for course in courses)))
        for colour, place in enumerate(PLACES):
            found = [Estimate.of(course[at][place] for course in courses) for at in updates]
            lines.append(
                Line(
                    place,
                    tuple(map(float, updates)),
                    tuple(e.mean for e in found),
                    tuple(e.low for e in found),
                    tuple(e.high for e in found),
                    colour,
                )
            )
        return Panel(name, "update", "log-odds γ", tuple(lines))
