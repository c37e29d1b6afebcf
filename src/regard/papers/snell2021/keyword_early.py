"""snell2021, section 6.1 again: the beginning, seen often enough to tell what comes first."""

from __future__ import annotations

from collections.abc import Mapping

from regard.display import Figure, Line, Panel, Table
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, measure_each
from regard.papers.snell2021.keyword import (
    PLACES,
    Places,
    average_places,
    compare_places,
    follow_places,
    plan_keyword,
    subtract_places,
)
from regard.statistics import Estimate

OFTEN = tuple(range(0, 51, 2))  # checkpoints of the beginning
FIRST = 5  # the seeds below it were looked at before this rule was written
STANDS_OUT = 1.0  # nats by which some place is above or below the mean: something is known
FURTHEST = 60  # updates that the figure of the beginning shows


@EXPERIMENTS.register("snell2021/keyword-early")
class KeywordEarlyExperiment(Experiment):
    """Which place knows of the keyword first."""

    title = "A keyword under uniform attention: what comes first"
    about = (
        "The experiment above waits until a model has begun to be right, when knowledge has already"
        " left the keyword in most seeds. Here a checkpoint is kept every second update, and early"
        f" is the first at which any of the four places stands out from the mean by {STANDS_OUT:g}"
        " nat, whichever place that is. The seeds are others than those above, which had been seen."
    )
    claims = ("snell.keyword-early",)

    def plan(self, scale: Scale) -> Plan:
        """In one direction, with checkpoints close together at the beginning."""
        settings = {"updates": 3000} if scale == "full" else {"hidden": 128, "updates": 1500}
        seeds = range(FIRST, FIRST + count_seeds(scale))
        runs = plan_keyword(seeds, bidirectional=False, milestones=OFTEN, **settings)
        return {"one direction": runs}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """γ at the four places when something is first known, and at the end."""
        courses = [follow_places(run) for run in runs["one direction"]]
        chosen = [find_first_known(course) for course in courses]
        early = [course[at] for course, at in zip(courses, chosen, strict=True)]
        late = [course[max(course)] for course in courses]
        measures = {
            "early_key_over_next": subtract_places(early, "keyword", "next"),
            "early_next_over_mean": subtract_places(early, "next", "mean"),
            "early_last_share": compare_places(early, "last", "keyword"),
            "late_last_over_next": subtract_places(late, "last", "next"),
            "late_next_over_mean": subtract_places(late, "next", "mean"),
            "late_key_share": compare_places(late, "keyword", "last"),
            "known_at": measure_each(chosen, float),
        }
        columns = {"something is known": average_places(early), "at the end": average_places(late)}
        return Findings.of(
            {"snell.keyword-early": measures},
            Table.of_columns("Log-odds γ, what comes first", "attention at", columns),
            Figure.of(
                "snell-keyword-early",
                "Log-odds of a positive label above their mean over all positions, at the keyword,"
                " right after it, and at the last word, in the first updates; means and 95 %"
                f" intervals over {len(courses)} seeds.",
                draw_beginning(courses),
            ),
        )


def find_first_known(course: Mapping[int, Places]) -> int:
    """The first checkpoint at which a place stands out from the mean; else the last."""
    for at in sorted(course):
        places = course[at]
        if max(abs(places[place] - places["mean"]) for place in PLACES) >= STANDS_OUT:
            return at
    return max(course)


def draw_beginning(courses: list[dict[int, Places]]) -> Panel:
    """Each place above the mean, over the first updates."""
    shared = set.intersection(*(set(course) for course in courses))
    updates = sorted(at for at in shared if at <= FURTHEST)
    lines = (
        Line.of(
            place,
            updates,
            (Estimate.of(c[at][place] - c[at]["mean"] for c in courses) for at in updates),
            colour,
        )
        for colour, place in enumerate(place for place in PLACES if place != "mean")
    )
    return Panel.of("The beginning", "update", "log-odds γ above their mean", *lines)
