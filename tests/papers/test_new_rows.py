"""Rows that were added later: made runs whose verdict is known, in both directions."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from made import SEEDS, MadeResult, make_runs, measure, number
from scipy import stats

from regard.display import Figure, Panel
from regard.instruments.components._terms import TERMS
from regard.models.transformer import Transformer, TransformerConfig
from regard.papers import EXPERIMENTS, ledger
from regard.papers.across import (
    hf,
    seeds,
    transformer_guidance,
    transformer_lexical,
    transformer_tasks,
)
from regard.papers.across import transformer_terms as terms
from regard.papers.across._positions import count_found
from regard.papers.across._transformers import CROSSING, plan_transformer_escan
from regard.papers.across.hf import WARMUP, find_rate
from regard.papers.across.order import Course
from regard.papers.aitken2021 import escan_recipes, own_predictions
from regard.papers.aitken2021.features import Features
from regard.papers.baan2019 import tables
from regard.papers.chapter36.addition import draw_distribution, share_near
from regard.papers.snell2021 import keyword_early
from regard.recordings import Recording
from regard.recordings.recording import Metadata
from regard.recordings.site import Site
from regard.recordings.storage import InMemory
from regard.statistics import Estimate
from regard.tasks import Batch

SPREAD = (-0.01, 0.0, 0.01)


def near(value: float) -> Estimate:
    return Estimate.of(value + step for step in SPREAD)


def judge(claim: str, findings: Any) -> str:
    measures = findings.measures[claim]
    ledger()[claim].check_measures(measures, partial=False)
    return ledger()[claim].verdict(measures)


# Seeds: against scipy's own distribution, and known cases.


def test_power_is_that_of_the_t_test() -> None:
    values, line, n = (1.0, 2.0, 3.0, 4.0), 1.0, 7
    shift = (2.5 - line) / np.std(values, ddof=1) * math.sqrt(n)
    bound = stats.t.ppf(0.975, n - 1)
    wanted = stats.nct.sf(bound, n - 1, shift) + stats.nct.cdf(-bound, n - 1, shift)
    assert seeds.find_power(values, line, n) == pytest.approx(wanted, abs=1e-9)


def test_seeds_that_are_needed() -> None:
    apart = (9.9, 10.0, 10.1)
    assert seeds.count_needed(apart, 0.0) == 2
    assert seeds.count_needed((1.0, 1.0, 1.0), 0.5) == 2  # no spread at all
    assert seeds.count_precise((1.0, 1.0, 1.0)) == 2
    assert seeds.count_needed((0.0, 1.0), 0.5) == seeds.MOST  # the mean is on the line
    # One standard deviation from the line: 10 seeds have power .803, 9 have .7495 (tables).
    assert seeds.count_needed((0.0, 1.0, 2.0), 0.0) == 10
    assert seeds.count_precise((9.0, 10.0, 11.0)) == 7  # 2.447 / √7 = .925 ≤ 1 < 2.571 / √6


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [((1.0, 1.0, 1.0, 1.0), "reproduced"), ((1.0, 1.0, 1.0, 90.0), "partly"),
     ((90.0, 90.0, 90.0, 90.0), "not reproduced")],
)  # fmt: skip
def test_headlines_short_of_seeds(
    lines: tuple[float, ...], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {
        paper: seeds.Headline(paper, "m", line, 4)
        for paper, line in zip(seeds.HEADLINES, lines, strict=True)
    }
    row = {"measures": {"m": {"values": [0.8, 1.0, 1.3]}}, "headline": "m", "scale": "full"}
    monkeypatch.setattr(seeds, "HEADLINES", made)
    monkeypatch.setattr(seeds, "published_rows", lambda: dict.fromkeys(made, row))
    assert judge("x.seeds", seeds.SeedsExperiment().measure({}, "full")) == verdict


# Addition: what one run may be.


def test_seeds_near_the_source() -> None:
    found = Estimate.share([0.95, 0.9, 0.5, 0.1])
    assert share_near(found).mean == 0.5
    (panel,) = draw_distribution({"read": found}, 0.98).panels
    assert panel.marks[0].y == (0.1, 0.5, 0.9, 0.95)  # type: ignore[union-attr]


# Keyword: what comes first.


def course(**first: float) -> dict[int, dict[str, float]]:
    nothing = {"keyword": 0.1, "next": 0.0, "mean": 0.0, "last": -0.1}
    late = {"keyword": 1.0, "next": 8.0, "mean": 0.5, "last": 12.0}
    return {0: nothing, 2: {"mean": 0.0, **first}, 4: late, 3000: late}


def test_the_first_place_that_stands_out_is_early() -> None:
    assert keyword_early.find_first_known(course(keyword=0.5, next=0.1, last=0.0)) == 4
    assert keyword_early.find_first_known(course(keyword=0.5, next=-1.1, last=0.0)) == 2
    flat = {0: {"keyword": 0.0, "next": 0.0, "mean": 0.0, "last": 0.0}}
    assert keyword_early.find_first_known({**flat, 9: flat[0]}) == 9


@pytest.mark.parametrize(
    ("first", "verdict"),
    [({"keyword": 2.0, "next": 1.0, "last": 0.1}, "reproduced"),
     ({"keyword": 2.0, "next": 1.0, "last": 1.5}, "partly"),
     ({"keyword": 1.0, "next": 2.0, "last": 0.1}, "not reproduced")],
)  # fmt: skip
def test_where_a_keyword_is_known_first(
    first: dict[str, float], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(run: float) -> dict[int, dict[str, float]]:
        return course(**{place: value + run for place, value in first.items()})

    monkeypatch.setattr(keyword_early, "follow_places", follow)
    runs: Any = {"one direction": [0.0, 0.01, 0.02]}
    findings = keyword_early.KeywordEarlyExperiment().measure(runs, "full")
    assert findings.measures["snell.keyword-early"]["known_at"].values == (2, 2, 2)
    assert judge("snell.keyword-early", findings) == verdict


def test_the_seeds_of_the_beginning_are_new() -> None:
    (runs,) = EXPERIMENTS["snell2021/keyword-early"]().plan("full").values()
    (old, _) = EXPERIMENTS["snell2021/keyword"]().plan("full").values()
    assert not {run.seed for run in runs} & {run.seed for run in old} and len(runs) == 5


# The fast recipe on other tables.


def lookup_runs(count: int, **metrics: float) -> list[Any]:
    runs = []
    for seed in range(1, count + 1):
        task = SimpleNamespace(tables_seed=seed)
        shaken = {k: min(1.0, v + 0.01 * (seed % 3)) for k, v in metrics.items()}
        runs.append(SimpleNamespace(config=SimpleNamespace(seed=seed, task=task), metrics=shaken))
    return runs


@pytest.mark.parametrize(
    ("nc", "hc", "verdict"),
    [(0.8, 1.0, "reproduced"), (0.65, 1.0, "partly"), (0.8, 0.5, "not reproduced")],
)
def test_the_mean_over_sets_decides(nc: float, hc: float, verdict: str) -> None:
    group = lookup_runs(10, HI=1.0, HC=hc, HT=0.9, NC=nc)
    runs: Any = {"fast": group, "paper": group[:3], "one set": group[:5]}
    findings = tables.TablesExperiment().measure(runs, "full")
    assert judge("baan.fast-tables", findings) == verdict
    assert "<svg" in findings.figures[0].svg()


def test_what_the_tables_contribute() -> None:
    over, one = Estimate.of([0.0, 2.0]), Estimate.of([0.0, 1.0])  # variances 2 and .5
    assert tables.share_of_tables(over, one).mean == pytest.approx(0.75)
    assert tables.share_of_tables(one, over).mean == 0
    assert tables.share_of_tables(Estimate.of([1.0, 1.0]), one).mean == 0


def test_judged_tables_are_none_that_were_looked_at() -> None:
    plan = tables.TablesExperiment().plan("full")
    used: set[Any] = {run.task.tables_seed for group in plan.values() for run in group}  # type: ignore[attr-defined]
    assert used == set(range(1, 11)) and len(plan["fast"]) == 10 and len(plan["paper"]) == 3
    assert {run.training.batch for run in plan["paper"]} == {1}


# AED on its own predictions.


@pytest.mark.parametrize(
    ("turns", "axes", "verdicts"),
    [(1.1, 0.95, ("reproduced", "reproduced")), (0.6, 0.85, ("partly", "partly"))],
)
def test_turns_and_axes_decide(
    turns: float, axes: float, verdicts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(seen: Any) -> Any:
        """Other paths of the other condition, which fail every rule on turns and axes."""
        turned, held = (turns, axes) if seen[0].name == "aed" else (0.1, 0.2)
        ways = {
            "diagonal": near(0.98), "direction": near(1), "turns": near(turned),
            "adjacent": near(1), "explained 2": near(held - 0.1), "explained 3": near(held),
        }  # fmt: skip
        figure = Figure("paths", "paths", (Panel(seen[0].name, "x", "y", ()),))
        return SimpleNamespace(estimates=lambda: ways, figure=lambda: figure)

    cloud = SimpleNamespace(estimates=lambda: {"explained 2": near(0.95)})
    shares = SimpleNamespace(estimates=lambda: {"temporal-temporal": near(0.9)})
    monkeypatch.setattr(own_predictions, "trajectories", draw)
    monkeypatch.setattr(own_predictions, "word_clouds", lambda seen: cloud)
    monkeypatch.setattr(own_predictions, "breakdown", lambda seen: shares)
    monkeypatch.setattr(own_predictions, "record_runs", lambda runs: runs)
    runs: Any = {
        name: [SimpleNamespace(name=name, metrics={"token_accuracy": 0.99})] * 3
        for name in ("aed", "aed throughout")
    }
    findings = own_predictions.OwnPredictionsExperiment().measure(runs, "full")
    claims = ("ait.temporal-aed-own", "ait.pcs-own")
    assert tuple(judge(claim, findings) for claim in claims) == verdicts
    others = ("ait.temporal-aed-throughout", "ait.pcs-throughout")
    assert [judge(claim, findings) for claim in others] == ["partly", "partly"]
    assert [row[1].mean > row[2].mean for row in findings.tables[0].rows if row[0] == "turns"] == [
        True
    ]
    titles = [panel.title for panel in findings.figures[0].panels]
    assert titles == ["own at the end: aed", "own throughout: aed throughout"]


def test_own_predictions_are_fed_as_the_rows_say() -> None:
    plan = own_predictions.OwnPredictionsExperiment().plan("full")
    fed = {name: {run.training.forcing for run in runs} for name, runs in plan.items()}
    assert fed == {"aed": {"scheduled"}, "aed throughout": {"never"}}
    assert len(plan["aed throughout"]) == 5


# eSCAN by other recipes.


@pytest.mark.parametrize(
    ("ao", "time", "verdicts"),
    [
        (0.985, 0.80, ("reproduced", "reproduced")),
        (0.96, 0.765, ("partly", "partly")),
        (0.90, 0.40, ("not reproduced", "not reproduced")),
    ],
)
def test_accuracy_and_time_decide_on_escan(
    ao: float, time: float, verdicts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(seen: Any) -> Any:
        """AED has a little less of time, and words of its own where AO has few."""
        share = time if seen[0].name == "ao" else time - 0.01
        absolute = np.array([share, 0.06, 0.06, *[(0.88 - share) / 6] * 6])
        shares = SimpleNamespace(
            estimates=lambda: {"temporal-temporal": near(share)},
            seeds=[SimpleNamespace(absolute=absolute)] * 3,
        )
        left = SimpleNamespace(estimates=lambda: {"drop": near(0.9)})
        readouts = SimpleNamespace(estimates=lambda: {"dictionary": near(0.8)})
        return Features(shares, left, readouts)  # type: ignore[arg-type]

    monkeypatch.setattr(escan_recipes.Features, "of", find)
    monkeypatch.setattr(escan_recipes, "record_runs", lambda runs: runs)
    monkeypatch.setattr(escan_recipes, "measure_twice", lambda seen: {"first": near(0.5)})
    places = {"aed": (0.9, 0.1), "ao": (0.3, 0.7)}
    monkeypatch.setattr(escan_recipes, "share_at_ends", lambda seen: places[seen.name][0])
    monkeypatch.setattr(escan_recipes, "share_before_twice", lambda seen: places[seen.name][1])
    runs: Any = {
        name: [SimpleNamespace(name=name, metrics={"token_accuracy": right})] * 3
        for name, right in (("aed", 0.99), ("ao", ao))
    }
    findings = escan_recipes.EscanRecipesExperiment().measure(runs, "full")
    claims = ("ait.solve-escan", "ait.breakdown-escan")
    assert tuple(judge(claim, findings) for claim in claims) == verdicts
    own = findings.measures["ait.breakdown-escan"]
    assert own["temporal_ao"].mean == pytest.approx(time)
    assert own["temporal_aed"].mean == pytest.approx(time - 0.01)
    assert own["three_ao"].mean == pytest.approx(time + 0.12)
    assert own["phrase_end_aed"].mean == pytest.approx(0.9)
    assert own["before_twice_ao"].mean == pytest.approx(0.7)


def test_words_that_twice_decides_are_counted() -> None:
    """`run twice . run`, whose second `run` and the period after it hang on `twice`."""
    names = ("<PAD>", "<SOS>", "<EOS>", "run", "twice", ".")
    arrays = {
        "encoder.words": np.array([[3, 4, 5, 3], [3, 4, 5, 3]]),
        "encoder.mask": np.ones((2, 4), bool),
        "alignment": np.array([[0, 1, 2, 3, -1]] * 2),
        "targets": np.array([[3, 3, 5, 3, 2]] * 2),
        "predictions": np.array([[3, 3, 5, 5, 5], [3, 5, 3, 3, 2]]),
        "decoder.mask": np.array([[True] * 5, [True] * 4 + [False]]),
    }
    recording = Recording(InMemory(arrays), Metadata(names, names, {"attention": Site()}))
    assert escan_recipes.mark_twice(recording, first_wrong=True).tolist() == [False, True]
    found = escan_recipes.measure_twice([recording] * 2)
    assert found["steps_at_twice_ao"].mean == pytest.approx(4 / 9)
    assert found["first_wrong_at_twice_ao"].mean == 0.5
    right = {**arrays, "predictions": arrays["targets"]}
    never = Recording(InMemory(right), Metadata(names, names, {"attention": Site()}))
    assert list(escan_recipes.measure_twice([never])) == ["steps_at_twice_ao"]


def test_recipes_of_escan_have_five_seeds_and_are_short_at_quick_scale() -> None:
    made = escan_recipes.EscanRecipesExperiment()
    full, quick = made.plan("full"), made.plan("quick")
    assert {name: [run.seed for run in runs] for name, runs in full.items()} == {
        "aed": [0, 1, 2, 3, 4], "ao": [0, 1, 2, 3, 4],
    }  # fmt: skip
    updates = {name: runs[0].training.updates for name, runs in quick.items()}
    assert updates == {"aed": 1500, "ao": 2000}


# Transformers.


@pytest.mark.parametrize(
    ("best", "lost", "verdict"),
    [(0.7, 0.3, "reproduced"), (0.7, 0.0, "partly"), (0.3, 0.3, "not reproduced")],
)
def test_the_most_timed_head_decides(
    best: float, lost: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def share_heads(seed: int) -> dict[tuple[str, int], float]:
        return {(site, head): 0.25 for site in CROSSING for head in range(4)} | {
            ("decoder.1.cross", seed): best,
            ("decoder.0.cross", 3): 0.1,
        }

    def ablate(run: Any, n: int, site: str, head: int) -> Any:
        cost = lost if (site, head) == ("decoder.1.cross", run.seed) else 0.0
        gone = {("remove", "temporal", "alignment"): 0.9 - cost - run.seed / 1000}
        return SimpleNamespace(first=SimpleNamespace(baseline=0.9, accuracy=gone))

    monkeypatch.setattr(terms, "record", lambda run, **_: run.seed)
    monkeypatch.setattr(terms, "share_heads", share_heads)
    monkeypatch.setattr(terms, "ablate", ablate)
    shares = SimpleNamespace(estimates=lambda: {term: near(0.1) for term in TERMS})
    monkeypatch.setattr(terms, "breakdown", lambda seen, site: shares)
    runs: Any = {
        "escan": [SimpleNamespace(seed=s, metrics={"token_accuracy": 0.99}) for s in range(3)]
    }
    findings = terms.TransformerTermsExperiment().measure(runs, "full")
    assert judge("x.transformer-terms", findings) == verdict


@pytest.mark.parametrize(("first", "verdict"), [("β", "reproduced"), ("α", "not reproduced")])
def test_who_leads_in_each_layer_decides(
    first: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = np.array([0, 1.0, 1.0, 1.0]), np.array([0, 0, 0.1, 1.0])
    columns = [early, late] if first == "β" else [late, early]

    def follow(run: int) -> list[Course]:
        one = Course((0, 10, 20 + run, 40), np.stack(columns, axis=1))
        return [one, one]

    monkeypatch.setattr(transformer_lexical, "follow_layers", follow)
    runs: Any = {"escan": [0, 1, 2]}
    findings = transformer_lexical.TransformerLexicalExperiment().measure(runs, "full")
    assert judge("x.transformer-lexical", findings) == verdict


FOUR = ("reversal", "escan", "lookup", "multi30k")


def follow_made(run: Any, gold: Any) -> list[Course]:
    """β of the last layer at 10, α at 20 and some; in the first layer the other way round."""
    early, late = np.array([0, 0.8, 0.8, 0.8]), np.array([0, 0, 0.2, 0.6])
    updates = (0, 10, 20 + run.seed, 40)
    return [Course(updates, np.stack(pair, axis=1)) for pair in ((late, early), (early, late))]


def test_shares_of_four_tasks_are_those_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def record(run: Any, **how: Any) -> Any:
        asked.append((run.condition, how["n"], how["inputs"], how["sites"], how["split"]))
        return run

    def follow(run: Any, gold: Any) -> list[Course]:
        asked.append((run.condition, gold if run.condition == "reversal" else gold.args))
        return follow_made(run, gold)

    monkeypatch.setattr(transformer_tasks, "record", record)
    monkeypatch.setattr(
        transformer_tasks, "breakdown", lambda seen, site: MadeResult(f"terms of {site}", seen)
    )
    monkeypatch.setattr(
        transformer_tasks, "share_right", lambda run: number(run.condition, "right", run.seed)
    )
    monkeypatch.setattr(transformer_tasks, "follow_layers", follow)
    runs = make_runs(FOUR)
    found = measure("across/transformer-tasks", runs).measures["x.transformer-tasks"]
    leads = measure("across/transformer-tasks", runs).measures["x.transformer-leads"]
    splits = {name: "all" if name == "lookup" else None for name in FOUR}
    assert {one for one in asked if len(one) == 5} == {
        (name, 100, "teacher", "cross", split) for name, split in splits.items()
    }
    assert ("reversal", transformer_tasks.align_backwards) in asked
    assert {one for one in asked if len(one) == 2 and one[0] == "multi30k"} == {
        ("multi30k", (run,)) for run in runs["multi30k"]
    }

    def share(task: str, term: str, seed: int) -> float:
        parts = [number(task, (f"terms of {site}", term), seed) for site in CROSSING]
        return sum(parts) / 2

    for seed in range(SEEDS):
        falls = [share(task, "temporal-temporal", seed) for task in ("reversal", "multi30k")]
        assert found["less_time"].values[seed] == pytest.approx(falls[0] - falls[1])
        timeless = ("input-input", "input-delta", "delta-input", "delta-delta")
        free = [
            sum(share(task, term, seed) for term in timeless) for task in ("reversal", "multi30k")
        ]
        assert found["more_timeless"].values[seed] == pytest.approx(free[1] - free[0])
        assert found["lookup_delta_input"].values[seed] == pytest.approx(
            share("lookup", "delta-input", seed)
        )
        assert found["accuracy_escan"].values[seed] == number("escan", "right", seed)
        # α is half-way three quarters into its last step, β half of its first.
        half = (20 + seed) + 0.25 * (40 - 20 - seed)
        assert leads["lead_multi30k_1"].values[seed] == pytest.approx(half - 5)
        assert leads["lead_reversal_0"].values[seed] == pytest.approx(5 - half)
    assert leads["final_lexical_reversal_1"].mean == pytest.approx(0.8)
    assert leads["final_attention_reversal_1"].mean == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("time", "right", "verdict"),
    [(0.2, 0.99, "reproduced"), (0.45, 0.99, "partly"), (0.7, 0.99, "not reproduced"),
     (0.2, 0.3, "not reproduced")],
)  # fmt: skip
def test_time_in_translation_decides(
    time: float, right: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On reversal μ·μ has half; in translation as much as is given, the rest has no time in it."""

    def average(seen: list[Any]) -> dict[str, Estimate]:
        first = time if seen[0] == "multi30k" else 0.5
        rest = (1 - first) / 4
        free = dict.fromkeys(transformer_tasks.TIMELESS, near(rest))
        return {term: near(0.0) for term in TERMS} | free | {TERMS[0]: near(first)}

    monkeypatch.setattr(transformer_tasks, "record_task", lambda task, run, n: task)
    monkeypatch.setattr(transformer_tasks, "average_terms", average)
    monkeypatch.setattr(transformer_tasks, "share_right", lambda seen: right)
    monkeypatch.setattr(transformer_tasks, "follow_layers", follow_made)
    runs: Any = {name: [SimpleNamespace(seed=s) for s in range(3)] for name in FOUR}
    findings = transformer_tasks.TransformerTasksExperiment().measure(runs, "full")
    assert judge("x.transformer-tasks", findings) == verdict
    assert judge("x.transformer-leads", findings) == "reproduced"


@pytest.mark.parametrize(
    ("turned", "verdict"),
    [((), "reproduced"), (("multi30k",), "partly"), (("reversal", "multi30k"), "not reproduced")],
)
def test_who_leads_on_two_tasks_decides(
    turned: tuple[str, ...], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(run: Any, gold: Any) -> list[Course]:
        layers = follow_made(run, gold)
        return layers[::-1] if run.task in turned else layers

    monkeypatch.setattr(transformer_tasks, "follow_layers", follow)
    own: dict[str, Estimate] = {}
    for task in ("reversal", "multi30k"):
        runs: Any = [SimpleNamespace(seed=seed, task=task) for seed in range(3)]
        own |= transformer_tasks.time_layers(task, runs)[0]
    assert ledger()["x.transformer-leads"].verdict(own) == verdict


def test_the_mirrored_position_is_right() -> None:
    made: Any = {
        "encoder.words": np.array([[3, 4, 5, 2], [6, 2, 0, 0]]),
        "encoder.mask": np.array([[True] * 4, [True, True, False, False]]),
        "targets": np.array([[5, 4, 3, 2], [6, 2, 0, 0]]),
    }
    found = transformer_tasks.align_backwards(made)
    assert found.tolist() == [[2, 1, 0, -1], [0, -1, -1, -1]]


def test_links_are_found_once_for_all_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    run: Any = SimpleNamespace(checkpoints=lambda: [0, 10], model=lambda update: update)
    monkeypatch.setattr(transformer_lexical, "record", lambda run, checkpoint, **_: checkpoint)
    monkeypatch.setattr(
        transformer_lexical,
        "look_layers",
        lambda model, seen, gold: [(gold[0] + seen, [0.1, seen / 10, 0.3])] * 2,
    )

    def find(recording: Any) -> Any:
        asked.append(recording)
        return np.array([5.0])

    courses = transformer_lexical.follow_layers(run, find)
    assert asked == [0]
    assert courses[1].values.tolist() == [[5.0, 0.0], [15.0, 1.0]]  # the second head is best


@pytest.mark.parametrize(
    ("guided", "verdict"), [(0.6, "reproduced"), (0.32, "partly"), (0.2, "not reproduced")]
)
def test_what_guidance_adds_decides(guided: float, verdict: str) -> None:
    splits = ("HI", "HC", "HT", "NC")
    runs: Any = {
        name: [SimpleNamespace(metrics=dict.fromkeys(splits, level + s / 500)) for s in range(3)]
        for name, level in (("guided", guided), ("baseline", 0.3))
    }
    findings = transformer_guidance.TransformerGuidanceExperiment().measure(runs, "full")
    assert judge("x.transformer-guidance", findings) == verdict


def test_a_position_with_the_same_word_will_do() -> None:
    chunk = {
        "encoder.words": np.array([[5, 6, 5]]),
        "encoder.mask": np.array([[True, True, True]]),
        "decoder.mask": np.array([[True, True, False]]),
    }
    scores = np.array([[[0.9, 0.0, 0.1], [0.0, 0.2, 0.8], [1.0, 0.0, 0.0]]])
    place = np.array([[2, 1, 0]])
    assert count_found(scores, chunk, place, alike=True) == (1, 2)
    assert count_found(scores, chunk, place, alike=False) == (0, 2)


@pytest.mark.parametrize(
    ("turned", "right", "verdict"),
    [(False, 0.99, "reproduced"), (True, 0.99, "not reproduced"), (False, 0.5, "not reproduced")],
)
def test_profiles_that_go_together_decide(
    turned: bool, right: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = np.linspace(0.0, 0.2, 2 * len(TERMS))
    steps = np.array(SPREAD)[:, None] / 10

    def profile(seen: list[str]) -> np.ndarray:
        return steps + (shape[::-1] if turned and seen[0] == "theirs" else shape)

    monkeypatch.setattr(hf, "record", lambda run, **_: "ours")
    monkeypatch.setattr(hf, "train_marian", lambda task, seed, updates: None)
    monkeypatch.setattr(hf, "record_marian", lambda net, task, n: "theirs")
    monkeypatch.setattr(hf, "share_right", lambda seen: right if seen == "theirs" else 0.99)
    monkeypatch.setattr(hf, "profile", profile)
    config = SimpleNamespace(seed=0)
    runs: Any = {"own": [SimpleNamespace(task=lambda: None, config=config)] * 3}
    findings = hf.HuggingFaceExperiment().measure(runs, "full")
    assert judge("x.hf", findings) == verdict


def test_words_of_both_sides_share_a_table() -> None:
    batch = Batch.of(
        np.array([[3, 4, 2], [5, 2, 0]]), np.array([3, 2]),
        np.array([[4, 2, 0], [3, 3, 2]]), np.array([2, 3]),
    )  # fmt: skip
    task: Any = SimpleNamespace(source_vocabulary=range(10))
    assert hf.list_pairs(batch, task) == [([3, 4, 2], [14, 2]), ([5, 2], [13, 13, 2])]


def test_beta_of_a_layer_is_that_of_numpy() -> None:
    torch.manual_seed(0)
    config = TransformerConfig(hidden=8, heads=2, layers=2, feedforward=8)
    model = Transformer(config, 7, 9).eval()
    values = torch.randn(3, 2, 4, 4)  # (sample, head, source, size)
    targets = np.array([[1, 8], [0, 3], [5, 5]])
    made: Any = {"decoder.1.cross.values": values.numpy(), "targets": targets}
    found = transformer_lexical.probe_layer(model, 1, made)
    weights = {name: tensor.detach().double().numpy() for name, tensor in model.named_parameters()}
    for sample, step, place in np.ndindex(3, 2, 4):
        joined = np.concatenate([values[sample, head, place].double().numpy() for head in (0, 1)])
        merge = "decoder.1.cross_attention.merge"
        state = weights[f"{merge}.weight"] @ joined + weights[f"{merge}.bias"]
        state = (state - state.mean()) / np.sqrt(state.var() + 1e-5)
        state = state * weights["decoder_norm.weight"] + weights["decoder_norm.bias"]
        logits = weights["readout.weight"] @ state + weights["readout.bias"]
        wanted = logits[targets[sample, step]] - np.log(np.exp(logits).sum())
        assert found[sample, step, place] == pytest.approx(wanted, abs=1e-5)


def test_a_layer_is_followed_by_the_head_that_is_best_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = {0: [(0.1, [0.5, 0.2]), (0.2, [0.9, 0.1])], 7: [(0.3, [0.4, 0.6]), (0.6, [0.8, 0.3])]}

    def look(model: int, recording: int, gold: Any) -> Any:
        assert model == recording and gold == "of update 0", "sentences are the same at all updates"
        return seen[model]

    monkeypatch.setattr(transformer_lexical, "record", lambda run, checkpoint, **more: checkpoint)
    monkeypatch.setattr(transformer_lexical, "look_layers", look)
    run: Any = SimpleNamespace(checkpoints=lambda: [0, 7], model=lambda update: update)
    first, second = transformer_lexical.follow_layers(run, lambda update: f"of update {update}")  # type: ignore[arg-type, return-value]
    assert first.updates == second.updates == (0, 7)
    assert first.values.tolist() == [[0.1, 0.2], [0.3, 0.6]]
    assert second.values.tolist() == [[0.2, 0.9], [0.6, 0.8]]


def test_the_rate_of_a_marian_rises_then_falls_along_a_cosine() -> None:
    rates = [find_rate(at, WARMUP + 100) for at in range(WARMUP + 101)]
    assert rates[:2] == [1 / WARMUP, 2 / WARMUP] and rates[WARMUP - 1] == rates[WARMUP] == 1
    assert rates[WARMUP + 50] == pytest.approx(0.5) and rates[-1] == pytest.approx(0)
    assert rates[WARMUP + 25] == pytest.approx((1 + 2**-0.5) / 2)


def test_a_marian_is_trained_at_the_rate_of_each_update(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    asked: list[tuple[int, int]] = []

    def rate(at: int, updates: int) -> float:
        asked.append((at, updates))
        return 1.0

    monkeypatch.setattr(hf, "find_rate", rate)
    task = plan_transformer_escan("quick")[0].make_task()
    net = hf.train_marian(task, 0, 2)
    assert asked == [(0, 2), (1, 2), (2, 2)] and not net.training


def test_a_marian_has_the_sizes_of_our_own() -> None:
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    (run,) = plan_transformer_escan("quick")[:1]
    config, ours = hf.make_marian(run.make_task(), 0).config, run.model
    assert config.encoder_layers == config.decoder_layers == ours.layers  # type: ignore[attr-defined]
    assert config.encoder_attention_heads == config.decoder_attention_heads == ours.heads  # type: ignore[attr-defined]
    assert config.d_model == ours.hidden  # type: ignore[attr-defined]
