"""Questions across the papers: measures on any runs, and on cases whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regard.instruments.components._terms import TERMS
from regard.papers import EXPERIMENTS, ledger
from regard.papers.across import bottleneck, directions, guidance, hf, order, prediction
from regard.papers.across._positions import share_attended, share_lexical
from regard.recordings.record import record
from regard.recordings.recording import Metadata, Recording
from regard.recordings.site import Site
from regard.recordings.storage import InMemory
from regard.runs import Run, RunConfig, assemble, execute
from regard.statistics import Estimate

NAMES = [name for name in EXPERIMENTS if name.startswith("across/")]
SHORT = {"updates": 4, "batch": 8, "evaluate_every": 4, "checkpoint_every": 2, "milestones": (0,)}


def shrink(config: RunConfig) -> RunConfig:
    """The same run, hardly trained, with a few hidden units."""
    embeddings = [getattr(config.model, name, None) for name in ("embedding", "decoder_embedding")]
    sizes = {"hidden": 12} | ({"decoder_embedding": 12} if embeddings[1] else {})
    if embeddings[0] and not embeddings[1]:
        sizes["embedding"] = 12
    held = {} if config.task_name in ("lookup", "translation") else {"held_out": 40}
    return replace(
        config,
        model=config.model.model_copy(update=sizes),
        task=config.task.model_copy(update=held),
        training=config.training.model_copy(update=SHORT),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of runs for all experiments: they share some."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def recording(folder: Path) -> Recording:
    """Five phrases of a network that has hardly learnt."""
    settings = {"hidden": 6, "shortest": 3, "longest": 5, **SHORT}
    run = execute(assemble("one-to-one", "aed", 0, settings), folder)
    return record(run, n=5, also=("lexical",))


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_measures_what_its_rules_need(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bottleneck, "TRIALS", 8)
    monkeypatch.setattr(order, "SAMPLES", 12)
    monkeypatch.setattr(prediction, "SAMPLES", {"quick": 20, "full": 20})
    monkeypatch.setattr(hf, "UPDATES", {"quick": 2})
    experiment = EXPERIMENTS[name]()
    if lack := experiment.lacks("quick"):
        pytest.skip(f"{name} needs {lack}")
    runs: dict[str, list[Run]] = {
        condition: [execute(shrink(config), folder) for config in configs[:2]]
        for condition, configs in experiment.plan("quick").items()
    }
    findings = experiment.measure(runs, "quick")
    for claim in experiment.claims:
        assert ledger()[claim].experiment == name
        assert ledger()[claim].names <= set(findings.measures[claim])
        assert all(value.n == (2 if runs else 1) for value in findings.measures[claim].values())
    assert all("<svg" in figure.svg() and figure.caption for figure in findings.figures)


def test_every_question_has_an_experiment() -> None:
    claims = [claim.id for claim in ledger().values() if claim.paper == "across"]
    assert sorted(claims) == sorted(c for name in NAMES for c in EXPERIMENTS[name].claims)


def test_full_scale_has_five_seeds() -> None:
    for name in NAMES:
        assert all(len(configs) >= 5 for configs in EXPERIMENTS[name]().plan("full").values())


def test_positions_are_those_of_a_loop(recording: Recording) -> None:
    lexical, weights = recording["lexical"], recording["attention.weights"][:, 0]
    words, gold = recording["encoder.words"], recording["alignment"]
    right, found, total = 0, 0, 0
    for sample in range(len(recording)):
        length = int(recording["encoder.mask"][sample].sum())
        for step in range(int(recording["decoder.mask"][sample].sum())):
            if gold[sample, step] < 0:
                continue
            total += 1
            best = max(range(length), key=lambda at: lexical[sample, step, at])
            right += words[sample, best] == words[sample, gold[sample, step]]
            most = max(range(length), key=lambda at: weights[sample, step, at])
            found += most == gold[sample, step]
    assert total and share_lexical(recording) == right / total
    assert share_attended(recording) == found / total


def test_positions_take_other_links(recording: Recording) -> None:
    best = np.where(
        recording["encoder.mask"][:, None], recording["attention.weights"][:, 0], -1
    ).argmax(2)
    assert share_attended(recording, best) == 1
    assert share_attended(recording, np.where(best == 0, 1, 0)) == 0


def test_half_of_the_way_is_interpolated() -> None:
    course = np.array([0.2, 0.2, 0.4, 0.8, 1.0, 0.9])  # half-way at .6, between 30 and 40
    assert order.find_half([0, 20, 30, 40, 50, 60], course) == pytest.approx(35)
    assert order.find_half([0, 10], np.array([0.5, 0.1])) == 10  # it only falls


@pytest.mark.parametrize(
    ("first", "verdict"), [("lexical", "reproduced"), ("attention", "not reproduced")]
)
def test_who_leads_decides(first: str, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = np.array([0, 1, 1, 1.0]), np.array([0, 0, 0.1, 1.0])
    columns = [early, late] if first == "lexical" else [late, early]

    def follow(run: int) -> order.Course:
        return order.Course((0, 10, 20 + run, 40), np.stack([*columns, late], axis=1))

    monkeypatch.setattr(order, "follow", follow)
    runs: Any = {name: [0, 1, 2] for name in ("one-to-one", "escan", "translation")}
    findings = order.LexicalFirstExperiment().measure(runs, "quick")
    assert ledger()["x.lexical-first"].verdict(findings.measures["x.lexical-first"]) == verdict


def test_a_component_has_its_three_terms() -> None:
    shares: Any = SimpleNamespace(absolute=np.arange(9) / 36)
    lost = {("remove", part, side): 0.9 for part in prediction.PARTS for side in prediction.SIDES}
    lost["remove", "temporal", "keys"] = 0.4
    ablated: Any = SimpleNamespace(baseline=0.9, accuracy=lost)
    points = prediction.list_points(shares, ablated)
    assert [round(36 * share) for share, _ in points] == [3, 12, 21, 9, 12, 15]
    assert [round(loss, 6) for _, loss in points] == [0, 0, 0, 0.5, 0, 0]


def test_losses_that_follow_shares_correlate() -> None:
    follows = [(0.1, 0.0), (0.2, 0.1), (0.7, 0.6)]
    against = [(share, -loss) for share, loss in follows]
    assert prediction.correlate([follows, against]).values == (1.0, -1.0)


@pytest.mark.parametrize(
    ("more", "verdict"), [("guided", "reproduced"), ("baseline", "not reproduced")]
)
def test_more_time_when_guided_decides(
    more: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breakdown(name: str) -> Any:
        level = 0.6 if name.endswith(more) else 0.2
        values = (level, level + 0.01, level + 0.02)
        return SimpleNamespace(estimates=lambda: {term: Estimate.of(values) for term in TERMS})

    monkeypatch.setattr(guidance, "breakdown", breakdown)
    monkeypatch.setattr(guidance, "record_runs", lambda runs: runs[0].name)
    monkeypatch.setattr(guidance, "record", lambda run, **_: run)
    monkeypatch.setattr(
        guidance,
        "share_lexical",
        lambda run: 0.8 + run.seed / 99 if run.name.endswith(more) else 0.3,
    )
    names = [f"{model} {kind}" for model in ("baan", "aed") for kind in ("guided", "baseline")]
    runs: Any = {
        name: [SimpleNamespace(name=name, seed=s, metrics={"NC": 0.5}) for s in range(3)]
        for name in names
    }
    findings = guidance.GuidedTermsExperiment().measure(runs, "quick")
    assert ledger()["x.guided-terms"].verdict(findings.measures["x.guided-terms"]) == verdict


def test_groups_overlap_with_the_units_of_chi(monkeypatch: pytest.MonkeyPatch) -> None:
    group = SimpleNamespace(units=(3, 7))
    found = SimpleNamespace(first=SimpleNamespace(groups={"aggregate": (group,)}, width=10))
    monkeypatch.setattr(directions, "groups", lambda recording, only: found)
    chi = np.zeros((4, 10))
    chi[1, 3], chi[2, 3], chi[1, 5] = 5, -5, 1  # words 1 and 2 are tables
    chi[3, 7] = 99  # another word's direction
    made: Any = SimpleNamespace(
        words=lambda side: ("000", "t1", "t2", "."),
        decomposition=SimpleNamespace(encoder=SimpleNamespace(input=chi)),
    )
    assert directions.overlap_group(made) == (0.5, 0.2)


@pytest.mark.parametrize(
    ("short", "long", "verdict"),
    [(0.05, 0.6, "reproduced"), (0.3, 0.6, "partly"), (0.6, 0.3, "not reproduced")],
)
def test_what_is_lost_by_length_decides(
    short: float, long: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {n: short if n <= 12 else long for n in bottleneck.LENGTHS}
    whole = {n: Estimate.share([0.95, 0.96, 0.97]) for n in bottleneck.LENGTHS}
    left = {n: Estimate.share([v - lost[n] for v in whole[n].values]) for n in whole}
    monkeypatch.setattr(bottleneck, "ablate_lengths", lambda runs: (whole, left))
    fixed = {n: Estimate.share([1.0, 1.0, 1.0 if n < 9 else 0.5]) for n in bottleneck.LENGTHS}
    monkeypatch.setattr(bottleneck, "measure_words", lambda runs, n: fixed[n])
    runs: Any = {"attention": [0, 1, 2], "fixed": [0, 1, 2]}
    own = bottleneck.BottleneckTermsExperiment().measure(runs, "quick").measures
    assert ledger()["x.bottleneck-terms"].verdict(own["x.bottleneck-terms"]) == verdict
    assert own["x.bottleneck-terms"]["held_by_fixed"].values == (25, 25, 8)
    first = {0.05: 13.0, 0.3: 5.0, 0.6: 5.0}[short]
    assert own["x.bottleneck-terms"]["carried_from"].values == (first,) * 3


def test_words_of_a_length_are_counted_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bottleneck, "TRIALS", 20)
    small = {"hidden": 8, "updates": 30, "batch": 8, "held_out": 10, "evaluate_every": 30}
    run = execute(assemble("reversal", "chapter36", 0, small), tmp_path)
    found = bottleneck.measure_words([run], 6)
    rows = bottleneck.vary_task(run, held_out=20, shortest=6, longest=6).split("test")
    assert (rows.target_lengths == 7).all() and len(rows) == 20
    said = run.model()(rows.source, rows.source_lengths, rows.inputs).logits.argmax(dim=2)
    assert found.values == pytest.approx([(said == rows.target).float().mean().item()])


def test_where_nothing_is_lost_or_held_the_lengths_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    level = {n: Estimate.share([0.3, 0.4]) for n in bottleneck.LENGTHS}
    monkeypatch.setattr(bottleneck, "ablate_lengths", lambda runs: (level, level))
    monkeypatch.setattr(bottleneck, "measure_words", lambda runs, n: level[n])
    runs: Any = {"attention": [0, 1], "fixed": [0, 1]}
    own = bottleneck.BottleneckTermsExperiment().measure(runs, "quick").measures
    assert own["x.bottleneck-terms"]["held_by_fixed"].values == (0, 0)
    assert own["x.bottleneck-terms"]["carried_from"].values == (26, 26), "one beyond the longest"


def test_shares_and_losses_of_every_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two conditions: losses follow shares in one and go against them in the other."""
    up = [(0.1, 0.1), (0.2, 0.3), (0.3, 0.5), (0.4, 0.7)]
    down = [(share, -loss) for share, loss in up]
    asked: list[int] = []

    def points(runs: Any, n: int) -> Any:
        asked.append(n)
        return {"up": [up, up], "down": [down, up]}[runs]

    monkeypatch.setattr(prediction, "measure_points", points)
    runs: Any = {"one-to-one aed": "up", "escan ao": "down"}
    findings = prediction.SharesPredictExperiment({}).measure(runs, "quick")
    own = findings.measures["x.shares-predict"]
    assert own["within_one_to_one_aed"].values == (1.0, 1.0)
    assert own["within_escan_ao"].values == pytest.approx((-1.0, 1.0))
    # Of the first seed the ranks of losses are 5 to 8 and 4 to 1 beside shares of equal ranks.
    first, second = own["correlation"].values
    assert first == pytest.approx(0.0, abs=1e-9) and second == pytest.approx(1.0)
    assert asked == [300, 300]
    marks = findings.figures[0].panels[0].marks
    assert marks[0].x == (0.1, 0.2, 0.3, 0.4) * 2  # type: ignore[union-attr]


def test_points_are_those_of_the_last_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "record_runs", lambda runs, n: (runs, n))
    monkeypatch.setattr(prediction, "breakdown", lambda seen: SimpleNamespace(seeds=["s", "t"]))
    asked: dict[str, Any] = {}

    def ablate(runs: Any, **more: Any) -> Any:
        asked.update(more)
        return SimpleNamespace(seeds=["a", "b"])

    monkeypatch.setattr(prediction, "ablate", ablate)
    monkeypatch.setattr(prediction, "list_points", lambda shares, ablated: [(shares, ablated)])
    found: Any = prediction.measure_points(["run", "other"], 7)  # type: ignore[list-item]
    assert found == [[("s", "a")], [("t", "b")]]
    assert asked == {"n": 7, "checkpoint": "last"}


def test_overlaps_of_guided_models_and_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"guided": [(0.6, 0.05), (0.8, 0.1)], "baseline": [(0.2, 0.1), (0.3, 0.15)]}
    monkeypatch.setattr(directions, "record_runs", lambda name: made[name])
    monkeypatch.setattr(directions, "overlap_group", lambda pair: pair)
    runs: Any = {name: name for name in made}
    own = directions.GroupsAreDirectionsExperiment({}).measure(runs, "quick").measures
    found = own["x.groups-are-directions"]
    assert found["overlap_guided"].values == (0.6, 0.8)
    assert found["chance_guided"].values == (0.05, 0.1)
    assert found["over_chance_guided"].values == pytest.approx((12, 8))
    assert found["over_chance_baseline"].values == pytest.approx((2, 2))
    runs = {"guided": "baseline", "baseline": "guided"}
    turned = directions.GroupsAreDirectionsExperiment({}).measure(runs, "quick").measures
    rule = ledger()["x.groups-are-directions"]
    assert rule.verdict(turned["x.groups-are-directions"]) == "partly"


def test_half_way_times_and_who_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = {"one-to-one": (10.0, 40.0, 90.0), "escan": (30.0, 20.0, 25.0)}

    def follow(run: Any) -> Any:
        found = SimpleNamespace(updates=(0, 10), values=np.zeros((2, 3)))
        found.find_halves = lambda: [half + run[1] for half in halves[run[0]]]
        return found

    monkeypatch.setattr(order, "follow", follow)
    runs: Any = {name: [(name, 0), (name, 1)] for name in halves}
    own = order.LexicalFirstExperiment({}).measure(runs, "quick").measures["x.lexical-first"]
    assert own["lead_one_to_one"].values == (30, 30) and own["lead_escan"].values == (-10, -10)
    assert own["time_after_attention_one_to_one"].values == (50, 50)
    assert own["half_lexical_one_to_one"].values == (10, 11)
    assert own["half_attention_one_to_one"].values == (40, 41)
    assert own["half_time_one_to_one"].values == (90, 91)


def test_a_look_gives_words_then_attention_then_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def record_(run: Any, **more: Any) -> Any:
        asked.update(more)
        return SimpleNamespace(names=lambda: ["alignment"])

    monkeypatch.setattr(order, "record", record_)
    shares = {term: 0.01 * k for k, term in enumerate(TERMS, 3)}
    monkeypatch.setattr(order, "breakdown", lambda recording: SimpleNamespace(shares=shares))
    monkeypatch.setattr(order, "share_lexical", lambda recording, gold: (0.1, gold))
    monkeypatch.setattr(order, "share_attended", lambda recording, gold: (0.2, gold))
    found: Any = order.look("run", 30)  # type: ignore[arg-type]
    assert found == ((0.1, None), (0.2, None), 0.03)
    assert asked["checkpoint"] == 30 and asked["inputs"] == "teacher"


def test_steps_without_a_word_or_a_source_do_not_count() -> None:
    """Two steps are padding, one comes from nowhere: of the other three two are found."""
    weights = np.zeros((2, 1, 3, 3), np.float32)
    for sample, places in enumerate(([0, 1, 2], [2, 0, 0])):
        weights[sample, 0, range(3), places] = 1.0
    arrays = {
        "encoder.words": np.array([[3, 4, 5], [3, 4, 5]]),
        "encoder.mask": np.ones((2, 3), bool),
        "decoder.words": np.array([[1, 3, 4], [1, 0, 0]]),
        "decoder.mask": np.array([[True, True, True], [True, False, False]]),
        "alignment": np.array([[0, -1, 1], [2, 0, 0]]),
        "attention.weights": weights,
        "lexical": weights[:, 0],
    }
    words = ("<PAD>", "<SOS>", "<EOS>", "a", "b", "c")
    made = Recording(InMemory(arrays), Metadata(words, words, {"attention": Site()}))
    assert share_attended(made) == pytest.approx(2 / 3)
    assert share_lexical(made) == pytest.approx(2 / 3)
    assert share_attended(made, np.array([[1, 1, -1], [2, 0, 0]])) == pytest.approx(2 / 3)
