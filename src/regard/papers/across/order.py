"""snell2021's order on aitken2021's tasks: what is right first, β, α, or μ·μ?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.display import Figure, Line, Table
from regard.instruments.components import breakdown
from regard.instruments.components._terms import TERMS
from regard.instruments.words import ibm1
from regard.papers.across._positions import share_attended, share_lexical
from regard.papers.aitken2021.escan import plan_escan
from regard.papers.aitken2021.one_to_one import plan_one_to_one
from regard.papers.aitken2021.translation import CORPUS, WithCorpus, plan_translation
from regard.papers.framework import EXPERIMENTS, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import draw_shares
from regard.recordings.record import record
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.runs import Run
from regard.statistics import Estimate

COURSES = ("lexical", "attention", "time")  # β, α, μ·μ
LABELS = ("β at the right word", "α at the right position", "share of μ·μ")
SAMPLES = 200
# Updates at which a checkpoint is kept: dense where learning happens, even in logarithm after.
MILESTONES = (0, 10, 20, 30, 40, 60, 80, 100, 130, 160, 200, 250, 300, 400, 500, 700, 1000)


@EXPERIMENTS.register("across/lexical-first")
class LexicalFirstExperiment(WithCorpus):
    """β, α and μ·μ over the training of AED."""

    title = "Lexical knowledge before attention?"
    about = (
        "AED on three tasks, looked at through its training: how often the lexical probe β is"
        " largest at the right word, how often attention is largest at the right position, and the"
        " share of μ·μ. Each course is timed by the update at which it has gone half of its way"
        " from the untrained network to its best. In translation the right position is the one that"
        " IBM model 1 finds."
    )
    claims = ("x.lexical-first",)

    def plan(self, scale: Scale) -> Plan:
        """AED with many checkpoints."""
        kept = {"milestones": MILESTONES}
        corpus = self.data.get(CORPUS)
        return {
            "one-to-one": plan_one_to_one("aed", scale, **kept),
            "escan": plan_escan("aed", scale, **kept),
            "translation": plan_translation("aed", scale, corpus, **kept),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Half-way times and their differences."""
        own: Measures = {}
        panels = []
        for name in runs:
            courses = [follow(run) for run in runs[name]]
            halves = [course.find_halves() for course in courses]
            key = name.replace("-", "_")
            for k, what in enumerate(COURSES):
                own[f"half_{what}_{key}"] = Estimate.of(half[k] for half in halves)
            own[f"lead_{key}"] = Estimate.of(half[1] - half[0] for half in halves)
            own[f"time_after_attention_{key}"] = Estimate.of(half[2] - half[1] for half in halves)
            panels.append(draw_shares(name, "updates", "share", *draw_courses(courses)))
        figure = Figure(
            "x-lexical-first",
            "What is right first in AED's training; means and 95 % intervals over seeds.",
            tuple(panels),
        )
        table = Table.of("Updates to half of the way, and who leads", own)
        return Findings({"x.lexical-first": own}, (table,), (figure,), (self.name_corpus(scale),))


@dataclass(frozen=True)
class Course:
    """Three shares of one run at each of its checkpoints."""

    updates: tuple[int, ...]
    values: Array  # (checkpoint, course)

    def find_halves(self) -> list[float]:
        """For each course the update at which half of the way to its best is gone, interpolated."""
        return [find_half(self.updates, course) for course in self.values.T]


def find_half(updates: Sequence[int], course: Array) -> float:
    """The first update at which a course is half-way from its first to its largest value."""
    goal = (course[0] + course.max()) / 2
    after = int(np.argmax(course >= goal))
    if after == 0:  # it never rises
        return float(updates[-1])
    share = (goal - course[after - 1]) / (course[after] - course[after - 1])
    return float(updates[after - 1] + share * (updates[after] - updates[after - 1]))


def follow(run: Run) -> Course:
    """Record a run at each of its checkpoints."""
    updates = tuple(run.checkpoints())
    return Course(updates, np.array([look(run, update) for update in updates]))


def look(run: Run, update: int) -> tuple[float, float, float]:
    """β, α and μ·μ of one checkpoint."""
    recording = record(run, n=SAMPLES, checkpoint=update, inputs="teacher", also=("lexical",))
    gold = None if "alignment" in recording.names() else align_words(run, recording)
    time = breakdown(recording).shares[TERMS[0]]
    return share_lexical(recording, gold), share_attended(recording, gold), time


def align_words(run: Run, recording: Recording) -> Array:
    """Source positions by IBM model 1 of the run's training rows. -> (sample, target)"""
    source, target = recording.words("encoder"), recording.words("decoder")
    read = recording.sample  # one sample at a time: 200 of them
    names = ["encoder.words", "encoder.mask", "targets", "decoder.mask"]
    pairs = []
    for number in range(len(recording)):
        arrays = read(number, names)
        pairs.append((
            [source[w] for w in arrays["encoder.words"][arrays["encoder.mask"]]],
            [target[w] for w in arrays["targets"][arrays["decoder.mask"]]],
        ))  # fmt: skip
    places = ibm1(run).align(pairs)
    found = np.full((len(pairs), max(map(len, places))), -1)
    for row, place in zip(found, places, strict=True):
        row[: len(place)] = place
    return found


def draw_courses(courses: Sequence[Course]) -> tuple[Line, ...]:
    """One line per course, with intervals over runs."""
    return tuple(
        Line.of(label, courses[0].updates, (
            Estimate.share(course.values[at, k] for course in courses)
            for at in range(len(courses[0].updates))
        ), k)
        for k, label in enumerate(LABELS)
    )  # fmt: skip
