"""A Transformer on four tasks: what its attention is made of, and what is known first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.components import breakdown
from regard.instruments.components._terms import TERMS
from regard.papers.across import order
from regard.papers.across._transformers import (
    CROSSING,
    plan_transformer_escan,
    plan_transformer_lookup,
    plan_transformer_multi30k,
    plan_transformer_reversal,
)
from regard.papers.across.hf import share_right
from regard.papers.across.transformer_lexical import Gold, draw_layer, follow_layers
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, draw_shares, subtract
from regard.papers.snell2021._data_sets import SETS, find_sets
from regard.recordings.record import record
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks.vocabulary import EOS

REAL = "multi30k"
SAMPLES = {"quick": 100, "full": 400}
SPLITS = {"lookup": "all"}  # 64 atomic rows and their compositions are all there is
TIMELESS = tuple(term for term in TERMS if "temporal" not in term)


@EXPERIMENTS.register("across/transformer-tasks")
class TransformerTasksExperiment(Experiment):
    """The nine terms on four tasks, and β against α on two of them."""

    title = "A Transformer on reversal, eSCAN, lookup tables and Multi30k"
    about = (
        "Transformers of two layers, four heads and 64 units. The shares of the nine terms in the"
        " attentions to the source, as the mean of both layers, with the teacher's words fed. On"
        " reversal and Multi30k β and α of each layer are followed through training, as on eSCAN in"
        " transformer-lexical; the right position is the mirrored one, and in translation the one"
        " that IBM model 1 finds. eSCAN's and the lookup tables' runs are those of"
        " transformer-terms and of transformer-guidance, unguided."
    )
    claims = ("x.transformer-tasks", "x.transformer-leads")
    wants: ClassVar[tuple[str, ...]] = (SETS[REAL].folder,)

    def _find_folder(self) -> Path | None:
        return find_sets(self.data).get(REAL)

    def lacks(self, scale: Scale) -> str | None:
        """The sentences that are translated do not come with Regard."""
        if self._find_folder():
            return None
        title, folder = SETS[REAL].title, SETS[REAL].folder
        return f"{title}, which does not come with Regard: --data {folder}=FOLDER"

    def plan(self, scale: Scale) -> Plan:
        """Four tasks, two of which other experiments train."""
        found = {
            "reversal": plan_transformer_reversal(scale),
            "escan": plan_transformer_escan(scale),
            "lookup": plan_transformer_lookup(scale, 0),
        }
        folder = self._find_folder()
        return found | ({REAL: plan_transformer_multi30k(folder, scale)} if folder else {})

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Shares by task, and half-way times of β and α."""
        own: Measures = {}
        shares: dict[str, Mapping[str, Estimate]] = {}
        for task, group in runs.items():
            seen = [record_task(task, run, SAMPLES[scale]) for run in group]
            shares[task] = average_terms(seen)
            own |= {f"{task}_{t.replace('-', '_')}": value for t, value in shares[task].items()}
            own[f"timeless_{task}"] = add_terms(shares[task], TIMELESS)
            own[f"accuracy_{task}"] = Estimate.share(map(share_right, seen))
        time, later = (shares[task][TERMS[0]] for task in ("reversal", REAL))
        own["less_time"] = subtract(time, later, CHANGE)
        own["more_timeless"] = subtract(own[f"timeless_{REAL}"], own["timeless_reversal"], CHANGE)
        leads: Measures = {}
        panels: list[Panel] = []
        for task in ("reversal", REAL):
            found, drawn = time_layers(task, runs[task])
            leads |= found
            panels += drawn
        return Findings.of(
            {"x.transformer-tasks": own, "x.transformer-leads": leads},
            Table.of_columns("Shares of the nine terms, mean of both layers", "term", shares),
            Table.of("Updates to half of the way, and who leads", leads),
            draw_terms(shares),
            Figure(
                "x-transformer-leads",
                "What is right first in each layer of a Transformer; means and 95 % intervals over"
                " seeds.",
                tuple(panels),
            ),
        )


def record_task(task: str, run: Run, n: int) -> Recording:
    """What a run does on its task when the teacher's words are fed."""
    return record(run, n=n, inputs="teacher", sites="cross", split=SPLITS.get(task))


def average_terms(seen: Sequence[Recording]) -> dict[str, Estimate]:
    """The share of each term, as the mean over the attentions to the source, seed by seed."""
    sites = [breakdown(seen, site=site).estimates() for site in CROSSING]
    return {
        term: Estimate.of(np.mean([site[term].values for site in sites], axis=0), CHANGE)
        for term in TERMS
    }


def add_terms(shares: Mapping[str, Estimate], terms: Sequence[str]) -> Estimate:
    """Several shares together, seed by seed."""
    return Estimate.of(np.sum([shares[term].values for term in terms], axis=0), CHANGE)


def align_backwards(recording: Recording) -> Array:
    """The right positions of reversal: the mirrored one of each letter. -> (sample, target)"""
    letters = recording["encoder.mask"] & (recording["encoder.words"] != EOS)
    steps = np.arange(recording["targets"].shape[1])
    found: Array = np.maximum(letters.sum(axis=1)[:, None] - 1 - steps, -1)
    return found


def time_layers(task: str, runs: Sequence[Run]) -> tuple[Measures, list[Panel]]:
    """Half-way times of β and α in each layer, who leads, and where they end."""
    courses = []
    for run in runs:
        gold: Gold = align_backwards if task == "reversal" else partial(order.align_words, run)
        courses.append(follow_layers(run, gold))
    own: Measures = {}
    panels = []
    for layer, site in enumerate(CROSSING):
        halves = [seed[layer].find_halves() for seed in courses]
        last = [seed[layer].values[-1] for seed in courses]
        end = f"{task}_{layer}"
        own[f"half_lexical_{end}"] = Estimate.of(half[0] for half in halves)
        own[f"half_attention_{end}"] = Estimate.of(half[1] for half in halves)
        own[f"lead_{end}"] = Estimate.of(half[1] - half[0] for half in halves)
        own[f"final_lexical_{end}"] = Estimate.share(found[0] for found in last)
        own[f"final_attention_{end}"] = Estimate.share(found[1] for found in last)
        lines = draw_layer([seed[layer] for seed in courses])
        panels.append(draw_shares(f"{task}, {site}", "updates", "share", *lines))
    return own, panels


def draw_terms(shares: Mapping[str, Mapping[str, Estimate]]) -> Figure:
    """The nine terms, a panel for each task."""
    count = next(iter(next(iter(shares.values())).values())).n
    highest = max(share.high for own in shares.values() for share in own.values())
    panels = tuple(
        Panel(task, "term", "share", (Bars.of("", own),), (0, 1.05 * highest))
        for task, own in shares.items()
    )
    return Figure(
        "x-transformer-tasks",
        "Shares of the nine terms in a Transformer's attention to the source, the mean of both"
        f" layers; {count} seeds.",
        panels,
    )
